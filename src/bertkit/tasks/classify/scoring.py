"""Labels from logits, for one label or several, and the evaluation of single labels."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bertkit.reports.notebook import Row
from bertkit.reports.text import format_percent, show
from bertkit.tasks.batch import IGNORED_LABEL, Logits
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.columns import sort_labels
from bertkit.tasks.metrics.calibration import fit_temperature
from bertkit.tasks.metrics.classification import (
    Counts,
    accuracy,
    balanced_accuracy,
    binary_f1,
    confuse_labels,
    count_labels,
    macro_f1,
    matthews,
    weighted_mean,
)
from bertkit.tasks.metrics.correlation import bootstrap_interval
from bertkit.tasks.task import (
    MISTAKE_CHARS,
    TEMPERATURE,
    Evaluation,
    Mistake,
    TaskPrediction,
    rank_mistakes,
    tell_calibration,
)

THRESHOLD = "threshold"
LABEL_COLUMNS = 200  # width of a label in a line of text; JSON has all of it
NO_LABEL = "(no label)"

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LabelForm:
    """How predicted labels are written."""

    separator: str | None = None  # of several labels in a column; None if a text has one label
    is_ranked: bool = False  # whether probabilities are of the likeliest labels, best first


@dataclass(frozen=True)
class Classification(TaskPrediction):
    """The predicted label of a text, or labels."""

    label: str  # the likeliest
    probability: float
    probabilities: dict[str, float]  # by label; with `top_k` of the likeliest, best first
    labels: tuple[str, ...]  # the likeliest, or with multi-label all that reach the threshold
    form: LabelForm = field(default=LabelForm(), repr=False, compare=False)

    def keep_likeliest(self, most: int) -> Self:
        """Return the same with so many probabilities, best first; of equal ones the first."""
        shares = self.probabilities
        kept = sorted(shares, key=lambda label: -shares[label])[:most]
        form = replace(self.form, is_ranked=True)
        return replace(self, probabilities={label: shares[label] for label in kept}, form=form)

    def describe(self) -> str:
        """Return the label and its probability, or each of several labels with its own."""
        if self.form == LabelForm():
            return f"{show(self.label, LABEL_COLUMNS)}\t{format_percent(self.probability)}"
        shares = self.probabilities
        names = shares if self.form.is_ranked else self.labels
        given = [f"{show(label, LABEL_COLUMNS)} {format_percent(shares[label])}" for label in names]
        return ", ".join(given) or NO_LABEL

    def to_json(self) -> dict[str, Any]:
        """Return the labels and all probabilities."""
        found: dict[str, Any] = {"label": self.label, "probability": self.probability}
        if self.form.separator is not None:
            found = {"labels": list(self.labels)}
        return {**found, "probabilities": self.probabilities}

    def to_row(self) -> dict[str, Any]:
        """Return the labels, and a column with the probability of each class.

        Ranked probabilities, which are of other classes in each row, share one column.
        """
        found = self.to_json()
        if self.form.separator is not None:
            found["labels"] = self.form.separator.join(self.labels)
        if self.form.is_ranked:
            return found
        classes = found.pop("probabilities")
        return {**found, **{f"probability_{name}": value for name, value in classes.items()}}

    def as_row(self) -> Row:
        """Return the labels and the probability of the likeliest."""
        return {"labels": ", ".join(self.labels), "probability": self.probability}

    def as_rows(self) -> Sequence[Row]:
        """Return a row for each label, the likeliest first."""
        ranked = sorted(self.probabilities.items(), key=lambda one: -one[1])
        return [
            {"label": label, "probability": value, "predicted": label in self.labels}
            for label, value in ranked
        ]


def find_probabilities(
    scores: Sequence[float], temperature: float, *, multi_label: bool
) -> list[float]:
    """Compute probabilities of one example's labels, without NumPy: it is slow on few numbers."""
    if multi_label:  # the sigmoid, written with tanh so that nothing overflows
        return [0.5 + 0.5 * math.tanh(score / temperature / 2) for score in scores]
    most = max(scores)
    powers = [math.exp((score - most) / temperature) for score in scores]
    total = math.fsum(powers)
    return [power / total for power in powers]


def choose_labels(
    labels: Sequence[str],
    values: Sequence[float],
    threshold: float | None = None,
    separator: str | None = None,
) -> Classification:
    """Predict the likeliest label, or all whose probability reaches a threshold."""
    best = values.index(max(values))
    shares = dict(zip(labels, values, strict=True))
    given: tuple[str, ...] = (labels[best],)
    if threshold is not None:
        given = tuple(label for label, share in shares.items() if share >= threshold)
    return Classification(labels[best], values[best], shares, given, LabelForm(separator))


