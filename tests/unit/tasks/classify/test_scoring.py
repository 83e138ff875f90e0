"""Predictions held against the truth, one label a text or several."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn import metrics
from tests.closeness import close

from bertkit.reports.figures.confusion_matrix import list_rows
from bertkit.tasks.classify import scoring
from bertkit.tasks.classify.decoding import Classification
from bertkit.tasks.classify.examples import ClassifyExample, advise_weights
from bertkit.tasks.classify.scoring import ClassifyScoring, JointScoring
from bertkit.tasks.texts import Texts

LABELS = ("a", "b", "c")
RANDOM = np.random.default_rng(1)


def example(number: int, *labels: str) -> ClassifyExample:
    return ClassifyExample(Texts(f"text {number}"), labels, f"dev.csv, line {number}")


def one(label: str, probability: float = 0.7) -> Classification:
    return Classification(label, probability, {}, (label,))


def several(*shares: float) -> Classification:
    given = tuple(label for label, share in zip(LABELS, shares, strict=True) if share >= 0.5)
    return Classification("a", max(shares), dict(zip(LABELS, shares, strict=True)), given)


def test_metrics_are_those_of_scikit_learn():
    truth = RANDOM.choice(LABELS, 200).tolist()
    guess = np.where(RANDOM.random(200) < 0.5, truth, RANDOM.choice(LABELS, 200)).tolist()
    examples = [example(number, label) for number, label in enumerate(truth)]
    found = ClassifyScoring(examples, list(map(one, guess)), LABELS, "b").metrics
    assert found == {
        "accuracy": close(metrics.accuracy_score(truth, guess)),
        "f1": close(metrics.f1_score(truth, guess, labels=["b"], average="macro")),
        "macro_f1": close(metrics.f1_score(truth, guess, average="macro")),
        "matthews": close(metrics.matthews_corrcoef(truth, guess)),
    }
    assert "f1" not in ClassifyScoring(examples, list(map(one, guess)), LABELS, None).metrics
    whole = ClassifyScoring(examples, list(map(one, guess)), LABELS, "b").evaluate()
    assert whole.metrics["f1 c"] == close(
        metrics.f1_score(truth, guess, labels=["c"], average="macro")
    )
    assert list_rows(whole.confusion, 3) == metrics.confusion_matrix(truth, guess).tolist()
    for name in found:
        low, high = whole.intervals[name]
        assert low < found[name] < high
    assert whole.metrics["calibration_error"] == close(abs(found["accuracy"] - 0.7))


def test_unseen_labels_are_mistakes():
    examples = [example(1, "a"), example(2, "new"), example(3, "b")]
    found = ClassifyScoring(
        examples, [one("a"), one("b", 0.9), one("a", 0.8)], LABELS[:2], "b"
    ).evaluate()
    assert found.metrics["accuracy"] == close(1 / 3)
    assert found.labels == ("a", "b", "new")
    assert sum(found.confusion.values()) == 3
    assert [(each.place, each.expected, each.predicted) for each in found.mistakes] == [
        ("dev.csv, line 2", "new", "b"),
        ("dev.csv, line 3", "b", "a"),
    ]
    assert found.is_right.tolist() == [True, False, False]
    assert not found.warnings


def test_one_prediction_for_all_is_told_and_long_texts_of_mistakes_are_short():
    long = ClassifyExample(Texts("x" * 9000), ("b",), "")
    found = ClassifyScoring([example(1, "a"), long], [one("a"), one("a")], LABELS, None).evaluate()
    (warning,) = found.warnings
    assert warning.startswith("every prediction is 'a': the model tells nothing apart; try more")
    assert len(found.mistakes[0].text) == 5000


def test_of_very_many_labels_only_the_accuracy_has_an_interval():
    labels = tuple(map(str, range(101)))
    examples = [example(number, str(number)) for number in range(10)]
    found = ClassifyScoring(
        examples, [one(str(number // 2)) for number in range(10)], labels, None
    ).evaluate()
    assert found.intervals.keys() == {"accuracy", "calibration_error"}
    low, high = found.intervals["accuracy"]
    assert low < found.metrics["accuracy"] < high


def test_several_labels_as_in_scikit_learn():
    truth = RANDOM.random((100, 3)) < 0.4
    shares = np.clip(truth * 0.4 + RANDOM.random((100, 3)) * 0.6, 0, 1)
    examples = [
        example(number, *[label for label, flag in zip(LABELS, row, strict=True) if flag])
        for number, row in enumerate(truth)
    ]
    predictions = [several(*row) for row in shares.tolist()]
    guess = shares >= 0.5
    found = JointScoring(examples, predictions, LABELS).metrics
    assert found == {
        "micro_f1": close(metrics.f1_score(truth, guess, average="micro")),
        "macro_f1": close(metrics.f1_score(truth, guess, average="macro")),
        "subset_accuracy": close(metrics.accuracy_score(truth, guess)),
    }
    whole = JointScoring(examples, predictions, LABELS).evaluate()
    assert whole.metrics["f1 b"] == close(metrics.f1_score(truth[:, 1], guess[:, 1]))
    assert (whole.is_right == (truth == guess).ravel()).all()
    assert whole.confidences == close(np.maximum(shares, 1 - shares).ravel())
    errors = [each.error for each in whole.mistakes]
    assert errors == sorted(errors, reverse=True)
    assert len(errors) == (truth != guess).any(axis=1).sum()
    for name in found:
        low, high = whole.intervals[name]
        assert low < found[name] < high


@pytest.mark.parametrize(("name", "most"), [("MAX_RESAMPLED", 2), ("MAX_FLAGS", 26)])
def test_of_very_many_labels_macro_f1_has_no_interval(monkeypatch, name, most):
    examples = [example(number, "a") for number in range(9)]
    predictions = [several(0.9, 0.1, 0.1)] * 9
    monkeypatch.setattr(scoring, name, most)
    found = JointScoring(examples, predictions, LABELS).evaluate()
    assert found.intervals.keys() == {"micro_f1", "subset_accuracy", "calibration_error"}


def test_of_several_labels_unseen_ones_are_missed():
    examples = [example(1, "a", "new"), example(2)]
    found = JointScoring(examples, [several(0.9, 0, 0), several(0, 0, 0.9)], LABELS).evaluate()
    assert found.metrics["micro_f1"] == close(2 / 4)
    assert found.metrics["subset_accuracy"] == 0
    assert [(each.expected, each.predicted) for each in found.mistakes] == [
        ("a, new", "a"),
        ("(no label)", "c"),
    ]
    assert not found.warnings


def test_one_answer_of_several_labels_for_all_is_told():
    examples = [example(1, "a"), example(2, "b")]
    nothing = JointScoring(examples, [several(0, 0, 0)] * 2, LABELS).evaluate()
    assert "no text gets a label" in nothing.warnings[0]
    same = JointScoring(examples, [several(1, 1, 0)] * 2, LABELS).evaluate()
    assert same.warnings == ("every prediction is 'a, b'",)


def test_a_rare_label_brings_the_balanced_accuracy_and_advice():
    examples = [ClassifyExample(Texts("t"), (label,)) for label in "a" * 29 + "b"]
    guesses = [Classification("a", 0.9, {"a": 0.9, "b": 0.1}, ("a",))] * 30
    assert ClassifyScoring(examples, guesses, ("a", "b"), None).metrics["balanced_accuracy"] == 0.5
    assert (
        "balanced_accuracy"
        not in ClassifyScoring(examples[:5], guesses[:5], ("a", "b"), None).metrics
    )
    (advice,) = advise_weights(examples)
    assert advice == (
        "only 1 of 30 have the label 'b'; --class-weights balanced gives rare labels more weight"
    )
    assert advise_weights(examples[:5]) == []
    typed = [example(number, "frequent") for number in range(38)] + [example(38, "frequnet")]
    assert advise_weights([*typed, example(39, "other"), example(40, "other")])[0].startswith(
        "only 2 of 41 have the label 'other'"
    )
    assert advise_weights(typed) == []  # a typing error needs no weight


def test_intervals_of_few_texts_have_a_width_or_arent_given():
    examples = [example(number, "ab"[number % 2]) for number in range(7)]
    right = ClassifyScoring(examples, [one("ab"[n % 2]) for n in range(7)], LABELS[:2], "b")
    found = right.evaluate()
    expected = binomtest(7, 7).proportion_ci(method="wilson")
    assert found.intervals["accuracy"] == close((expected.low, 1.0))
    assert found.intervals["macro_f1"] == found.intervals["f1"] == found.intervals["accuracy"]
    assert "matthews" not in found.intervals  # not a share, and the same in all resamples
    mixed = ClassifyScoring(examples, [one("a")] * 7, LABELS[:2], "b").evaluate()
    expected = binomtest(4, 7).proportion_ci(method="wilson")
    assert mixed.intervals["accuracy"] == close((expected.low, expected.high))
    single = ClassifyScoring(examples[:1], [one("a", 0.9)], LABELS[:2], None).evaluate()
    assert single.intervals["accuracy"][0] == close(
        binomtest(1, 1).proportion_ci(method="wilson").low
    )
    assert "calibration_error" not in single.intervals
