"""Decoding of logits to labels and probabilities; fitting of temperature and threshold.

Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", section 4.2 (temperature).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from bertkit.metrics.calibration import fit_temperature
from bertkit.reports.notebook import Row, Tabular
from bertkit.tasks.batch import IGNORED_LABEL
from bertkit.tasks.logits import Logits
from bertkit.tasks.task import TEMPERATURE

THRESHOLD = "threshold"

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Classification(Tabular):
    """The predicted label of a text, or labels.

    Attributes:
        label: the likeliest label.
        probability: its probability, from 0 to 1.
        probabilities: probability of each label; with multi-label they don't sum to 1. With `top_k`
            only those of the likeliest labels, best first.
        labels: the predicted labels: the likeliest one, or with multi-label those whose probability
            reaches the threshold, possibly none.
    """

    label: str
    probability: float
    probabilities: dict[str, float]
    labels: tuple[str, ...]

    def keep_likeliest(self, most: int) -> Self:
        """Return the same with so many probabilities, best first; of equal ones the first."""
        shares = self.probabilities
        kept = sorted(shares, key=lambda label: -shares[label])[:most]
        return replace(self, probabilities={label: shares[label] for label in kept})

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


def choose_label(labels: Sequence[str], values: Sequence[float]) -> Classification:
    """Predict the likeliest label."""
    best = values.index(max(values))
    shares = dict(zip(labels, values, strict=True))
    return Classification(labels[best], values[best], shares, (labels[best],))


def choose_labels(
    labels: Sequence[str], values: Sequence[float], threshold: float
) -> Classification:
    """Predict all labels whose probability reaches the threshold."""
    best = values.index(max(values))
    shares = dict(zip(labels, values, strict=True))
    given = tuple(label for label, share in shares.items() if share >= threshold)
    return Classification(labels[best], values[best], shares, given)


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
    """Fit the temperature that maximizes the likelihood of the true labels.

    Return nothing if no example has a known label, or if all predictions are correct: then a lower
    temperature is always likelier, and the examples can't calibrate the model.

    Args:
        scores: logits, `[examples, labels]`.
        labels: true label ids; -100 is ignored.
    """
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
    """Find the probability threshold for labels with the best micro F1.

    It lies halfway between two predicted probabilities.
    """
    values, is_there = probabilities.ravel(), labels.ravel()
    order = np.argsort(-values, kind="stable")
    values = values[order]
    correct = np.cumsum(is_there[order])
    f1 = 2 * correct / (np.arange(1, len(values) + 1) + is_there.sum())
    is_end = np.append(values[:-1] > values[1:], True)  # don't cut between equal values
    best = int(np.argmax(np.where(is_end, f1, -1.0)))
    below = values[best + 1] if best + 1 < len(values) else 0.0
    return float((values[best] + below) / 2)
