"""What the configs of other families say beside BERT's, and what they refuse."""

import json
import math
from pathlib import Path

import pytest
import torch
from tests.closeness import close
from tests.families import FAMILIES, make_folder
from tests.unit.inference.family_models import HEADS, build_family_config

from bertkit import models
from bertkit.base.errors import CheckpointError, InputError, SettingsError
from bertkit.models.bert.architectures import ARCHITECTURES, expected_shapes
from bertkit.models.bert.config import MULTIPLE_CHOICE, QUESTION_ANSWERING, TAGGING, BertConfig
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.models.bert.heads import BertForMaskedLM, BertForPreTraining
from bertkit.models.bert.weights import without_memory
from bertkit.models.distilbert.config import DistilBertConfig
from bertkit.models.electra.config import ElectraConfig
from bertkit.models.modernbert.config import GLOBAL, LOCAL, ModernBertConfig
from bertkit.models.mpnet.config import MPNetConfig
from bertkit.models.open_model import OpenModel
from bertkit.models.roberta.config import RobertaConfig
from bertkit.nn.packing import PackedBatch

SEQUENCES = "BertForSequenceClassification"


@pytest.mark.parametrize(("family", "architecture"), HEADS)
def test_shapes_are_those_of_the_model(family, architecture):
    labels = {} if architecture == QUESTION_ANSWERING else {"id2label": dict(enumerate("abc"))}
    config = build_family_config(family, **labels)
    model = ARCHITECTURES[architecture].kind(config)
    heads = ["pooler"] if getattr(model, "pooler", None) is not None else []
    found = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    assert expected_shapes(config, architecture, heads) == found


@pytest.mark.parametrize("family", FAMILIES)
def test_a_config_is_written_under_the_familys_keys_and_read_again(family):
    config = build_family_config(family)
    values = json.loads(json.dumps(config.to_dict()))
    assert not set(config.their_keys) & values.keys()
    assert set(config.their_keys.values()) <= values.keys()
    assert BertConfig.from_dict(values, family) == config


def test_dropout_before_the_last_layer_is_that_of_the_class():
    def list_rates(config: BertConfig) -> list[float]:
        classes = (SEQUENCES, MULTIPLE_CHOICE, TAGGING, QUESTION_ANSWERING)
        return [config.find_dropout(architecture) for architecture in classes]

    assert list_rates(BertConfig(hidden_dropout_prob=0.3)) == [0.3, 0.3, 0.3, 0.0]
    rates = {"seq_classif_dropout": 0.2, "qa_dropout": 0.4, "dropout": 0.3}
    assert list_rates(DistilBertConfig(**rates)) == [0.2, 0.2, 0.3, 0.4]
    assert list_rates(DistilBertConfig(**rates, classifier_dropout=0.5)) == [0.5, 0.5, 0.5, 0.4]
    assert list_rates(ElectraConfig(summary_last_dropout=0.4)) == [0.1, 0.4, 0.1, 0.0]
    assert list_rates(ElectraConfig(classifier_dropout=0.5)) == [0.5, 0.5, 0.5, 0.0]
    assert list_rates(ModernBertConfig(classifier_dropout=0.5)) == [0.5] * 4


def test_rates_of_a_modernbert_are_of_its_own_parts():
    config = ModernBertConfig(embedding_dropout=0.1, attention_dropout=0.2, mlp_dropout=0.3)
    model = BertModel(config.model_copy(update={"num_hidden_layers": 1, "vocab_size": 50284}))
    (layer,) = model.encoder.layers
    assert model.encoder.embeddings.dropout_rate == 0.1
    assert (layer.attention.dropout_rate, layer.dropout_rates["attention"]) == (0.2, 0.2)
    assert (layer.feed_forward.dropout_rate, layer.dropout_rates["feed_forward"]) == (0.3, 0.0)


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (ModernBertConfig, {"decoder_bias": False}, "decoder_bias must be True"),
        (ModernBertConfig, {"norm_bias": True}, "norm_bias, attention_bias, mlp_bias must be the"),
        (ModernBertConfig, {"num_attention_heads": 256}, "must be even, for rotary positions"),
        (
            ModernBertConfig,
            {"layer_types": [GLOBAL, LOCAL, LOCAL]},
            "must have 22 kinds, one for a layer, got 3",
        ),
        (ModernBertConfig, {"rope_scaling": {"type": "yarn"}}, "rope_scaling isn't supported"),
        (
            ModernBertConfig,
            {"rope_parameters": {GLOBAL: {"rope_type": "linear"}}},
            "rope_type 'linear' isn't supported in",
        ),
        (ModernBertConfig, {"classifier_activation": "x"}, "unknown activation 'x'"),
        (ModernBertConfig, {"is_decoder": True}, "is_decoder must be false: a modernbert reads"),
        (MPNetConfig, {"relative_attention_num_buckets": 64}, "must be 32"),
        (ModernBertConfig, {"rope_parameters": {"rope_type": "yarn"}}, "must be those of full_att"),
        (
            ModernBertConfig,
            {"rope_parameters": {LOCAL: {"partial_rotary_factor": 0.5}}},
            "partial_rotary_factor 0.5 isn't supported in rope_parameters",
        ),
        (ModernBertConfig, {"global_rope_theta": 1e300}, "global_rope_theta must be at most"),
        (ModernBertConfig, {"layer_types": ["x"] * 1_000_000}, "layer_types.0 must be"),
        (ElectraConfig, {"summary_type": "mean"}, "summary_type must be 'first'"),
        (RobertaConfig, {"pad_token_id": -2}, "pad_token_id must be at least 0"),
        (RobertaConfig, {"pad_token_id": 600}, "must be more than 601, the row of position 0"),
        (ModernBertConfig, {"vocab_size": 97}, r"pad_token_id \(50283\) must be below vocab_size"),
        (MPNetConfig, {"layer_norm_eps": -1.0}, "layer_norm_eps must be greater than 0"),
        (DistilBertConfig, {"layer_norm_eps": 1e-5}, "layer_norm_eps must be"),
        (RobertaConfig, {"model_type": "bert"}, "expected 'roberta', got 'bert'"),
    ],
)
def test_what_we_do_not_do_is_refused_by_name(kind, values, message):
    with pytest.raises(SettingsError, match=message):
        kind(**values)


