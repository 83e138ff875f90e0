"""A model is opened once, and its parts are read when they are first asked for."""

import json
import shutil

import pytest

from bertkit.base.errors import SettingsError
from bertkit.checkpoints import huggingface
from bertkit.inference.loading import LoadedModel
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
    loaded = LoadedModel.load(BertModel, changed, "cpu")
    assert loaded.model.config == changed.config
    assert loaded.tokenizer is changed.tokenizer
    assert reads == ["config.json"]


def test_a_loaded_model_holds_no_weights_of_its_files_but_knows_them(small_folder):
    opened = OpenModel.open(small_folder)
    loaded = LoadedModel.load(BertModel, opened, "cpu")
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
