import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.hostile.case import Case
from tests.hostile.sentence_files import (
    ENCODER_FILE,
    LINEAR,
    MODULES,
    MODULES_FILE,
    SETTINGS_FILE,
    change_module,
    sentence_folder,
)
from tests.hostile.whole import CONFIG, tensors, to_json, whole_files

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.formats import FORMATS, open_checkpoint
from bertkit.checkpoints.sentence_modules import Dense, Normalize, Pooling
from bertkit.checkpoints.sentence_transformers import (
    SentenceModel,
    open_sentence_transformers,
    write_sentence_model,
)
from bertkit.checkpoints.torch_tensors import read_tensor
from bertkit.models.open_model import OpenModel

NEW_TYPES = [
    "sentence_transformers.base.modules.transformer.Transformer",
    "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
    "sentence_transformers.base.modules.dense.Dense",
    "sentence_transformers.base.modules.normalize.Normalize",
]


def make(folder: Path, changes: dict[str, bytes | None] | None = None) -> Path:
    return Case("", 0, sentence_folder(changes), None, "").write(folder)


def content_of(path: Path) -> object:
    return json.loads(path.read_text())


def test_a_whole_folder_says_all_this(tmp_path):
    model = OpenModel.open(make(tmp_path / "model")).sentences
    pooling, dense, normalize = model.modules
    assert pooling == Pooling(dimension=8, modes=("mean",), include_prompt=True)
    assert isinstance(dense, Dense)
    assert (dense.in_features, dense.out_features, dense.activation) == (8, 4, "tanh")
    assert torch.equal(read_tensor(dense.weight), LINEAR["linear.weight"])
    assert dense.bias is not None
    assert torch.equal(read_tensor(dense.bias), LINEAR["linear.bias"])
    assert normalize == Normalize()
    assert replace(model, modules=()) == SentenceModel(
        modules=(),
        max_seq_length=12,
        prompts={"query": "query: "},
        other={"__version__": {"sentence_transformers": "2.2.2"}},
    )


def test_the_settings_of_newer_versions_are_read(tmp_path):
    settings = {
        "model_type": "SentenceTransformer",
        "prompts": {"query": "q: ", "document": None},
        "default_prompt_name": "query",
        "similarity_fn_name": "dot",
        "truncate_dim": 3,
    }
    entries = [{**entry, "type": new} for entry, new in zip(MODULES, NEW_TYPES, strict=True)]
    folder = make(
        tmp_path / "model", {MODULES_FILE: to_json(entries), SETTINGS_FILE: to_json(settings)}
    )
    model = OpenModel.open(folder).sentences
    assert model.prompts == {"query": "q: "}
    assert (model.default_prompt, model.similarity, model.truncate_dimension) == ("query", "dot", 3)
    assert model.other == {}


@pytest.mark.parametrize(
    ("encoder", "tokenizer", "length"),
    [
        ({"max_seq_length": 9}, {"model_max_length": 7}, 9),
        ({"max_seq_length": None}, {"model_max_length": 7}, 7),
        ({"transformer_task": "feature-extraction"}, {"model_max_length": 7}, 7),
        (None, {"model_max_length": 10**30}, 16),
        (None, {"model_max_length": 1e30}, 16),
        (None, {}, 16),
        (None, None, 16),
    ],
)
def test_the_length_is_the_stated_one_or_the_tokenizers(tmp_path, encoder, tokenizer, length):
    changes = {
        ENCODER_FILE: None if encoder is None else to_json(encoder),
        "tokenizer_config.json": None if tokenizer is None else to_json(tokenizer),
    }
    assert OpenModel.open(make(tmp_path / "model", changes)).sentences.max_seq_length == length


def test_a_config_that_says_no_sizes_has_those_of_transformers(tmp_path):
    sizes = ("hidden_size", "max_position_embeddings")
    config = {key: value for key, value in CONFIG.items() if key not in sizes}
    pooling = {"embedding_dimension": 768, "pooling_mode": "cls"}
    changes = {
        "config.json": to_json(config),
        MODULES_FILE: to_json(MODULES[:2]),
        "1_Pooling/config.json": to_json(pooling),
        ENCODER_FILE: to_json({"do_lower_case": True}),
        "tokenizer_config.json": None,
    }
    model = OpenModel.open(make(tmp_path / "model", changes)).sentences
    assert (model.max_seq_length, model.lowercase) == (512, True)


def test_another_family_is_named_before_sizes_that_it_calls_otherwise(tmp_path):
    config = {"model_type": "deberta", "dim": CONFIG["hidden_size"], "n_layers": 2}
    folder = make(tmp_path / "model", {"config.json": to_json(config)})
    with pytest.raises(CheckpointError, match=f"{folder} is DeBERTa, which bertkit doesn.t"):
        _ = OpenModel.open(folder).sentences