def test_both_spellings_of_a_modernberts_layers_are_one():
    published = {"global_attn_every_n_layers": 2, "local_rope_theta": 50.0, "num_hidden_layers": 4}
    rotary = {GLOBAL: {"rope_type": "default", "rope_theta": 160_000.0}}
    written = {
        "layer_types": [GLOBAL, LOCAL] * 2,
        "num_hidden_layers": 4,
        "rope_parameters": {**rotary, LOCAL: {"rope_type": "default", "rope_theta": 50.0}},
    }
    config = ModernBertConfig(**published, local_attention=10)
    assert ModernBertConfig(**written, local_attention=10) == config
    assert config.parts.windows == (None, 5, None, 5)
    assert config.parts.rotary_bases == (160_000.0, 50.0, 160_000.0, 50.0)
    assert "layer_types" not in config.to_dict()


def test_layers_without_a_step_are_kept_as_they_are():
    kinds = [LOCAL, GLOBAL, LOCAL]
    config = ModernBertConfig(layer_types=kinds, num_hidden_layers=3)
    assert config.parts.windows == (64, None, 64)
    assert config.to_dict()["layer_types"] == kinds
    same = ModernBertConfig(local_rope_theta=None, num_hidden_layers=2)
    assert same.parts.rotary_bases == (160_000.0, 160_000.0)


def test_layers_that_are_left_keep_their_kinds():
    config = ModernBertConfig(num_hidden_layers=7)
    left = config.keep_layers([0, 2, 6])
    assert left.parts.windows == (None, 64, None)
    assert left.to_dict()["global_attn_every_n_layers"] == 2
    assert config.keep_layers([0, 1, 2]).parts.windows == (None, 64, 64)
    assert BertConfig().keep_layers([0, 5]).num_hidden_layers == 2


def test_the_keys_of_a_familys_files_count_more_than_berts(tmp_path):
    assert ModernBertConfig(norm_eps=1e-3, layer_norm_eps=1e-12).layer_norm_eps == 1e-3
    folder = make_folder(tmp_path, "modernbert", with_tokenizer=False)
    path = folder / "config.json"
    stated = json.loads(path.read_text())
    path.write_text(json.dumps({**stated, "hidden_act": "relu"}))
    model = BertModel.from_pretrained(folder, hidden_dropout_prob=0.3)
    assert (model.config.hidden_act, model.config.hidden_dropout_prob) == ("gelu", 0.3)


@pytest.mark.parametrize("family", ["mpnet", "modernbert"])
def test_padding_between_tokens_is_refused_where_distances_matter(family):
    model, ids = BertModel(build_family_config(family)).eval(), torch.arange(7, 11)[None]
    mask = torch.tensor([[1, 1, 0, 1]])
    with pytest.raises(InputError, match="attention_mask has padding between tokens"):
        model(ids, attention_mask=mask)
    assert model(ids, attention_mask=torch.tensor([[0, 1, 1, 0]])).last_hidden_state.any()
    for shape in ((0, 4), (2, 0)):
        with pytest.raises(InputError, match="each row of attention_mask must have at least one"):
            model(torch.zeros(shape, dtype=torch.long))


def test_a_vocabulary_with_padding_at_another_id_is_refused(tmp_path):
    folder = make_folder(tmp_path, "roberta", pad_token_id=0)
    with pytest.raises(CheckpointError, match=r"is 0 in config\.json and 1 in the vocab"):
        _ = OpenModel.open(folder).tokenizer


