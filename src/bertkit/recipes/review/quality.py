"""What more rows would give, and which labels are confused.

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
NUM_RESAMPLES = 200
WIDEST = 0.3  # an interval that says nothing any more
HIGHEST = 1.0  # no score is above it


@dataclass(frozen=True)
class LearningCurve:
    """A score over numbers of rows, higher is better.

    Attributes:
        num_rows: the most that were tried.
        parameters: `[fits, 3]`: limit, gain and power; of all rows, and then of resampled ones.
    """

    num_rows: float
    parameters: Numbers

    def predict(self, num_rows: float) -> tuple[float, tuple[float, float]]:
        """Return the score with so many rows, and its 95 % interval."""
        limit, gain, power = self.parameters.T
        score, *resampled = np.minimum(limit - gain * num_rows**-power, HIGHEST).tolist()
        low, high = np.quantile(resampled, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]).tolist()
        return score, (low, high)

    def describe(self, metric: str) -> str:
        """Describe what twice the rows would give."""
        shown = format_metric(metric, *self.predict(2 * self.num_rows))
        return f"about {shown} with twice the rows"


def measure_curve(
    scorings: Sequence[TaskScoring[Any, Any]], metric: str, sizes: Sequence[float]
) -> LearningCurve | None:
    """Fit the curve of a metric to predictions of the same rows by layers of ascending sizes."""
    scores = []
    for scoring in scorings:
        if (statistic := scoring.statistics.get(metric)) is None:  # for very many labels
            return None
        number = len(scoring.examples)
        drawn = resample(statistic, number, seed=BOOTSTRAP_SEED, num_resamples=NUM_RESAMPLES)
        scores.append([scoring.metrics[metric], *drawn])
    return fit_curve(np.asarray(sizes, np.float64), np.array(scores).T)


def fit_curve(sizes: Numbers, scores: Numbers) -> LearningCurve | None:
    """Fit a curve to the scores of several sizes.

    Args:
        sizes: numbers of rows, ascending.
        scores: `[fits, sizes]`, at most 1: of all rows, and then of resampled ones.

    Returns:
        the curve; None if scores aren't defined or don't rise, or if twice the rows may give
        anything.
    """
    defined = scores[np.isfinite(scores).all(axis=1)]
    if not np.isfinite(scores[0]).all() or len(defined) < 2:
        return None
    curve = LearningCurve(float(sizes[-1]), _fit(sizes, defined))
    low, high = curve.predict(2 * curve.num_rows)[1]
    return curve if curve.parameters[0, 1] > 0 and high - low <= WIDEST else None


def _fit(sizes: Numbers, scores: Numbers) -> Numbers:
    """Fit `[fits, sizes]` by least squares, weighted by size; return `[fits, 3]`.

    Limit and gain of each power have a closed form; the limit is at most 1, and the gain not below
    0. The curve is then moved to the last score, beside which it is shown.
    """
    weights, reach = sizes / sizes.sum(), sizes ** -POWERS[:, None]
    mean_reach = reach @ weights
    centered = reach - mean_reach[:, None]
    gain = np.maximum(-(scores @ (weights * centered).T) / (centered**2 @ weights), 0.0)
    limit = (scores @ weights)[:, None] + gain * mean_reach
    capped = (HIGHEST - scores) @ (weights * reach).T / (reach**2 @ weights)
    gain, limit = np.where(limit > HIGHEST, capped, gain), np.minimum(limit, HIGHEST)
    away = scores[:, None] - limit[..., None] + gain[..., None] * reach  # [fits, powers, sizes]
    best = (away**2 @ weights).argmin(axis=1)
    gain, power = gain[np.arange(len(best)), best], POWERS[best]
    return np.stack([scores[:, -1] + gain * sizes[-1] ** -power, gain, power], axis=1)


def describe_confused(evaluation: Evaluation, number: int) -> list[str]:
    """Describe the pairs of labels that are confused most, both ways, most frequent first."""
    counts = Counter[tuple[int, int]]()
    for pair, count in sorted((evaluation.confusion or {}).items()):
        if pair[0] != pair[1]:
            counts[min(pair), max(pair)] += count
    names = evaluation.labels
    pairs = counts.most_common(number)
    return [f"{names[one]} ↔ {names[other]} ({count:,})" for (one, other), count in pairs]
