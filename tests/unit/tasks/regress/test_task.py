"""The task as the recipe and the predictor use it, from texts to a saved model."""

import json
import math

import numpy as np
import pytest
import torch
from scipy import stats
from tests.closeness import close
from tests.unit.tasks.small import TOKENIZER, learn, record_of

from bertkit.base.errors import CheckpointError, InputError
from bertkit.data.tables.record import BrokenRowError, ClassName
from bertkit.inference.predictor import Regressor
from bertkit.models.bert.config import BertConfig
from bertkit.tasks.choose.examples import read_answer
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.regress.task import (
    Regress,
    RegressExample,
    Regression,
    list_warnings,
    take_number,
)
from bertkit.tasks.saved import load_task
from bertkit.tasks.task_batch import TaskBatch
from bertkit.tasks.texts import Texts


@pytest.mark.parametrize(
    ("value", "number"),
    [("1.5", 1.5), (" -2 ", -2.0), ("1e3", 1000.0), (0, 0.0), (2.25, 2.25), ("1e18", 1e18)],
)
def test_numbers(value, number):
    assert take_number(record_of(y=value), "y") == number


@pytest.mark.parametrize(
    "value",
    [
        *("", "x", "1,5", "1_000", "\u0663", "nan", "inf", "9" * 400),
        *(math.nan, -math.inf, True, [1], 1e19, 10**400),
    ],
)
def test_what_is_no_number_is_a_broken_row(value):
    with pytest.raises(BrokenRowError, match=r"t\.csv, line 2 has .* in y where a number from -1e"):
        take_number(record_of(y=value), "y")


def test_the_number_of_a_class_is_one():
    record = record_of(y=ClassName("equivalent", 1))
    assert take_number(record, "y") == 1.0
    assert read_answer(record, "y", ("a", "b")).by_position == 1


@pytest.mark.parametrize(
    ("numbers", "is_odd"),
    [((0, 2.5, 5), False), ((0, 50, 100), True), ((0, 0.01), True), ((2000, 2001), True)],
)
def test_scales(numbers, is_odd):
    lines = list_warnings([RegressExample(Texts("a"), number) for number in numbers])
    assert lines[0].startswith(f"numbers from {min(numbers)} to {max(numbers)}, mean")
    assert any("learned slowly" in line for line in lines) == is_odd


SETTINGS = RegressSettings(max_length=12)
WORTH = {"cat": 2.0, "dog": -1.0, "fox": 0.5}


def list_examples() -> list[RegressExample]:
    """Texts whose number is that of the animal in them."""
    return [
        RegressExample(Texts(f"the {name} saw {other}"), worth, f"{name} {other}")
        for name, worth in WORTH.items()
        for other in ("a hat", "the hat", "lost", "not")
    ]


def test_it_learns_what_animals_are_worth_and_is_saved(tmp_path):
    examples = list_examples()
    task = Regress.from_examples(SETTINGS, examples)
    regress, found = learn(task, examples, tmp_path, num_steps=80)
    assert found.metrics[task.metric] > 0.99
    assert regress.task == task  # no number is fitted
    cat, dog = regress(["the cat saw a hat", "the dog saw a hat"])
    assert (cat.value, dog.value) == (close(2, within=0.3), close(-1, within=0.3))
    assert dog.describe() == f"{dog.value:.3f}"
    assert json.loads(json.dumps(dog.to_json())) == {"value": dog.value}

    (tmp_path / "task.json").unlink()  # what another tool writes
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["problem_type"] == "regression"
    assert Regressor.load(tmp_path, device="cpu", engine="torch")("the cat").value > 0


def test_evaluation_tells_correlation_error_and_the_worst():
    random = np.random.default_rng(0)
    truth = random.normal(size=50)
    guess = truth + random.normal(size=50)
    examples = [
        RegressExample(Texts(f"t {i}"), number, f"line {i}") for i, number in enumerate(truth)
    ]
    predictions = [Regression(value) for value in guess]
    found = Regress(SETTINGS).score(examples, predictions).evaluate()
    assert found.metrics == {
        "pearson": close(stats.pearsonr(truth, guess).statistic),
        "spearman": close(stats.spearmanr(truth, guess).statistic),
        "mean_squared_error": close(((truth - guess) ** 2).mean()),
        "mean_absolute_error": close(np.abs(truth - guess).mean()),
    }
    for name, value in found.metrics.items():
        low, high = found.intervals[name]
        assert low < value < high
    assert found.mistakes[0].error == np.abs(truth - guess).max()
    assert not found.warnings


def test_one_prediction_for_all_is_told():
    examples = [RegressExample(Texts("a"), number) for number in (0.0, 1.0)]
    found = Regress(SETTINGS).score(examples, [Regression(0.5), Regression(0.5)]).evaluate()
    assert found.warnings == ("every prediction is about 0.500",)
    assert math.isnan(found.metrics["pearson"])
    exact = Regress(SETTINGS).score(examples, [Regression(0.0), Regression(1.0)]).evaluate()
    assert exact.mistakes == ()


def test_windows_are_averaged():
    task = Regress(RegressSettings(max_length=8, long_texts="windows"))
    example = RegressExample(Texts("the cat " * 7), 1.0)
    (encoded,) = task.encode([example], TOKENIZER)
    batch = TaskBatch.collate([encoded], [0])
    logits = torch.arange(float(len(encoded.sequences)))[:, None]
    scores = task.loss(logits, batch)
    assert float(scores.losses["task"]) == (float(logits.mean()) - 1) ** 2
    assert scores.correct == {}
    assert task.decode(example, encoded, logits.numpy()).value == float(logits.mean())


def test_what_cannot_be_learned_or_loaded_is_refused(tmp_path):
    same = [RegressExample(Texts("a"), 1.0)] * 2
    with pytest.raises(InputError, match=r"all examples have the number 1\.0"):
        Regress.from_examples(SETTINGS, same)
    with pytest.raises(InputError, match="there are no examples"):
        Regress.from_examples(SETTINGS, [])
    config = BertConfig.from_dict({"model_type": "bert", "num_labels": 1}, tmp_path)
    assert isinstance(load_task(tmp_path, config, "BertForSequenceClassification"), Regress)
    with pytest.raises(CheckpointError, match="1 label, the number, not 2"):
        Regress.from_config(SETTINGS, BertConfig(), {})