def find_many_probabilities(scores: Logits, temperature: float, *, multi_label: bool) -> Numbers:
    """Compute probabilities of very many labels, with NumPy."""
    scaled = (scores.astype(np.float64) - (0.0 if multi_label else scores.max())) / temperature
    shares: Numbers = 0.5 + 0.5 * np.tanh(scaled / 2) if multi_label else np.exp(scaled)
    return shares if multi_label else shares / shares.sum()


def find_likeliest(shares: Numbers, most: int) -> list[int]:
    """Return the sorted ids of the likeliest labels, always with the first argmax."""
    kept = np.argpartition(-shares, most)[:most]
    numbers: list[int] = np.union1d(kept, shares.argmax()).tolist()
    return numbers


def pool_windows(rows: Logits) -> Logits:
    """Average the logits over an example's windows."""
    scores: Logits = rows[0] if len(rows) == 1 else rows.mean(axis=0)
    return scores


def fit(scores: Numbers, labels: npt.NDArray[np.int64]) -> dict[str, float]:
    """Fit the temperature by likelihood, unless all predictions with a known label are correct."""
    is_known = labels != IGNORED_LABEL
    scores, labels = scores[is_known], labels[is_known]
    if not len(labels) or (scores.argmax(axis=1) == labels).all():
        return {}
    return {TEMPERATURE: fit_temperature(scores, labels)}


def fit_joint(
    scores: Numbers, labels: npt.NDArray[np.bool_], *, needs_threshold: bool
) -> dict[str, float]:
    """Fit one temperature for all labels of a multi-label task, and the threshold if needed."""
    rows = np.stack([np.zeros(scores.size), scores.ravel()], axis=1)
    found = fit(rows, labels.ravel().astype(np.int64))
    if needs_threshold and labels.any():
        temperature = found.get(TEMPERATURE, 1.0)
        shares = [
            np.array(find_probabilities(row.tolist(), temperature, multi_label=True))
            for row in scores
        ]
        found[THRESHOLD] = find_threshold(np.array(shares), labels)
    return found


def find_threshold(probabilities: Numbers, labels: npt.NDArray[np.bool_]) -> float:
    """Find the threshold with the best micro F1, halfway between two predicted probabilities."""
    values, is_there = probabilities.ravel(), labels.ravel()
    order = np.argsort(-values, kind="stable")
    values = values[order]
    correct = np.cumsum(is_there[order])
    f1 = 2 * correct / (np.arange(1, len(values) + 1) + is_there.sum())
    is_end = np.append(values[:-1] > values[1:], True)  # don't cut between equal values
    best = int(np.argmax(np.where(is_end, f1, -1.0)))
    below = values[best + 1] if best + 1 < len(values) else 0.0
    return float((values[best] + below) / 2)


RARE = 0.1  # share of the examples with a label
MAX_INTERVAL_LABELS = 100  # with more, a thousand resamples of each label take too long

Ids = npt.NDArray[np.int64]
Statistic = Callable[[Counts], npt.NDArray[np.float64]]


def measure(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    labels: Sequence[str],
    positive: str | None,
) -> dict[str, float]:
    """Compute accuracy, F1 of the positive label, macro F1 and Matthews' correlation."""
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
    if num_labels > MAX_INTERVAL_LABELS:
        hits = truth == guess
        return {"accuracy": bootstrap_interval(partial(weighted_mean, hits), len(hits))}

    def find_interval(score: Statistic) -> tuple[float, float]:
        count = partial(count_labels, truth, guess, num_labels)
        return bootstrap_interval(lambda weights: score(count(weights)), len(truth))

    return {name: find_interval(score) for name, score in scores.items()}


def _list_mistakes(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    is_right: npt.NDArray[np.bool_],
) -> tuple[Mistake, ...]:
    """List the mistakes with the highest confidence."""
    confidences = np.array([found.probability for found in predictions])
    return tuple(
        Mistake(
            place=examples[number].place,
            text=examples[number].texts.show()[:MISTAKE_CHARS],
            expected=", ".join(examples[number].labels or ()),
            predicted=predictions[number].label,
            badness=predictions[number].probability,
            confidence=predictions[number].probability,
        )
        for number in rank_mistakes(np.where(is_right, 0.0, confidences))
    )


def _warn(predictions: Sequence[Classification]) -> tuple[str, ...]:
    found = {prediction.label for prediction in predictions}
    if len(found) != 1:
        return ()
    advice = "try more epochs, a higher learning rate, or --class-weights balanced"
    shown = f"every prediction is {show(next(iter(found)))!r}: the model tells nothing apart"
    return (f"{shown}; {advice}",)