def test_the_encoder_is_opened_as_any_checkpoint(tmp_path):
    folder = make(tmp_path / "model")
    checkpoint = open_checkpoint(folder)
    assert checkpoint.format == "sentence_transformers"
    assert checkpoint.folder == folder
    assert checkpoint.config == CONFIG
    assert checkpoint.tensors.keys() == tensors().keys()
    assert [path.name for path in checkpoint.files] == [
        "modules.json",
        "config.json",
        "model.safetensors",
    ]
    assert list(FORMATS).index("sentence_transformers") < list(FORMATS).index("huggingface")


def test_the_encoder_may_have_a_folder_of_its_own(tmp_path):
    files = sentence_folder(change_module(0, path="0_Transformer"))
    own = (*whole_files(), ENCODER_FILE)
    moved = {f"0_Transformer/{name}" if name in own else name: files[name] for name in files}
    folder = Case("", 0, moved, None, "").write(tmp_path / "model")
    checkpoint = open_sentence_transformers(folder)
    assert checkpoint.folder == folder / "0_Transformer"
    assert checkpoint.tensors.keys() == tensors().keys()
    assert OpenModel.open(folder).sentences.max_seq_length == 12


# text-embeddings-inference, commit 009f0677, router/src/lib.rs: `PoolConfig` has four Booleans that
# must be there, `STConfig` a whole number; later `NewSTConfig` takes prompts, each one text, and
# backends/candle/src/models/dense.rs (0d1b698f) a Dense config with these keys.
def test_text_embeddings_inference_finds_the_keys_that_it_demands(tmp_path):
    original = OpenModel.open(make(tmp_path / "model")).sentences
    write_sentence_model(tmp_path / "new", replace(original, prompts={"query": "q: "}))
    new = tmp_path / "new"
    assert content_of(new / MODULES_FILE) == MODULES
    assert content_of(new / "1_Pooling" / "config.json") == {
        "word_embedding_dimension": 8,
        "pooling_mode_cls_token": False,
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    assert content_of(new / ENCODER_FILE) == {"max_seq_length": 12, "do_lower_case": False}
    settings = content_of(new / SETTINGS_FILE)
    assert settings == {
        "__version__": {"sentence_transformers": "2.2.2"},
        "model_type": "SentenceTransformer",
        "prompts": {"query": "q: "},
        "default_prompt_name": None,
        "similarity_fn_name": None,
    }
    assert content_of(new / "2_Dense" / "config.json") == {
        "in_features": 8,
        "out_features": 4,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.Tanh",
    }
    assert (new / "2_Dense" / "model.safetensors").is_file()


@pytest.mark.parametrize("name", ["2_Dense/model.safetensors", "2_Dense/onnx/model.onnx_data"])
def test_the_weights_of_modules_are_part_of_the_identity(tmp_path, name):
    content = sentence_folder({name: b"0"})
    models = [Case("", 0, content | {name: data}, None, "") for data in (b"1", b"2")]
    opened = [OpenModel(case.write(tmp_path / f"{i}")) for i, case in enumerate(models)]
    assert name in {file.name for file in opened[0].describe_files()}
    assert opened[0].sha256 != opened[1].sha256


SCORING = {
    "transformer_task": "sequence-classification",
    "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}},
    "module_output_name": "scores",
}
CROSS_ENCODER = {"model_type": "CrossEncoder", "prompts": {}, "default_prompt_name": None}


def make_cross_encoder(folder: Path, encoder: object, settings: object) -> Path:
    """An encoder with its head, as a CrossEncoder is saved; it has no other modules."""
    changes = {
        MODULES_FILE: to_json([{**MODULES[0], "path": ""}]),
        ENCODER_FILE: to_json(encoder),
        SETTINGS_FILE: to_json(settings),
    }
    return make(folder, changes)


def test_a_cross_encoder_is_read_as_an_encoder_with_its_head(tmp_path):
    folder = make_cross_encoder(tmp_path / "model", SCORING, CROSS_ENCODER)
    opened = OpenModel.open(folder)
    assert opened.checkpoint.format == "huggingface"
    assert opened.sentences is None


@pytest.mark.parametrize(
    ("encoder", "settings"),
    [
        ({**SCORING, "transformer_task": "text-generation"}, CROSS_ENCODER),
        (SCORING, {**CROSS_ENCODER, "default_prompt_name": "query"}),
        (SCORING, {**CROSS_ENCODER, "model_type": "SparseEncoder"}),
    ],
)
def test_what_else_scores_texts_is_refused(tmp_path, encoder, settings):
    opened = OpenModel.open(make_cross_encoder(tmp_path / "model", encoder, settings))
    with pytest.raises(CheckpointError, match="and bertkit reads SentenceTransformer"):
        _ = opened.sentences


def test_a_length_that_is_that_of_all_positions_is_the_longest_text(tmp_path):
    """A RoBERTa's positions begin behind that of padding, which sentence-transformers ignores."""
    changes = {
        "config.json": to_json({**CONFIG, "model_type": "roberta", "pad_token_id": 1}),
        ENCODER_FILE: to_json({"max_seq_length": CONFIG["max_position_embeddings"]}),
    }
    assert OpenModel.open(make(tmp_path / "model", changes)).sentences.max_seq_length == 14
