"""A model is opened once, and its parts are read when they are first asked for."""

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.families import make_folder
from tests.unit.inference.small import build_sentence_model

from bertkit.base.errors import MissingFileError, SettingsError
from bertkit.checkpoints import huggingface
from bertkit.checkpoints.peft import AdapterOrigin, identify_base
from bertkit.checkpoints.sentence_transformers import write_sentence_model
from bertkit.inference.torch_model import TorchModel
from bertkit.jobs.convert import convert
from bertkit.jobs.export import export
from bertkit.jobs.settings import ConvertSettings
from bertkit.models.bert.adapter import adapt
from bertkit.models.bert.encoder import BertModel
from bertkit.models.open_model import OpenModel


@pytest.fixture
def reads(monkeypatch) -> list[str]:
    """The JSON files of a model that are parsed, in their order."""
    found: list[str] = []
    usual = huggingface.read_json

    def count(path, **limits):
        found.append(path.name)
        return usual(path, **limits)

    monkeypatch.setattr(huggingface, "read_json", count)
    return found


def test_opening_reads_nothing_and_each_part_is_read_once(small_folder, reads):
    opened = OpenModel.open(small_folder)
    assert reads == []
    assert OpenModel.open(opened) is opened
    changed = opened.change(hidden_dropout_prob=0.25)
    assert (opened.config.hidden_dropout_prob, changed.config.hidden_dropout_prob) == (0.1, 0.25)
    assert opened.architecture == changed.architecture == "BertForPreTraining"
    loaded = TorchModel.load(BertModel, changed, "cpu")
    assert loaded.model.config == changed.config
    assert loaded.tokenizer is changed.tokenizer
    assert reads == ["config.json"]


READ = """
import sys
sys.modules["torch"] = None  # importing it is an error
from pathlib import Path
from bertkit.jobs.convert import convert
from bertkit.jobs.inspect import describe
from bertkit.models.open_model import OpenModel
for folder in map(Path, sys.argv[1:]):
    opened = OpenModel.open(folder)
    arrays = opened.read_arrays(opened.architecture)
    convert(folder, folder.with_name(f"{folder.name}-new"))
    assert describe(folder).problems == ()
    print(opened.checkpoint.format, opened.architecture, len(arrays))
"""
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "tensorflow"


def test_weights_of_any_format_are_read_and_written_without_torch(small_folder, tmp_path):
    model = BertModel.from_pretrained(small_folder)
    for name in ("safetensors", "bin", "onnx", "sentences"):
        shutil.copytree(small_folder, tmp_path / name)
    torch.save(load_file(small_folder / "model.safetensors"), tmp_path / "bin/pytorch_model.bin")
    export(small_folder, tmp_path / "exported")
    shutil.copytree(tmp_path / "exported/onnx", tmp_path / "onnx/onnx")
    for name in ("bin", "onnx"):
        (tmp_path / name / "model.safetensors").unlink()
    write_sentence_model(tmp_path / "sentences", build_sentence_model(model.pooler.dense))
    base = OpenModel.open(small_folder).checkpoint
    adapt(model, rank=2)
    model.adapter_origin = AdapterOrigin(str(small_folder), None, identify_base(base))
    model.save_pretrained(tmp_path / "adapter")
    shutil.copytree(GOLDEN, tmp_path / "golden")
    names = ("safetensors", "bin", "onnx", "sentences", "adapter", "golden")
    result = subprocess.run(
        [sys.executable, "-c", READ, *(tmp_path / name for name in names)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout.splitlines() == [
        *["huggingface BertForPreTraining 38"] * 3,
        "sentence_transformers BertForPreTraining 38",
        "peft BertModel 31",
        "tensorflow BertForPreTraining 38",
    ], result.stderr


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_words_are_looked_up_in_the_file(small_folder, tmp_path, dtype):
    convert(small_folder, tmp_path / "new", ConvertSettings(dtype=dtype))
    opened = OpenModel.open(tmp_path / "new")
    expected = opened.read_arrays("BertModel")["encoder.embeddings.word.weight"]
    words = pickle.loads(pickle.dumps(opened.read_words()))
    places = np.array([3, 0, 3])
    assert np.array_equal(words[places], expected[places])
    assert np.array_equal(words.read(), expected)
    assert words[places].dtype == words.read().dtype == np.float32


def test_a_loaded_model_holds_no_weights_of_its_files_but_knows_them(small_folder):
    opened = OpenModel.open(small_folder)
    loaded = TorchModel.load(BertModel, opened, "cpu")
    assert loaded.opened.checkpoint.tensors == {}
    assert loaded.opened.sha256 == opened.sha256
    assert loaded.opened.describe_files() == opened.describe_files()


def test_the_identity_is_that_of_the_files_wherever_they_are(small_folder, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(small_folder, moved)
    assert OpenModel.open(moved).sha256 == OpenModel.open(small_folder).sha256
    config = json.loads((moved / "config.json").read_text("utf-8"))
    (moved / "config.json").write_text(json.dumps({**config, "more": 1}), encoding="utf-8")
    assert OpenModel.open(moved).sha256 != OpenModel.open(small_folder).sha256


def test_an_open_model_has_its_revision(small_folder):
    with pytest.raises(SettingsError, match="give the revision where it is opened"):
        OpenModel.open(OpenModel.open(small_folder), revision="main")


def test_a_model_of_the_hub_without_a_tokenizer_that_is_read_says_how_one_is_made(tmp_path):
    folder = tmp_path / "models--someone--twitter-roberta" / "snapshots" / ("0" * 40)
    make_folder(folder, "roberta", with_tokenizer=False)
    with pytest.raises(MissingFileError, match=r"^someone/twitter-roberta has no tok"):
        _ = OpenModel(folder).tokenizer
