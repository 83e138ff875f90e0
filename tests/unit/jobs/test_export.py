"""What a folder says is what its exported model does; what is wrong leaves nothing behind."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.inference.small import build_model, build_sentence_model, save_run

from bertkit import Tokenizer
from bertkit.base.errors import (
    BertkitError,
    CheckpointError,
    MissingExtraError,
    MissingFileError,
    ResumeError,
)
from bertkit.base.extras import describe_install
from bertkit.base.output import open_output
from bertkit.checkpoints.sentence_modules import Pooling
from bertkit.checkpoints.sentence_transformers import write_sentence_model
from bertkit.jobs.export import export
from bertkit.jobs.settings import ExportSettings
from bertkit.models.bert.encoder import BertModel
from bertkit.models.open_model import OpenModel

TOKENIZER = {"vocab.txt", "tokenizer.json", "tokenizer_config.json", "tokenizer_manifest.json"}


def save_sentences(source: Path, *, include_prompt: bool = True) -> None:
    linear = BertModel(build_model().config).pooler.dense
    model = build_sentence_model(linear)
    pooling = Pooling(dimension=8, modes=("mean",), include_prompt=include_prompt)
    write_sentence_model(source, replace(model, modules=(pooling, *model.modules[1:])))


def test_a_model_is_exported_with_its_tokenizer(source, output):
    (source / "LICENSE").write_text("free")
    result = export(source, output)
    written = {
        path.relative_to(output).as_posix(): path.stat().st_size
        for path in output.rglob("*")
        if path.is_file()
    }
    assert written.keys() == {"onnx/model.onnx", "config.json", "LICENSE", *TOKENIZER}
    assert {name: record.size_bytes for name, record in result.files.items()} == written
    assert result.size_bytes == sum(written.values())
    assert (result.folder, result.target) == (output, "onnx")
    assert result.outputs == ("logits", "seq_relationship_logits")
    assert result.notes == ()
    assert Tokenizer.load(output).fingerprint == Tokenizer.load(source).fingerprint
    config = json.loads((output / "config.json").read_text())
    assert (config["architectures"], config["dtype"]) == (
        ["BertForPreTraining"],
        "float32",
    )
    assert config["hidden_size"] == 8


def test_the_encoder_alone_is_exported_on_request(source, output):
    result = export(source, output, ExportSettings(encoder_only=True))
    assert result.outputs == ("last_hidden_state", "pooler_output")
    assert result.notes == ("BertModel was exported, without masked_lm and next_sentence",)


def test_a_run_is_exported(tmp_path, output):
    save_run(tmp_path / "run")
    assert "onnx/model.onnx" in export(tmp_path / "run", output).files


def test_integers_have_the_name_that_transformers_js_gives_them(source, output):
    result = export(source, output, ExportSettings(precision="int8"))
    assert {name for name in result.files if "onnx" in name} == {"onnx/model_quantized.onnx"}
    assert OpenModel.open(output).checkpoint.files[1] == output / "onnx/model_quantized.onnx"


def test_a_file_in_the_wrong_place_is_named(source, output):
    export(source, output)
    (output / "onnx" / "model.onnx").rename(output / "model.onnx")
    with pytest.raises(MissingFileError, match=r"in the wrong place; move it to onnx/model.onnx"):
        OpenModel.open(output).checkpoint  # noqa: B018


def test_a_model_of_sentences_keeps_what_it_says(source, output):
    save_sentences(source)
    result = export(source, output, ExportSettings())
    assert result.outputs == ("last_hidden_state", "pooler_output", "sentence_embedding")
    files = {"modules.json", "sentence_bert_config.json", "1_Pooling/config.json"}
    assert files <= result.files.keys()
    assert OpenModel.open(output).sentences.prompts == {"query": "seek: "}


def test_a_prompt_that_does_not_count_keeps_the_vector_out(source, output):
    save_sentences(source, include_prompt=False)
    result = export(source, output)
    assert result.outputs == ("last_hidden_state", "pooler_output")
    assert any("excludes prompt tokens" in note for note in result.notes)


def refuse(source: Path, output: Path, kind: type[BertkitError], message: str) -> None:
    before = sorted(source.parent.iterdir())
    with pytest.raises(kind, match=message):
        export(source, output)
    assert sorted(source.parent.iterdir()) == before


def test_two_do_not_export_into_one_folder(source, output):
    with open_output(output, "exporting into"):
        refuse(source, output, ResumeError, "exporting into")


def test_weights_that_are_not_finite_are_refused(source, output):
    model = build_model()
    state = model.encoder.embeddings.word.weight
    with torch.no_grad():
        state[3, 3] = torch.nan
    from safetensors.torch import load_file, save_file

    path = source / "model.safetensors"
    name = "bert.embeddings.word_embeddings.weight"
    save_file({**load_file(path), name: state.detach()}, path)
    refuse(source, output, CheckpointError, "word_embeddings")


def test_without_the_extra_nothing_is_written(source, output, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    refuse(source, output, MissingExtraError, f"needs onnx.*{re.escape(describe_install('onnx'))}")
    refuse(
        source / "no", output, MissingExtraError, "exporting a model needs onnx"
    )  # before it is opened
