"""Calibration: reliability bins, expected calibration error, and temperature scaling.

Source: Guo et al., "On Calibration of Modern Neural Networks", ICML 2017.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertkit.base.errors import InputError
from bertkit.reports.text import MetricCell, format_percent
from bertkit.tasks.metrics.classification import Numbers
from bertkit.tasks.metrics.correlation import BOOTSTRAP_SEED, CONFIDENCE, resample

NUM_BINS = 15  # as in the paper
LEAST_TEMPERATURE = 0.1
GREATEST_TEMPERATURE = 10.0
MAX_STEPS = 100  # bisection alone needs 50
# With more answers, a thousand resamples take minutes, and sampling error is small.
MAX_RESAMPLED = 1_000_000


@dataclass(frozen=True)
class ReliabilityBin:
    """The examples whose confidence is above `low` and at most `high`."""

    low: float  # exclusive, but 0 belongs to the first bin
    high: float  # inclusive
    count: int  # at least one
    confidence: float  # the mean
    accuracy: float  # the share of correct predictions


@dataclass(frozen=True)
class CalibrationError:
    """The expected calibration error, with its sampling error.

    With few answers, accuracy and confidence differ in each bin by chance alone, so even a
    perfectly calibrated model has an error above 0.
    """

    value: float
    num_bins: int  # of equal width
    # 95 % bootstrap interval; None for more than `MAX_RESAMPLED` answers, or if all are alike
    low: float | None = None
    high: float | None = None

    def describe(self) -> str:
        """Describe the error in one line."""
        parts = [f"{self.num_bins} bins"]
        if self.low is not None and self.high is not None:
            cell = MetricCell(self.value, is_share=True, interval=(self.low, self.high))
            parts.append(f"95 % interval {cell.show_interval()}")
        return f"calibration error {format_percent(self.value)} ({'; '.join(parts)})"


def find_reliability(confidences: ArrayLike, is_right: ArrayLike) -> list[ReliabilityBin]:
    """Compute the non-empty bins of a reliability diagram, of equal width from 0 to 1."""
    confident, right, bins = _sort_into_bins(confidences, is_right)
    edges = np.linspace(0.0, 1.0, NUM_BINS + 1)
    return [
        ReliabilityBin(
            low=float(edges[number]),
            high=float(edges[number + 1]),
            count=int((bins == number).sum()),
            confidence=float(confident[bins == number].mean()),
            accuracy=float(right[bins == number].mean()),
        )
        for number in np.unique(bins)
    ]


def measure_calibration(
    confidences: ArrayLike, is_right: ArrayLike, *, seed: int = BOOTSTRAP_SEED
) -> CalibrationError:
    """Compute the expected calibration error and its interval.

    It is the mean difference of confidence and accuracy, weighted by bin size, from 0 to 1.
    """
    confident, right, bins = _sort_into_bins(confidences, is_right)
    number = len(confident)
    found_bins = find_reliability(confident, right)
    value = sum(one.count * abs(one.accuracy - one.confidence) for one in found_bins) / number
    if number > MAX_RESAMPLED:
        return CalibrationError(value, NUM_BINS)
    gaps = right - confident

    def measure(weights: Numbers) -> Numbers:
        sums = [np.bincount(bins, row * gaps, minlength=NUM_BINS) for row in weights]
        errors: Numbers = np.abs(sums).sum(axis=1) / number
        return errors

    found = resample(measure, number, seed=seed)
    if not np.ptp(found):  # a single answer, or answers that are all alike
        return CalibrationError(value, NUM_BINS)
    # Resampling adds the bias of the sample size again, so use only the scatter around the mean.
    low, high = np.quantile(found, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]) - found.mean()
    return CalibrationError(
        value=value,
        num_bins=NUM_BINS,
        low=max(0.0, float(value + low)),
        high=min(1.0, float(value + high)),
    )


def fit_temperature(logits: ArrayLike, labels: ArrayLike) -> float:
    """Find the temperature that maximizes the likelihood of the labels.

    The likelihood has a single maximum in 1 / temperature. A temperature never changes which label
    scores highest. For multi-label models, pass each label of each example as a row of two logits:
    0 and the label's own.

    Returns:
        From `LEAST_TEMPERATURE` (if all predictions are correct, lower is always likelier) to
        `GREATEST_TEMPERATURE` (if the logits carry no information); 1 if each example's logits are
        all equal, because then no temperature changes anything.
    """
    scores, truth = np.asarray(logits, np.float64), np.asarray(labels, np.int64)
    if not np.isfinite(scores).all():
        raise InputError("no temperature can be fitted: the logits aren't finite")
    if not np.ptp(scores, axis=1).any():
        return 1.0
    low, high = 1.0 / GREATEST_TEMPERATURE, 1.0 / LEAST_TEMPERATURE
    if _differentiate(scores, truth, low)[0] >= 0:
        return GREATEST_TEMPERATURE
    if _differentiate(scores, truth, high)[0] <= 0:
        return LEAST_TEMPERATURE
    inverse = 1.0
    for _ in range(MAX_STEPS):
        slope, curvature = _differentiate(scores, truth, inverse)
        low, high = (low, inverse) if slope > 0 else (inverse, high)
        step = inverse - slope / curvature if curvature > 0 else np.inf
        following = step if low < step < high else (low + high) / 2
        if abs(following - inverse) <= 1e-12 * inverse:
            break
        inverse = following
    return float(1.0 / inverse)


def _sort_into_bins(
    confidences: ArrayLike, is_right: ArrayLike
) -> tuple[Numbers, NDArray[np.bool_], NDArray[np.int64]]:
    """Return confidences, correctness and the bin of each."""
    confident, right = np.asarray(confidences, np.float64), np.asarray(is_right, dtype=bool)
    edges = np.linspace(0.0, 1.0, NUM_BINS + 1)
    return confident, right, np.maximum(np.searchsorted(edges, confident, side="left") - 1, 0)


def _differentiate(
    scores: Numbers, truth: NDArray[np.int64], inverse: float
) -> tuple[float, float]:
    """Return first and second derivatives of the mean NLL with respect to 1 / temperature."""
    shifted = (scores - scores.max(axis=1, keepdims=True)) / (1.0 / inverse)
    probabilities = np.exp(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))
    means = (probabilities * scores).sum(axis=1)
    variances = (probabilities * (scores - means[:, None]) ** 2).sum(axis=1)
    slopes = means - scores[np.arange(len(truth)), truth]
    return float(slopes.mean()), float(variances.mean())
