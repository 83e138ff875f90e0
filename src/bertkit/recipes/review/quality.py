"""How well rows are predicted, what more of them would give, and which labels are confused.

All functions are pure. The learning curve is a power law with a floor of errors: the score of n
rows is limit - gain * n ** -power. Its uncertainty is that of the rows: it is fitted again to the
scores of resampled rows, the same ones at each size.

Source: Figueroa et al., "Predicting sample size required for classification performance", BMC
Medical Informatics and Decision Making 12 (2012); Viering and Loog, "The shape of learning curves:
a review", IEEE TPAMI 45 (2023).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.reports.text import format_metric
from bertkit.tasks.evaluation import Evaluation, TaskScoring
from bertkit.tasks.metrics.correlation import BOOTSTRAP_SEED, CONFIDENCE, resample

Numbers = NDArray[np.float64]

POWERS = np.geomspace(0.1, 2.0, 25)
FEWEST_SIZES = 4
NUM_RESAMPLES = 200
WIDEST = 0.3  # an interval that says nothing any more
HIGHEST = 1.0  # no score is above it


@dataclass(frozen=True)
class LearningCurve:
    """Scores over numbers of rows, higher is better.

    Attributes:
        sizes: `[sizes]`, the numbers of rows that were tried, ascending.
        parameters: `[3]`: limit, gain and power.
        resampled: `[resamples, 3]`: the same of resampled rows; None if there are none.
    """

    sizes: Numbers
    parameters: Numbers
    resampled: Numbers | None = None

    def predict(self, num_rows: float) -> float:
        """Return the score with so many rows."""
        return float(_follow(self.parameters, num_rows))

    def find_interval(self, num_rows: float) -> tuple[float, float] | None:
        """Return the 95 % interval of the score with so many rows."""
        if self.resampled is None:
            return None
        ends = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
        low, high = np.quantile(_follow(self.resampled, num_rows), ends)
        return float(low), float(high)

    def describe(self, metric: str) -> str:
        """Describe what twice the rows would give."""
        most = 2 * float(self.sizes[-1])
        shown = format_metric(metric, self.predict(most), self.find_interval(most))
        return f"about {shown} with twice the rows"


def fit_curve(
    sizes: Sequence[float], scores: Sequence[float], resampled: Numbers | None = None
) -> LearningCurve | None:
    """Fit a curve to the scores of several sizes; None if it says nothing about more rows.

    That is so with fewer than four sizes, scores that aren't defined or don't rise, and if twice
    the rows may give anything.

    Args:
        sizes: numbers of rows, ascending.
        scores: of each size, at most 1; higher is better.
        resampled: scores of resampled rows, `[resamples, sizes]`; NaN where not defined.
    """
    known = np.asarray(sizes, np.float64)
    values = np.asarray(scores, np.float64)
    if len(known) < FEWEST_SIZES or not np.isfinite(values).all() or (np.diff(known) <= 0).any():
        return None
    (fitted,) = _fit(known, values[None])
    if fitted[1] <= 0.0:
        return None
    if resampled is None:
        return LearningCurve(known, fitted)
    defined = resampled[np.isfinite(resampled).all(axis=1)]
    if not len(defined):
        return None
    curve = LearningCurve(known, fitted, _fit(known, defined))
    low, high = curve.find_interval(2 * known[-1]) or (0.0, 1.0)
    return curve if high - low <= WIDEST else None


def _follow(parameters: Numbers, num_rows: float) -> Numbers:
    limit, gain, power = np.moveaxis(parameters, -1, 0)
    scores: Numbers = np.minimum(limit - gain * np.power(num_rows, -power), HIGHEST)
    return scores


def _fit(sizes: Numbers, scores: Numbers) -> Numbers:
    """Fit `[fits, sizes]` by least squares, weighted by size; return `[fits, 3]`.

    Limit and gain of each power have a closed form; the limit is at most 1, and the gain not below
    0. The curve is then moved to the last score, beside which it is shown.
    """
    weights = sizes / sizes.sum()
    best = np.full((len(scores), 3), np.nan)
    least = np.full(len(scores), np.inf)
    mean = scores @ weights
    for power in POWERS:
        reach = sizes**-power
        centered = reach - reach @ weights
        gain = np.maximum(-(scores @ (weights * centered)) / (weights @ centered**2), 0.0)
        limit = mean + gain * (reach @ weights)
        is_over = limit > HIGHEST
        capped = ((HIGHEST - scores) @ (weights * reach)) / (weights @ reach**2)
        gain, limit = np.where(is_over, capped, gain), np.where(is_over, HIGHEST, limit)
        errors = (scores - limit[:, None] + gain[:, None] * reach) ** 2 @ weights
        found = np.stack([limit, gain, np.full_like(gain, power)], axis=1)
        best = np.where((errors < least)[:, None], found, best)
        least = np.minimum(errors, least)
    best[:, 0] += scores[:, -1] - (best[:, 0] - best[:, 1] * sizes[-1] ** -best[:, 2])
    return best


def measure_curve(
    scorings: Sequence[TaskScoring[Any, Any]], metric: str, sizes: Sequence[float]
) -> LearningCurve | None:
    """Fit the curve of a metric to the predictions of the same rows by layers of several sizes."""
    statistics = [scoring.statistics.get(metric) for scoring in scorings]
    scores = [scoring.metrics[metric] for scoring in scorings]
    found = [
        resample(each, len(scoring.examples), seed=BOOTSTRAP_SEED, num_resamples=NUM_RESAMPLES)
        for each, scoring in zip(statistics, scorings, strict=True)
        if each is not None
    ]
    resampled = np.stack(found, axis=1) if len(found) == len(scores) else None
    return fit_curve(sizes, scores, resampled)


@dataclass(frozen=True)
class ConfusedPair:
    """Two labels, each of which is predicted for the other."""

    label: str
    other: str
    count: int  # both ways

    def describe(self) -> str:
        """Return both labels and how often they are confused."""
        return f"{self.label} ↔ {self.other} ({self.count:,})"


def find_confused(evaluation: Evaluation, number: int) -> list[ConfusedPair]:
    """Return the pairs of labels that are confused most, the most frequent first."""
    counts: Counter[tuple[int, int]] = Counter()
    for (true, predicted), count in sorted((evaluation.confusion or {}).items()):
        if true != predicted:
            counts[min(true, predicted), max(true, predicted)] += count
    labels = evaluation.labels
    return [
        ConfusedPair(labels[one], labels[other], count)
        for (one, other), count in counts.most_common(number)
    ]
