"""Labels from logits, for one label or several, and the evaluation of single labels."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bertkit.reports.notebook import Row
from bertkit.reports.text import format_percent, show
from bertkit.tasks.batch import IGNORED_LABEL, Logits
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.columns import sort_labels
from bertkit.tasks.evaluation import ConfidentScoring, Flags, Numbers, Statistic
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
from bertkit.tasks.task import TEMPERATURE, TaskPrediction

THRESHOLD = "threshold"
LABEL_COLUMNS = 200  # width of a label in a line of text; JSON has all of it
NO_LABEL = "(no label)"


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
    logits: Logits | None = field(default=None, repr=False, compare=False)  # as probabilities

    @property
    def ranking(self) -> list[tuple[str, float, float]]:
        """Each label with its probability and its logit, which gives the order, the highest first.

        Probabilities can be equal where logits aren't: those of large logits are rounded to 1.
        """
        shares = self.probabilities
        values = [*shares.values()] if self.logits is None else self.logits.tolist()
        rows = zip(shares.items(), values, strict=True)
        return sorted(((*one, value) for one, value in rows), key=lambda row: -row[2])

    def keep_likeliest(self, most: int) -> Self:
        """Return the same with so many probabilities, best first; of equal ones the first."""
        kept = self.ranking[:most]
        return replace(
            self,
            probabilities={label: share for label, share, _ in kept},
            logits=np.array([value for _, _, value in kept], dtype=np.float32),
            form=replace(self.form, is_ranked=True),
        )

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
        return [
            {"label": label, "probability": share, "predicted": label in self.labels}
            for label, share, _ in self.ranking
        ]


def sigmoid(score: float) -> float:
    """Return the logistic function, written with tanh so that nothing overflows."""
    return 0.5 + 0.5 * math.tanh(score / 2)


def find_probabilities(
    scores: Sequence[float], temperature: float, *, multi_label: bool
) -> list[float]:
    """Compute probabilities of one example's labels, without NumPy: it is slow on few numbers."""
    if multi_label:
        return [sigmoid(score / temperature) for score in scores]
    most = max(scores)
    powers = [math.exp((score - most) / temperature) for score in scores]
    total = math.fsum(powers)
    return [power / total for power in powers]


def choose_labels(
    labels: Sequence[str],
    logits: Logits,
    values: Sequence[float],
    threshold: float | None = None,
    separator: str | None = None,
) -> Classification:
    """Predict the likeliest label, or all whose probability reaches a threshold."""
    best = int(logits.argmax())
    shares = dict(zip(labels, values, strict=True))
    given: tuple[str, ...] = (labels[best],)
    if threshold is not None:
        given = tuple(label for label, share in shares.items() if share >= threshold)
    form = LabelForm(separator)
    return Classification(labels[best], values[best], shares, given, form, logits)


def find_many_probabilities(scores: Logits, temperature: float, *, multi_label: bool) -> Numbers:
    """Compute probabilities of very many labels, with NumPy."""
    scaled = (scores.astype(np.float64) - (0.0 if multi_label else scores.max())) / temperature
    shares: Numbers = 0.5 + 0.5 * np.tanh(scaled / 2) if multi_label else np.exp(scaled)
    return shares if multi_label else shares / shares.sum()


def find_likeliest(logits: Logits, most: int) -> list[int]:
    """Return the sorted ids of the likeliest labels, always with the first argmax."""
    kept = np.argpartition(-logits, most)[:most]
    numbers: list[int] = np.union1d(kept, logits.argmax()).tolist()
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
CountStatistic = Callable[[Counts], Numbers]


@dataclass(frozen=True)
class ClassifyScoring(ConfidentScoring[ClassifyExample, Classification]):
    """Accuracy, F1s and Matthews' correlation of single labels."""

    calibration = "metric"

    known: Sequence[str]  # the labels of the model
    positive: str | None  # the label that F1 is of

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All labels."""
        return list_names(self.examples, self.known)

    @cached_property
    def ids(self) -> tuple[Ids, Ids]:
        """The ids of the true and the predicted labels."""
        ids = {name: id_ for id_, name in enumerate(self.names)}
        truth = [ids[label] for example in self.examples for label in example.labels or ()]
        return np.array(truth), np.array([ids[found.label] for found in self.predictions])

    @cached_property
    def counts(self) -> Counts:
        """The counts of true and predicted labels."""
        return count_labels(*self.ids, len(self.names))

    @property
    def scores(self) -> dict[str, CountStatistic]:
        """The metrics as functions of the counts."""
        scores: dict[str, CountStatistic] = {"accuracy": accuracy}
        met = self.counts.actual[self.counts.actual > 0]
        if len(met) and met.min() < RARE * met.sum():
            scores["balanced_accuracy"] = balanced_accuracy
        if self.positive is not None:
            number = self.names.index(self.positive)
            scores["f1"] = lambda counts: binary_f1(counts, number)
        return scores | {"macro_f1": macro_f1, "matthews": matthews}

    @property
    def metrics(self) -> dict[str, float]:
        """Accuracy, F1 of the positive label, macro F1 and Matthews' correlation."""
        return {name: float(score(self.counts)) for name, score in self.scores.items()}

    @property
    def details(self) -> dict[str, float]:
        """F1 of each of more than two labels."""
        if len(self.names) < 3:
            return {}
        pairs = zip(self.names, self.counts.f1.tolist(), strict=True)
        return {f"f1 {name}": value for name, value in pairs}

    @property
    def statistics(self) -> dict[str, Statistic]:
        """The metrics of weighted examples; only the accuracy if labels are very many."""
        if len(self.names) > MAX_INTERVAL_LABELS:
            return {"accuracy": partial(weighted_mean, self.is_right)}
        count = partial(count_labels, *self.ids, len(self.names))
        return {name: _of_weights(score, count) for name, score in self.scores.items()}

    @property
    def confusion(self) -> tuple[tuple[str, ...], dict[tuple[int, int], int]]:
        """The confusion matrix of all labels."""
        return self.names, confuse_labels(*self.ids, len(self.names))

    @property
    def is_right(self) -> Flags:
        """Whether each predicted label is the true one."""
        truth, guess = self.ids
        flags: Flags = truth == guess
        return flags

    def contrast(self, number: int) -> tuple[str, str]:
        """Return the true label and the predicted one."""
        return ", ".join(self.examples[number].label_names), self.predictions[number].label

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warn if all texts get the same label."""
        found = {prediction.label for prediction in self.predictions}
        if len(found) != 1:
            return ()
        advice = "try more epochs, a higher learning rate, or --class-weights balanced"
        shown = f"every prediction is {show(next(iter(found)))!r}: the model tells nothing apart"
        return (f"{shown}; {advice}",)


def _of_weights(score: CountStatistic, count: Callable[[Numbers], Counts]) -> Statistic:
    return lambda weights: score(count(weights))


def list_names(examples: Sequence[ClassifyExample], labels: Sequence[str]) -> tuple[str, ...]:
    """Return the model's labels, followed by labels of examples that it doesn't know."""
    met = {label for example in examples for label in example.labels or ()}
    return (*labels, *sort_labels(met - set(labels)))
