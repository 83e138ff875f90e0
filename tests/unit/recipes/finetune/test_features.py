import json
import shutil
from pathlib import Path

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.recipes.finetune.small import TASK, open_job, save_model
from tests.unit.recipes.stopping import stop_at
from transformers import AutoModelForSequenceClassification

from bertkit.base import storage
from bertkit.base.errors import CheckpointError, SettingsError, StoppedError, StorageError
from bertkit.checkpoints.safetensors_file import read_safetensors
from bertkit.inference.predictor import Classifier, EncodedExamples, Predictor
from bertkit.jobs.inspect import describe
from bertkit.recipes.finetune import frozen
from bertkit.recipes.finetune.comparison import FEATURE_LEARNING_RATES, list_trials
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.recipes.finetune.settings import FEATURE_RATE, FineTuneSettings, GridSearchSettings
from bertkit.tasks.tag import TagSettings

LINEAR = FineTuneSettings(features="linear", device="cpu")
BILSTM = FineTuneSettings(
    features="bilstm",
    feature_layers="last_four",
    lstm_hidden=8,
    epochs=8,
    batch_size=8,
    learning_rate=2e-2,
    device="cpu",
)
BRIEF = BILSTM.model_copy(update={"epochs": 2.0})


@pytest.fixture(scope="module")
def deep(made, tmp_path_factory):
    """A model with four layers."""
    folder = tmp_path_factory.mktemp("deep")
    save_model(folder, num_hidden_layers=4)
    return folder


@pytest.fixture
def deep_sources(sources, deep):
    return Sources("classify", str(deep), sources.train, sources.dev)


@pytest.fixture(scope="module")
def whole(made, deep, tmp_path_factory):
    """A BiLSTM on four layers that nothing interrupted; it has learned little."""
    output = tmp_path_factory.mktemp("features") / "model"
    sources = Sources("classify", str(deep), str(made / "train.csv"), str(made / "dev.csv"))
    finetune(sources, output, TASK, BRIEF)
    return output


def encoder_weights(folder: Path) -> dict[str, torch.Tensor]:
    tensors = read_safetensors(folder / "model.safetensors")
    return {name: tensor for name, tensor in tensors.items() if "encoder.layer" in name}


def test_a_linear_head_makes_a_model_that_transformers_loads(sources, tmp_path, capsys):
    output = tmp_path / "model"
    found = finetune(sources, output, TASK, LINEAR)
    assert "computing hidden states once: 0.0 MB" in capsys.readouterr().err
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


@pytest.mark.parametrize("is_linear", [False, True])
def test_a_head_of_ours_learns_and_is_loaded(deep_sources, tmp_path, is_linear):
    output = tmp_path / "model"
    linear = FineTuneSettings(features="linear", feature_layers="last_four", device="cpu")
    found = finetune(deep_sources, output, TASK, linear if is_linear else BILSTM)
    assert found.saved.metrics["accuracy"] >= 0.9
    config = json.loads((output / "config.json").read_text())
    assert config["architectures"] == ["BertFeatureBased"]
    lstm_hidden = None if is_linear else 8
    head = {"layers": "last_four", "lstm_hidden": lstm_hidden, "scores": "sequence"}
    assert config["feature_head"] == head
    classify = Classifier.load(output, precision="fp32")
    assert [each.label for each in classify(["the cat", "a dog lost"])] == ["good", "bad"]
    description = describe(output)
    assert description.architecture == "BertFeatureBased"
    assert not description.problems
    assert ("lstm" in description.heads) == (lstm_hidden is not None)


