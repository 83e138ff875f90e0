"""Labels from logits, for one label or several, and the numbers fitted for it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from bertkit.reports.notebook import Row
from bertkit.reports.text import format_percent, show
from bertkit.tasks.batch import IGNORED_LABEL, Logits
from bertkit.tasks.evaluation import Numbers
from bertkit.tasks.metrics.calibration import fit_temperature
from bertkit.tasks.saved import TEMPERATURE
from bertkit.tasks.task import TaskPrediction

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

    def list_values(self) -> Row:
        """Return the labels and all probabilities."""
        found: Row = {"label": self.label, "probability": self.probability}
        if self.form.separator is not None:
            found = {"labels": list(self.labels)}
        return {**found, "probabilities": self.probabilities}

    def list_columns(self) -> Row:
        """Return the labels, and a column with the probability of each class.

        Ranked probabilities, which are of other classes in each row, share one column.
        """
        found = dict(self.list_values())
        if self.form.separator is not None:
            found["labels"] = self.form.separator.join(self.labels)
        if self.form.is_ranked:
            return found
        classes = found.pop("probabilities")
        return {**found, **{f"probability_{name}": value for name, value in classes.items()}}

    def as_row(self) -> Row:
        """Return the labels and the probability of the likeliest."""
        labels = ", ".join(self.labels)
        return {"labels": labels, "probability": self.probability, **self.tell_words()}

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