def test_first_weights_of_a_modernbert_grow_with_no_depth():
    config = ModernBertConfig.preset("tiny", vocab_size=50284, id2label=dict(enumerate("abc")))
    assert (config.intermediate_size, config.num_hidden_layers) == (192, 2)
    torch.manual_seed(0)
    weights = BertForSequenceClassification(config).state_dict()

    def measure(name: str) -> float:
        return float(weights[name].std()) / float(
            torch.nn.init.trunc_normal_(wide, 0, 1, -2, 2).std()
        )

    wide = torch.empty(1000, 100)
    last = "encoder.layers.1"
    for name, expected in {
        "encoder.embeddings.word.weight": 0.02,
        f"{last}.attention.query_key_value.weight": 0.02,
        f"{last}.feed_forward.up.weight": 0.02,
        f"{last}.attention.output.weight": 0.02 / math.sqrt(4),
        f"{last}.feed_forward.down.weight": 0.02 / math.sqrt(4),
        "pooler.dense.weight": 0.02 / math.sqrt(4),
        "classifier.weight": 128**-0.5,
    }.items():
        assert measure(name) == close(expected, within=0.1 * expected), name


def test_a_class_that_a_family_lacks_is_refused(tmp_path):
    folder = make_folder(tmp_path, "modernbert", with_tokenizer=False)
    with pytest.raises(CheckpointError, match="is ModernBERT, which has no BertForPreTraining"):
        BertForPreTraining.from_pretrained(folder)
    with pytest.raises(SettingsError, match="'electra' has no BertForPreTraining"):
        BertForPreTraining(ElectraConfig())


def test_a_modernberts_head_of_words_begins_a_classifiers(tmp_path):
    folder = make_folder(tmp_path, "modernbert", "ForMaskedLM", with_tokenizer=False)
    words = BertForMaskedLM.from_pretrained(folder)
    model = BertForSequenceClassification.from_pretrained(folder, new_heads=True)
    assert model.new_heads == ("classifier",)
    assert torch.equal(model.pooler.dense.weight, words.masked_lm.dense.weight)
    assert torch.equal(model.pooler.norm.weight, words.masked_lm.norm.weight)
    assert OpenModel.open(folder).architecture == "BertForMaskedLM"


def test_a_classifiers_first_layer_is_no_head_of_words(tmp_path):
    folder = make_folder(tmp_path, "modernbert", "ForSequenceClassification", with_tokenizer=False)
    with pytest.raises(CheckpointError, match="no masked_lm head, which ModernBertForMaskedLM"):
        BertForMaskedLM.from_pretrained(folder)
    model = BertForMaskedLM.from_pretrained(folder, new_heads=True)
    assert model.new_heads == ("masked_lm",)


def test_operations_of_windows_and_gates_are_counted_as_they_are():
    """By hand: a window of 3 tokens sees 3 keys for each query, or all of a shorter sequence."""
    sizes = {"num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 2}
    config = ModernBertConfig(
        **sizes, intermediate_size=6, vocab_size=60000, layer_types=[LOCAL], local_attention=2
    )
    with without_memory():
        encoder = BertModel(config).encoder
    batch = PackedBatch.from_single([[5] * 10, [5] * 2])
    pairs = 10 * 3 + 2 * 2
    products = 12 * (3 * 64 + 64 + 2 * 8 * 6 + 8 * 6) + 2 * 8 * pairs
    assert encoder.count_operations(batch) == 2.0 * 3 * products


def test_what_a_reader_of_the_papers_reads_is_short():
    """The nine files that docs/architecture.md names."""
    root = Path(models.__file__).parents[1]
    names = [
        *(f"nn/{name}.py" for name in ("attention", "block", "embeddings")),
        *(f"nn/{name}.py" for name in ("masks", "parts", "relative")),
        *(f"models/bert/{name}.py" for name in ("encoder", "heads", "fine_tuning")),
    ]
    assert sum(len((root / name).read_text().splitlines()) for name in names) <= 1300


@pytest.mark.parametrize(
    ("family", "limit"),
    [("distilbert", 100), ("electra", 100), ("roberta", 100), ("mpnet", 250), ("modernbert", 250)],
)
def test_a_family_is_short(family, limit):
    """A difference is a part of `nn`; a family says what it has."""
    files = (Path(models.__file__).parent / family).glob("*.py")
    assert sum(len(file.read_text().splitlines()) for file in files) <= limit


@pytest.mark.parametrize("kind", [MPNetConfig, ModernBertConfig])
def test_computing_blocks_again_changes_no_gradient(kind):
    torch.manual_seed(0)
    rates = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    model = BertForMaskedLM(kind.preset("3x64", vocab_size=100, pad_token_id=1, **rates)).train()
    batch, gradients = PackedBatch.from_single([[5, 6, 7] * 30, [8, 9]]), []
    for recomputes in (False, True):
        model.encoder.recomputes = recomputes
        model.zero_grad()
        torch.manual_seed(1)
        model.encoder(batch).pow(2).sum().backward()
        gradients.append([weight.grad for weight in model.encoder.parameters()])
    assert all(map(torch.equal, *gradients))
