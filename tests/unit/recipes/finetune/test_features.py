import json
import shutil
from pathlib import Path

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.recipes.finetune.small import TASK, save_model
from transformers import AutoModelForSequenceClassification

from bertkit.base import storage
from bertkit.base.errors import CheckpointError, StorageError
from bertkit.checkpoints.torch_tensors import read_safetensors
from bertkit.inference.predictor import Classifier, EncodedExamples
from bertkit.jobs.inspect import describe
from bertkit.recipes import solved_head
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.recipes.finetune.settings import FineTuneSettings

LINEAR = FineTuneSettings(features="last", device="cpu")
FOUR_LAYERS = FineTuneSettings(features="last_four", device="cpu")


@pytest.fixture(scope="module")
def deep(made, tmp_path_factory):
    """A model with four layers."""
    folder = tmp_path_factory.mktemp("deep")
    save_model(folder, num_hidden_layers=4)
    return folder


@pytest.fixture(scope="module")
def whole(made, deep, tmp_path_factory):
    """A linear layer on four layers."""
    output = tmp_path_factory.mktemp("features") / "model"
    sources = Sources("classify", str(deep), str(made / "train.csv"), str(made / "dev.csv"))
    finetune(sources, output, TASK, FOUR_LAYERS)
    return output


def encoder_weights(folder: Path) -> dict[str, torch.Tensor]:
    tensors = read_safetensors(folder / "model.safetensors")
    return {name: tensor for name, tensor in tensors.items() if "encoder.layer" in name}


def test_a_linear_head_makes_a_model_that_transformers_loads(sources, tmp_path, capsys):
    output = tmp_path / "model"
    found = finetune(sources, output, TASK, LINEAR)
    assert "computed hidden states once: 0.0 MB" in capsys.readouterr().err
    assert found.saved.metrics["accuracy"] > 0.8
    assert (found.saved.num_steps, found.saved.best_step) == (0, 0)
    assert not (output / "run" / "summaries").exists()
    before, after = encoder_weights(Path(sources.model)), encoder_weights(output)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    theirs = AutoModelForSequenceClassification.from_pretrained(output).eval()
    ours = Classifier.load(output, engine="torch", precision="fp32")
    encoded = ours.task.encode([ours.task.make_example("the cat", "")], ours.loaded.tokenizer)
    logits = theirs(torch.tensor([encoded[0].sequences[0].ids])).logits.detach().numpy()
    assert_close(ours.compute_window(EncodedExamples([], encoded))[0], logits)


def test_a_head_of_ours_learns_and_is_loaded(whole):
    saved = json.loads((whole / "metrics.json").read_text())
    assert saved["metrics"]["accuracy"] >= 0.9
    config = json.loads((whole / "config.json").read_text())
    assert config["architectures"] == ["BertFeatureBased"]
    head = {"layers": "last_four", "lstm_hidden": None, "scores": "sequence"}
    assert config["feature_head"] == head
    classify = Classifier.load(whole, precision="fp32")
    assert [each.label for each in classify(["the cat", "a dog lost"])] == ["good", "bad"]
    description = describe(whole)
    assert description.architecture == "BertFeatureBased"
    assert not description.problems


def test_a_full_disk_is_told_before_and_while(sources, tmp_path, monkeypatch):
    settings = LINEAR
    usage = shutil.disk_usage(tmp_path)._replace(free=100)
    with monkeypatch.context() as patch:
        patch.setattr(solved_head.shutil, "disk_usage", lambda _: usage)
        with pytest.raises(StorageError, match=r"the disk has 0\.0 MB left; make room"):
            finetune(sources, tmp_path / "out", TASK, settings)

    open_new = storage.open_new

    def refuse(path: Path) -> int:
        if path.parent.name == "summaries":
            raise OSError(28, "No space left on device")
        return open_new(path)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "open_new", refuse)
        with pytest.raises(StorageError, match=r"summaries/train can't be written: No space left"):
            finetune(sources, tmp_path / "out", TASK, settings)
    assert not (tmp_path / "out" / "run" / "summaries").exists()
    finetune(sources, tmp_path / "out", TASK, settings)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (None, "feature_head"),
        ({"layers": "first", "lstm_hidden": None, "scores": "token"}, "feature_head: layers"),
        ({"layers": "last", "lstm_hidden": None, "scores": "sequence"}, "classifier"),
    ],
)
def test_a_head_that_cant_be_meant_is_refused(whole, tmp_path, head, message):
    output = tmp_path / "model"
    shutil.copytree(whole, output)
    config = json.loads((output / "config.json").read_text())
    config["feature_head"] = head
    (output / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=message):
        Classifier.load(output)
    assert any(message in problem for problem in describe(output).problems)


def test_four_layers_are_asked_of_a_model_that_has_them(sources, tmp_path):
    with pytest.raises(CheckpointError, match="the last four layers, and the encoder has only 2"):
        finetune(sources, tmp_path / "out", TASK, FOUR_LAYERS)
    assert not (tmp_path / "out").exists()


def test_settings_of_features():
    assert FineTuneSettings().learning_rate == 3e-5
    for odd in (
        {"features": "last", "freeze": "2"},
        {"features": "last", "layer_decay": 0.9},
        {"features": "last", "epochs": 2},
        {"features": "last", "learning_rate": 1e-3},
    ):
        with pytest.raises(ValueError, match="feature"):
            FineTuneSettings(**odd)
