"""Evaluation of single-label classification."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from bertkit.metrics.bootstrap import bootstrap_interval
from bertkit.metrics.classification import (
    accuracy,
    balanced_accuracy,
    binary_f1,
    confuse_labels,
    count_labels,
    macro_f1,
    matthews,
)
from bertkit.metrics.counts import Counts
from bertkit.metrics.examples import weighted_mean
from bertkit.reports.text import show
from bertkit.tasks.classify.decoding import Classification
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.columns import sort_labels
from bertkit.tasks.evaluation import Evaluation, Mistake, tell_calibration

BOOTSTRAP_SEED = 0
MAX_MISTAKES = 100
RARE = 0.1  # share of the examples with a label
MAX_INTERVAL_LABELS = 100  # with more, a thousand resamples of each label take too long
SHOWN_CHARS = 5000  # shown of a mistake's text

Ids = npt.NDArray[np.int64]
Statistic = Callable[[Counts], npt.NDArray[np.float64]]


def measure(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    labels: Sequence[str],
    positive: str | None,
) -> dict[str, float]:
    """Compute accuracy, F1 of the positive label, macro F1 and Matthews' correlation.

    If a label has under a tenth of the examples, also the balanced accuracy.

    Args:
        examples: labeled examples; labels unknown to the model count as mistakes.
        predictions: one for each example.
        labels: the labels of the model.
        positive: the label that F1 is computed for; None for no F1.
    """
    names = list_names(examples, labels)
    counts = count_labels(*_number(examples, predictions, names), len(names))
    scores = _list_scores(names, positive, counts)
    return {name: float(score(counts)) for name, score in scores.items()}


def evaluate(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    labels: Sequence[str],
    positive: str | None,
) -> Evaluation:
    """Compute the same with intervals, F1 of each label, calibration and confident mistakes."""
    names = list_names(examples, labels)
    truth, guess = _number(examples, predictions, names)
    counts = count_labels(truth, guess, len(names))
    scores = _list_scores(names, positive, counts)
    metrics = {name: float(score(counts)) for name, score in scores.items()}
    if len(names) > 2:
        for name, value in zip(names, counts.f1.tolist(), strict=True):
            metrics[f"f1 {name}"] = value
    confidences = np.array([found.probability for found in predictions])
    is_right = truth == guess
    evaluation = Evaluation(
        metrics=metrics,
        intervals=_find_intervals(truth, guess, len(names), scores),
        labels=names,
        confusion=confuse_labels(truth, guess, len(names)),
        confidences=confidences,
        is_right=is_right,
        mistakes=_list_mistakes(examples, predictions, is_right),
        warnings=_warn(predictions),
    )
    return tell_calibration(evaluation)


def list_names(examples: Sequence[ClassifyExample], labels: Sequence[str]) -> tuple[str, ...]:
    """Return the model's labels, followed by labels of examples that it doesn't know."""
    met = {label for example in examples for label in example.labels or ()}
    return (*labels, *sort_labels(met - set(labels)))


def _number(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    names: Sequence[str],
) -> tuple[Ids, Ids]:
    """Return the ids of the true and the predicted labels."""
    ids = {name: id_ for id_, name in enumerate(names)}
    truth = [ids[label] for example in examples for label in example.labels or ()]
    return np.array(truth), np.array([ids[found.label] for found in predictions])


def _list_scores(
    names: Sequence[str], positive: str | None, counts: Counts
) -> dict[str, Statistic]:
    scores: dict[str, Statistic] = {"accuracy": accuracy}
    met = counts.actual[counts.actual > 0]
    if len(met) and met.min() < RARE * met.sum():
        scores["balanced_accuracy"] = balanced_accuracy
    if positive is not None:
        number = list(names).index(positive)
        scores["f1"] = lambda counts: binary_f1(counts, number)
    return scores | {"macro_f1": macro_f1, "matthews": matthews}


def _find_intervals(
    truth: Ids, guess: Ids, num_labels: int, scores: dict[str, Statistic]
) -> dict[str, tuple[float, float]]:
    """Compute intervals of the metrics; only of the accuracy if labels are very many."""
    number = len(truth)
    if num_labels > MAX_INTERVAL_LABELS:
        hits = truth == guess
        found = bootstrap_interval(
            lambda weights: weighted_mean(hits, weights), number, seed=BOOTSTRAP_SEED
        )
        return {"accuracy": (found.low, found.high)}
    intervals = {}
    for name, score in scores.items():
        found = bootstrap_interval(
            lambda weights, score=score: score(  # type: ignore[misc]
                count_labels(truth, guess, num_labels, weights)
            ),
            number,
            seed=BOOTSTRAP_SEED,
        )
        intervals[name] = (found.low, found.high)
    return intervals


def _list_mistakes(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    is_right: npt.NDArray[np.bool_],
) -> tuple[Mistake, ...]:
    """List the mistakes with the highest confidence."""
    wrong = np.flatnonzero(~is_right).tolist()
    wrong.sort(key=lambda number: -predictions[number].probability)
    return tuple(
        Mistake(
            place=examples[number].place,
            text=examples[number].texts.show()[:SHOWN_CHARS],
            expected=", ".join(examples[number].labels or ()),
            predicted=predictions[number].label,
            badness=predictions[number].probability,
        )
        for number in wrong[:MAX_MISTAKES]
    )


def _warn(predictions: Sequence[Classification]) -> tuple[str, ...]:
    found = {prediction.label for prediction in predictions}
    if len(found) != 1:
        return ()
    advice = "try more epochs, a higher learning rate, or --class-weights balanced"
    shown = f"every prediction is {show(next(iter(found)))!r}: the model tells nothing apart"
    return (f"{shown}; {advice}",)
