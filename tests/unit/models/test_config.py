import json

import pytest

from bertkit.base.errors import CheckpointError, SettingsError
from bertkit.models.bert.config import BertConfig


def test_unknown_keys_are_kept_and_written_back():
    values = {
        **BertConfig.preset("tiny").to_dict(),
        "chunk_size_feed_forward": 64,
        "pruned_heads": {},
        "torch_dtype": "float32",
    }
    assert BertConfig.from_dict(values, "here").to_dict() == values
    assert json.loads(json.dumps(values)) == values


def test_the_message_names_the_sizes_that_do_not_fit():
    with pytest.raises(SettingsError, match=r"hidden_size \(10\) must be a multiple of .* \(3\)"):
        BertConfig(hidden_size=10, num_attention_heads=3)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("position_embedding_type", "relative_key"),
        ("add_cross_attention", True),
        ("tie_word_embeddings", False),
        ("is_encoder_decoder", True),
        ("embedding_size", 128),
        ("auto_map", {"AutoModel": "modeling.Model"}),
        ("pruned_heads", {"1": [0]}),
        ("quantization_config", {"bits": 4}),
        ("hidden_act", "quick_gelu"),
        ("hidden_size", -1),
        ("hidden_size", 10**12),
        ("hidden_dropout_prob", 1.0),
        ("layer_norm_eps", float("nan")),
        ("pad_token_id", 1),
        ("classifier_dropout", 1.0),
        ("problem_type", "ranking"),
    ],
)
def test_what_we_do_not_do_is_refused_by_name(key, value):
    with pytest.raises(CheckpointError, match=key):
        BertConfig.from_dict({key: value}, "config.json")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("deberta-v2", r"m/ is DeBERTa.* answerdotai/ModernBERT-base .*all-mpnet-base-v2"),
        ("gpt2", "m/ is GPT-2.* `bertkit pretrain` a small model"),
        ("squeezenet", "m/ is model_type 'squeezenet'.* answerdotai/ModernBERT-base"),
        ("rembert", "m/ is RemBERT.* FacebookAI/xlm-roberta-base .*paraphrase-multilingual"),
        ("bertkit-lstm", "m/ is a bertkit-lstm, not a BERT"),
    ],
)
def test_another_family_is_named_with_a_bert_that_does_its_job(kind, said):
    foreign = {"model_type": kind, "pad_token_id": 1, "n_layers": 2}
    with pytest.raises(CheckpointError, match=said) as refused:
        BertConfig.from_dict(foreign, "m/")
    assert "pad_token_id" not in str(refused.value)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ({"id2label": {"1": "yes", "0": "no"}}, ["no", "yes"]),
        ({"id2label": {0: "no", 1: "yes"}, "num_labels": 2}, ["no", "yes"]),
        ({"id2label": {"0": "no"}, "label2id": {"no": 0}}, ["no"]),
        ({"id2label": {"0": "no", "1": "yes"}, "label2id": {"no": "0", "yes": "1"}}, ["no", "yes"]),
        ({"num_labels": 3}, ["LABEL_0", "LABEL_1", "LABEL_2"]),
        ({"num_labels": 1, "id2label": None, "problem_type": "regression"}, ["LABEL_0"]),
    ],
)
def test_labels_are_kept_in_both_directions(values, labels):
    config = BertConfig.from_dict(values, "config.json")
    assert config.id2label == dict(enumerate(labels))
    assert config.num_labels == len(labels)
    content = json.loads(json.dumps(config.to_dict()))
    assert content["id2label"] == {str(id_): label for id_, label in enumerate(labels)}
    assert content["label2id"] == {label: id_ for id_, label in enumerate(labels)}
    assert BertConfig.from_dict(content, "config.json") == config


def test_a_config_that_says_nothing_of_labels_has_two_and_writes_none():
    config = BertConfig(id2label=None, label2id=None, problem_type=None, classifier_dropout=None)
    assert config.num_labels == 2
    names = {"id2label", "label2id", "num_labels", "problem_type", "classifier_dropout"}
    assert not names & config.to_dict().keys()


TWO = {"0": "no", "1": "yes"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"id2label": {"0": "no", "2": "yes"}}, "id2label has 2 ids, and 1 is missing"),
        ({"id2label": {"00": "no"}}, "id2label has 1 ids, and 0 is missing"),
        ({"id2label": {"0": "no", 0: "yes"}}, "id2label has 2 ids, and 1 is missing"),
        ({"id2label": {"0": ""}}, "labels in id2label must be"),
        ({"id2label": {"0": ["no"], "1": ["yes"]}}, "labels in id2label must be"),
        ({"id2label": {"0": "no", "1": "no"}}, "labels in id2label must be unique"),
        ({"id2label": {}}, "id2label must map 1 to 100,000 ids"),
        ({"id2label": ["no", "yes"]}, "id2label must map 1 to 100,000 ids"),
        ({"id2label": dict.fromkeys(range(100_001), "x")}, "id2label must map 1 to 100,000 ids"),
        ({"id2label": TWO, "label2id": {"no": 1, "yes": 0}}, "label2id contradicts id2label"),
        ({"id2label": TWO, "label2id": {"no": 0}}, "label2id contradicts id2label"),
        ({"id2label": TWO, "label2id": [0, 1]}, "label2id contradicts id2label"),
        ({"label2id": {"no": 0}}, "label2id requires id2label"),
        ({"id2label": TWO, "num_labels": 3}, "num_labels is 3, and id2label has 2"),
        ({"num_labels": 10**12}, "num_labels must be from 1 to 100,000, got 1000000000000"),
        ({"num_labels": 0}, "num_labels must be from 1"),
        ({"num_labels": True}, "num_labels must be from 1"),
        (
            {"num_labels": 1, "problem_type": "single_label_classification"},
            "problem_type='single_label_classification' needs at least two labels",
        ),
    ],
)
def test_labels_that_contradict_each_other_are_refused(values, message):
    with pytest.raises(CheckpointError, match=message):
        BertConfig.from_dict(values, "config.json")


def test_a_preset_that_is_not_there_lists_those_that_are():
    with pytest.raises(SettingsError, match=r"huge.*tiny, mini, small, medium, base, large"):
        BertConfig.preset("huge")


@pytest.mark.parametrize(
    ("name", "heads"), [("3x128", 2), ("1x64", 1), ("2x32", 1), ("5x96", 1), ("6x320", 5)]
)
def test_layers_by_width_have_heads_of_64_features(name, heads):
    config = BertConfig.preset(name, vocab_size=9)
    layers, width = map(int, name.split("x"))
    assert (config.num_hidden_layers, config.hidden_size) == (layers, width)
    assert (config.num_attention_heads, config.intermediate_size) == (heads, 4 * width)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("3x200", "must be a multiple of 64, the size of an attention head; use 3x192 or 3x256"),
        ("3x60", "3x60: the hidden size must be a multiple of 8; use 3x56 or 3x64"),
        ("3x3", "use 3x8 or 3x16"),
        ("0x64", "or layers x width, such as 3x128"),
        ("3X128", "or layers x width, such as 3x128"),
    ],
)
def test_a_width_that_can_not_be_divided_names_one_that_can(name, message):
    with pytest.raises(SettingsError, match=message):
        BertConfig.preset(name)