def test_words_are_tagged_by_a_bilstm(deep, tmp_path):
    path = tmp_path / "train.jsonl"
    texts = ["the cat saw", "a dog", "cat lost the dog hat", "hat"]
    rows = [
        {
            "tokens": text.split(),
            "tags": ["B-x" if word in {"cat", "dog"} else "O" for word in text.split()],
        }
        for text in texts * 4
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    sources = Sources("tag", str(deep), str(path), str(path))
    settings = BILSTM.model_copy(update={"feature_layers": "last", "epochs": 15.0})
    output = tmp_path / "model"
    found = finetune(sources, output, TagSettings(max_length=12), settings)
    assert found.saved.metrics["f1"] == 1.0
    tag = Predictor.load(output, engine="torch", precision="fp32")
    assert [entity.text for entity in tag(texts[2]).entities] == ["cat", "dog"]


def test_states_from_the_file_give_the_models_own_logits(deep_sources, tmp_path):
    job = open_job(deep_sources, TASK, BILSTM.model_copy(update={"precision": "fp32"}))
    everything = range(len(job.dev))
    expected = job.held_out_logits(everything)
    with job.caching(tmp_path):
        found = job.held_out_logits(everything)
        assert len(list((tmp_path / "states").iterdir())) == 2
    assert not (tmp_path / "states").exists()
    for ours, whole in zip(found, expected, strict=True):
        assert_close(ours, whole)


def test_a_stopped_run_goes_on_to_the_same_bits(whole, deep_sources, tmp_path, monkeypatch):
    output = tmp_path / "model"
    with monkeypatch.context() as patch:
        stop_at(7, patch)
        with pytest.raises(StoppedError):
            finetune(deep_sources, output, TASK, BRIEF)
    assert not (output / "run" / "states").exists()
    (output / "run" / "states").mkdir()
    (output / "run" / "states" / "train").write_text("what a killed process left")
    finetune(deep_sources, output, TASK, BRIEF)
    for name in ("model.safetensors", "metrics.json", "config.json", "README.md"):
        assert (output / name).read_bytes() == (whole / name).read_bytes(), name


def test_the_hub_is_not_told_that_transformers_loads_it(whole):
    card = (whole / "README.md").read_text()
    assert "library_name: bertkit\n" in card
    assert "pipeline_tag" not in card


def test_a_full_disk_is_told_before_and_while(sources, tmp_path, monkeypatch):
    settings = LINEAR
    usage = shutil.disk_usage(tmp_path)._replace(free=100)
    with monkeypatch.context() as patch:
        patch.setattr(frozen.shutil, "disk_usage", lambda _: usage)
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
        ({"layers": "last"}, "lstm_hidden"),
        ({"layers": "last_four", "lstm_hidden": 1 << 30, "scores": "token"}, "less than or equal"),
        ({"layers": "first", "lstm_hidden": 8, "scores": "token"}, "feature_head: layers"),
        ({"layers": "last_four", "lstm_hidden": 9, "scores": "sequence"}, "lstm"),
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
        finetune(sources, tmp_path / "out", TASK, BILSTM)
    assert not (tmp_path / "out").exists()


def test_settings_of_features():
    assert FineTuneSettings(features="bilstm").learning_rate == FEATURE_RATE
    assert FineTuneSettings(features="bilstm", learning_rate=1e-4).learning_rate == 1e-4
    assert FineTuneSettings().learning_rate == 3e-5
    for odd in (
        {"feature_layers": "last_four"},
        {"features": "linear", "freeze": "2"},
        {"features": "bilstm", "layer_decay": 0.9},
        {"features": "linear", "epochs": 2},
        {"features": "linear", "learning_rate": 1e-3},
    ):
        with pytest.raises(ValueError, match="feature"):
            FineTuneSettings(**odd)


def test_a_search_of_heads_has_rates_of_its_own():
    trials = list_trials(GridSearchSettings(search="paper"), FineTuneSettings(features="bilstm"))
    assert {trial.cell.learning_rate for trial in trials} == set(FEATURE_LEARNING_RATES)
    given = FineTuneSettings(features="bilstm", learning_rate=1e-4)
    with pytest.raises(SettingsError, match="leave out --learning-rate"):
        list_trials(GridSearchSettings(search="paper"), given)
    with pytest.raises(SettingsError, match="--features linear has none of them"):
        list_trials(GridSearchSettings(search="paper"), LINEAR)
