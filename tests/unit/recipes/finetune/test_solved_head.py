"""The solved head: its optimum, its penalty, and the runs that begin with it."""

import json
import shutil
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from tests.closeness import assert_close
from tests.unit.recipes.finetune.small import TASK, make_rows, open_job, save_model, write_rows
from tests.unit.recipes.stopping import interrupt, read_rows

from bertkit.base.errors import NonFiniteError, StoppedError
from bertkit.checkpoints.sentence_modules import Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel, write_sentence_model
from bertkit.inference.predictor import Classifier
from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.recipes import solved_head
from bertkit.recipes.finetune import run as recipe
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.recipes.finetune.settings import SENTENCE_RATE, FineTuneSettings
from bertkit.recipes.solved_head import Features, HeadSolver, deal_folds, solve_head, write_features
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.texts import Texts
from bertkit.training import lifecycle

LINEAR = FineTuneSettings(features="last", device="cpu")
DEFAULT = FineTuneSettings(device="cpu")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A folder of sentence-transformers that averages tokens."""
    return save_encoder(tmp_path_factory.mktemp("sentences") / "encoder", "mean")


def save_encoder(folder: Path, mode: str) -> Path:
    save_model(folder)
    write_sentence_model(folder, SentenceModel((Pooling(32, (mode,)),), max_seq_length=24))
    return folder


def read_features(job, folder: Path) -> np.ndarray:
    """What the layer reads of the training examples, in their order."""
    features = write_features(folder / "rows", job.frozen)
    return features.rows[features.find_rows(range(len(job.train)))]


@pytest.mark.parametrize("rows_per_part", [65_536, 7])
def test_it_is_the_optimum_that_scikit_learn_finds(sources, tmp_path, monkeypatch, rows_per_part):
    monkeypatch.setattr(solved_head, "ROWS_PER_PART", rows_per_part)
    monkeypatch.setattr(solved_head, "PENALTIES", (0.1,))
    job = open_job(sources, TASK, LINEAR)
    solve_head(tmp_path / "run", job.frozen)
    features = read_features(job, tmp_path)
    scaled = (features - features.mean(axis=0)) / features.std(axis=0)
    labels = np.array([one.labels[0] for one in job.train])
    # Two rows of weights that share the penalty are half a row of one logit each.
    peer = LogisticRegression(C=2 / (0.1 * len(labels)), tol=1e-8, max_iter=1000)
    peer.fit(scaled, labels)
    with torch.no_grad():
        logits = job.model.last_linear(torch.from_numpy(features)).numpy()
    expected = peer.decision_function(scaled)
    assert_close(logits[:, 1] - logits[:, 0], expected, within=0.02)


def test_numbers_are_solved_as_by_ridge_regression(made, tmp_path, monkeypatch):
    monkeypatch.setattr(solved_head, "PENALTIES", (0.1,))
    rows = [f"{row.rpartition(',')[0]},{index % 7}" for index, row in enumerate(make_rows(40, 1))]
    table = write_rows(tmp_path / "numbers.csv", rows)
    sources = Sources("regress", str(made / "model"), str(table), str(table))
    job = open_job(sources, RegressSettings(max_length=12), LINEAR)
    solve_head(tmp_path / "run", job.frozen)
    features = read_features(job, tmp_path)
    scaled = (features - features.mean(axis=0)) / features.std(axis=0)
    numbers = np.array([one.labels[0] for one in job.train])
    peer = Ridge(alpha=0.1 / 2 * len(numbers)).fit(scaled, numbers)
    with torch.no_grad():
        found = job.model.last_linear(torch.from_numpy(features))[:, 0].numpy()
    assert_close(found, peer.predict(scaled), within=0.01)


def test_noise_gets_a_large_penalty_and_a_clear_signal_a_small_one(sources, tmp_path):
    job = open_job(sources, TASK, LINEAR)
    features = write_features(tmp_path / "rows", job.frozen)
    labels = np.concatenate([one.labels for one in job.train])
    generator = np.random.default_rng(0)
    noise = generator.normal(size=features.rows.shape).astype(np.float32)
    signal = noise.copy()
    for number, label in enumerate(labels):
        signal[features.find_rows([number]), 0] = 20.0 * label
    for rows, is_large in ((noise, True), (signal, False)):
        penalty = HeadSolver(job.frozen, Features(rows, features.row_ranges)).solve()
        assert (penalty >= 1.0) == is_large


def test_each_example_is_predicted_without_its_fold(sources, tmp_path, monkeypatch):
    monkeypatch.setattr(solved_head, "PENALTIES", (0.1,))
    job = open_job(sources, TASK, LINEAR)
    features = write_features(tmp_path / "rows", job.frozen)
    folds = deal_folds(job.data.train.examples, seed=0)
    found = HeadSolver(job.frozen, features, folds).cross_validate(0.1)
    rows = features.rows[features.find_rows(range(len(job.train)))]
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    labels = np.array([one.labels[0] for one in job.train])
    kept = sorted({*range(len(labels))}.difference(folds[1]))
    peer = LogisticRegression(C=2 / (0.1 * len(kept)), tol=1e-8, max_iter=1000)
    peer.fit(scaled[kept], labels[kept])
    margins = np.array([found[number][0, 1] - found[number][0, 0] for number in folds[1]])
    assert_close(margins, peer.decision_function(scaled[folds[1]]), within=0.02)


def test_folds_keep_equal_texts_together_and_shares_of_classes():
    texts = [Texts(f"text {number % 30}") for number in range(60)]
    rare = ClassifyExample(Texts("odd"), ("rare",), "line 61")
    examples = [ClassifyExample(text, ("usual",), "") for text in texts] + [rare]
    folds = deal_folds(examples, seed=3)
    assert sorted(chain.from_iterable(folds)) == list(range(61))
    assert max(map(len, folds)) - min(map(len, folds)) <= 3
    assert all(number + 30 in fold for fold in folds for number in fold if number < 30)
    (fold,) = (fold for fold in deal_folds(examples, seed=3, twins={1: 0}) if 0 in fold)
    assert {0, 1, 30} <= {*fold}


def test_features_without_an_end_are_refused(sources, tmp_path):
    job = open_job(sources, TASK, LINEAR)
    with torch.no_grad():
        job.model.pooler.dense.weight[0] = torch.nan
    with pytest.raises(NonFiniteError, match="hidden states aren't finite"):
        solve_head(tmp_path / "run", job.frozen)
    assert not (tmp_path / "run" / "summaries").exists()


@pytest.mark.parametrize("pooling", [None, "max", "cls"])
def test_a_sentence_encoder_keeps_its_pooling_unless_another_is_set(
    sources, encoder, tmp_path, capsys, pooling
):
    output = tmp_path / "model"
    of_encoder = Sources("classify", str(encoder), sources.train, sources.dev)
    task = TASK.model_copy(update={"pooling": pooling})
    found = finetune(of_encoder, output, task, DEFAULT)
    assert "solved the head in" in capsys.readouterr().err
    assert found.saved.metrics["accuracy"] > 0.9
    assert found.saved.num_steps == 6  # 3 epochs of 2 steps, where other models get 20
    config = json.loads((output / "config.json").read_text())
    card = (output / "README.md").read_text()
    if pooling == "cls":
        assert config["architectures"] == ["BertForSequenceClassification"]
        assert "feature_head" not in config
        assert "library_name: transformers" in card
    else:
        assert config["architectures"] == ["BertFeatureBased"]
        assert config["feature_head"]["pooling"] == (pooling or "mean")
        assert "library_name: sentence-transformers" in card
    record = json.loads((output / "run" / "settings.json").read_text())
    assert record["settings"]["learning_rate"] is None
    classify = Classifier.load(output, precision="fp32")
    assert [each.label for each in classify(["the cat", "a dog"])] == ["good", "bad"]


def test_training_that_makes_a_solved_head_worse_is_undone(encoder, tmp_path):
    train = write_rows(tmp_path / "train.csv", make_rows(24, 3))
    swapped = [row.replace("cat", "dog" if "cat" in row else "cat") for row in make_rows(16, 4)]
    dev = write_rows(tmp_path / "dev.csv", [*swapped[:12], *make_rows(4, 5)])
    sources = Sources("classify", str(encoder), str(train), str(dev))
    found = finetune(sources, tmp_path / "model", TASK, replace_rate(DEFAULT, 0.05))
    rows = [row for row in read_rows(tmp_path / "model") if row["event"] == "eval"]
    losses = {row["step"]: row["loss"] for row in rows}
    assert min(losses, key=losses.__getitem__) == 0
    assert (found.saved.best_step, found.saved.best_epoch) == (0, 0.0)
    assert "before the first step" in (tmp_path / "model" / "README.md").read_text()
    linear = finetune(sources, tmp_path / "solved", TASK, LINEAR)
    assert found.saved.metrics == linear.saved.metrics


def replace_rate(settings: FineTuneSettings, learning_rate: float) -> FineTuneSettings:
    return FineTuneSettings(**{**settings.model_dump(), "learning_rate": learning_rate})


def test_a_run_that_was_stopped_has_the_same_settings(sources, encoder, tmp_path, monkeypatch):
    of_encoder = Sources("classify", str(encoder), sources.train, sources.dev)
    whole, output = tmp_path / "whole", tmp_path / "model"
    settings = FineTuneSettings(device="cpu", checkpoint_every=2, keep=1)
    finetune(of_encoder, whole, TASK, settings)
    rates = []
    train_to_end = lifecycle.train_to_end

    def note(job, *rest):
        rates.append(job.settings.learning_rate)
        return train_to_end(job, *rest)

    monkeypatch.setattr(lifecycle, "train_to_end", note)
    shutil.copytree(whole, output)
    for path in output.iterdir():
        if path.is_file():
            path.unlink()
    checkpoints = sorted((output / "run" / "checkpoints").iterdir())
    shutil.rmtree(checkpoints[-1])
    finetune(of_encoder, output, TASK, settings)
    assert rates == [SENTENCE_RATE]
    weights = [(folder / "model.safetensors").read_bytes() for folder in (whole, output)]
    assert weights[0] == weights[1]
    assert json.loads((output / "config.json").read_text())["feature_head"]["pooling"] == "mean"


def test_a_stopped_run_with_a_solved_head_needs_no_initial_model(
    sources, tmp_path, monkeypatch, capsys
):
    """The only checkpoint is that of step 0."""
    save_model(tmp_path / "initial")
    of_copy = replace(sources, model=str(tmp_path / "initial"))
    with monkeypatch.context() as patch:
        patch.setattr(recipe, "evaluate_model", interrupt)
        with pytest.raises(StoppedError, match="resumes from"):
            finetune(of_copy, tmp_path / "out", TASK, LINEAR)
    shutil.rmtree(tmp_path / "initial")
    with monkeypatch.context() as patch:
        patch.setattr(recipe, "solve_and_validate", None)
        finetune(of_copy, tmp_path / "out", TASK, LINEAR)
    assert "is replaced" not in capsys.readouterr().err
    finetune(sources, tmp_path / "whole", TASK, LINEAR)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("out", "whole")]
    assert weights[0] == weights[1]


def test_a_pooling_that_no_classifier_has_is_told(sources, tmp_path, capsys):
    odd = save_encoder(tmp_path / "odd", "mean_sqrt_len_tokens")
    of_odd = Sources("classify", str(odd), sources.train, sources.dev)
    job = open_job(of_odd, TASK, DEFAULT)
    assert isinstance(job.model, BertForSequenceClassification)
    assert "reads [CLS] instead" in capsys.readouterr().err
