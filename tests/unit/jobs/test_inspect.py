"""A description tells what the files hold, and of broken ones what it can."""

import hashlib
import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.unit.inference.small import build_model, build_sentence_model, save_run, save_small

from bertkit.base.errors import DamagedFileError, MissingFileError, SettingsError
from bertkit.checkpoints.sentence_transformers import write_sentence_model
from bertkit.jobs.inspect import describe
from bertkit.models.bert.encoder import BertModel

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "tensorflow"
BACKBONE = ["encoder.embeddings", "encoder.layers", "pooler"]


@pytest.fixture
def folder(tmp_path):
    save_small(tmp_path)
    return tmp_path


def rewrite_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def count(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_all_parts_are_counted_with_and_without_weights(folder):
    description = describe(folder)
    assert [*description.parameters] == [*BACKBONE, "masked_lm", "next_sentence"]
    assert description.heads == ("pooler", "masked_lm", "next_sentence")
    assert description.num_parameters == count(build_model())
    assert description.dtypes == {"float32": 46}
    assert description.problems == ()
    (folder / "model.safetensors").unlink()
    planned = describe(folder)
    (problem,) = planned.problems
    assert "has no model.safetensors or pytorch_model.bin" in problem
    assert (planned.heads, planned.dtypes) == ((), {})
    assert planned.architecture == description.architecture
    assert {**planned.parameters} == {**description.parameters}


def test_files_have_sizes_and_hashes(folder):
    files = {file.name: file for file in describe(folder).files}
    names = {"config.json", "model.safetensors", "vocab.txt", "tokenizer.json"}
    assert files.keys() == names | {"tokenizer_config.json"}
    for name, file in files.items():
        content = (folder / name).read_bytes()
        assert (file.size_bytes, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())


def test_the_tokenizer_is_told_and_one_that_is_too_large_is_a_problem(folder):
    tokenizer = {"entries": 15, "lowercase": True, "strip_accents": True, "split_cjk": True}
    assert describe(folder).tokenizer == tokenizer
    with (folder / "tokenizer_manifest.json").open("a") as stream:
        stream.write("x")
    description = describe(folder)
    assert description.tokenizer is None
    assert "tokenizer_manifest.json" in description.problems[0]


def test_a_vocabulary_larger_than_the_model_is_a_problem(tmp_path):
    save_small(tmp_path, vocab_size=9)
    (problem,) = describe(tmp_path).problems
    assert "they don't match" in problem


def test_a_tensorflow_checkpoint_by_folder_and_by_prefix():
    description = describe(GOLDEN)
    assert (description.format, description.problems) == ("tensorflow", ())
    assert description.num_parameters == 1951
    assert {file.name for file in description.files} == {
        "bert_config.json",
        "bert_model.ckpt.index",
        "bert_model.ckpt.data-00000-of-00001",
        "vocab.txt",
    }
    assert describe(GOLDEN / "bert_model.ckpt") == description


def test_what_makes_a_vector_of_sentences_is_told(folder):
    linear = BertModel(build_model().config).pooler.dense
    write_sentence_model(folder, build_sentence_model(linear))
    description = describe(folder)
    assert description.format == "sentence_transformers"
    assert description.sentences["modules"] == ["pooling: mean", "dense: 8 → 8, tanh", "normalize"]
    assert description.sentences["prompts"] == {"query": "seek: "}
    names = {file.name for file in description.files}
    assert {"modules.json", "1_Pooling/config.json", "2_Dense/model.safetensors"} <= names
    (folder / "1_Pooling" / "config.json").write_text("[")
    (problem,) = set(describe(folder).problems)
    assert "1_Pooling/config.json isn't JSON" in problem


def test_a_damaged_run_is_described_by_its_config(tmp_path):
    checkpoint = save_run(tmp_path)
    content = (checkpoint / "model.safetensors").read_bytes()
    (checkpoint / "model.safetensors").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    description = describe(tmp_path)
    assert description.format == "run_folder"
    assert "model.safetensors is damaged" in description.problems[0]
    assert description.training["steps"] == 3
    assert "model.safetensors" in {file.name for file in description.files}
    (checkpoint / "run_state.json").write_text("{}")
    description = describe(tmp_path)
    assert description.training is None
    assert "run_state.json" in description.problems[-1]


def test_a_foreign_head_is_counted_and_what_is_no_weight_of_its_own_is_not(folder):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    without_heads = {name: t for name, t in tensors.items() if "pooler" not in name}
    copied = tensors["bert.embeddings.word_embeddings.weight"].clone()
    save_file(
        {
            **without_heads,
            "cls.predictions.decoder.weight": copied,
            "bert.embeddings.position_ids": torch.arange(24)[None],
            "qa_outputs.weight": torch.zeros(2, 8),
        },
        path,
    )
    rewrite_config(folder, architectures=["BertForMaskedLM"])
    description = describe(folder)
    assert description.architecture == "BertForMaskedLM"
    assert "pooler" not in description.parameters
    assert description.parameters["qa_outputs"] == 16
    assert description.num_parameters == count(build_model()) - (8 * 8 + 8) + 16


def test_a_foreign_architecture_without_weights_is_not_guessed(folder):
    (folder / "model.safetensors").unlink()
    rewrite_config(folder, architectures=["BertForMaskedLM"])
    masked = describe(folder)
    assert [*masked.parameters] == ["encoder.embeddings", "encoder.layers", "masked_lm"]
    (folder / "settings.json").write_text("{}")  # of something else than a run
    rewrite_config(folder, architectures=["BertForFun"])
    unknown = describe(folder)
    assert (unknown.architecture, unknown.parameters) == ("BertForFun", {})
    assert unknown.training is None


@pytest.mark.parametrize("value", [5, "BertForPreTraining", [5], {"a": 1}])
def test_architectures_that_are_no_list_of_names_are_a_problem(folder, value):
    rewrite_config(folder, architectures=value)
    description = describe(folder)
    assert "architectures must be a list of names" in description.problems[0]
    assert description.architecture == "BertForPreTraining"


@pytest.mark.parametrize("value", [None, []])
def test_without_a_name_the_heads_tell(folder, value):
    rewrite_config(folder, architectures=value)
    assert describe(folder).architecture == "BertForPreTraining"
    (folder / "model.safetensors").unlink()
    assert describe(folder).architecture == "BertModel"


def test_a_config_that_means_something_else_is_a_problem_and_the_rest_is_told(folder):
    rewrite_config(folder, add_cross_attention=True)
    description = describe(folder)
    assert "add_cross_attention" in description.problems[0]
    assert description.num_attention_heads is None
    assert description.num_parameters == count(build_model())
    (folder / "model.safetensors").unlink()
    assert describe(folder).parameters == {}


def test_tensors_that_do_not_fit_are_named(folder):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors.pop("bert.pooler.dense.bias")
    tensors["bert.embeddings.position_embeddings.weight"] = torch.zeros(25, 8)
    tensors["cls.predictions.decoder.weight"] = torch.zeros(15, 8)
    save_file({**tensors, "extra.weight": torch.zeros(1)}, path)
    description = describe(folder)
    unequal = "cls.predictions.decoder.weight must equal bert.embeddings.word_embeddings.weight"
    assert description.problems == (
        "bert.embeddings.position_embeddings.weight is [25, 8] and must be [24, 8]",
        "unknown extra.weight",
        "missing bert.pooler.dense.bias",
        f"{unequal}, and doesn't",
    )
    assert description.dropped == ("cls.predictions.decoder.weight",)


def test_where_nothing_can_be_read_the_first_reason_is_told(folder, tmp_path_factory):
    (folder / "config.json").write_text("[")
    with pytest.raises(DamagedFileError, match=r"config\.json isn't JSON"):
        describe(folder)
    with pytest.raises(MissingFileError, match="is no model folder"):
        describe(tmp_path_factory.mktemp("empty"))
    with pytest.raises(SettingsError, match="leave it out"):
        describe(folder, revision="main")


def test_a_link_to_a_pipe_is_not_waited_for(folder):
    os.mkfifo(folder / "pipe")
    (folder / "special_tokens_map.json").symlink_to("pipe")
    assert any("must be a file" in problem for problem in describe(folder).problems)
