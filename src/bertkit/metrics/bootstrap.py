"""Bootstrap confidence intervals of metrics.

Examples are resampled with replacement. A resample is represented by weights, the number of times
it contains each example, so that a metric scores many resamples at once:

    count = lambda weights: count_labels(labels, predictions, num_labels, weights)
    bootstrap_interval(lambda weights: macro_f1(count(weights)), len(labels), seed=1)

Source: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bertkit.base.errors import InputError
from bertkit.metrics.examples import Numbers

NUM_RESAMPLES = 1000
CONFIDENCE = 0.95
NUM_WEIGHTS_AT_ONCE = 1 << 18  # 2 MB, which fits the processor's cache


@dataclass(frozen=True)
class Interval:
    """A confidence interval: the metric is within it in the share `confidence` of resamples.

    Both ends are NaN if the metric is undefined in every resample.
    """

    low: float
    high: float
    confidence: float = CONFIDENCE


def bootstrap_interval(
    statistic: Callable[[Numbers], Numbers],
    num_examples: int,
    *,
    seed: int,
    num_resamples: int = NUM_RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Compute the percentile bootstrap interval of a metric.

    Args:
        statistic: maps weights `[resamples, examples]`, the number of times each example was drawn,
            to the metric of each resample; resamples for which it is NaN (undefined) are ignored.
        num_examples: number of units to draw from: sentences for entities, questions for answers.
        seed: seed of the draws; the same seed gives the same interval.
        num_resamples: number of resamples, each of `num_examples` draws.
        confidence: between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence:g}, and must lie between 0 and 1")
    values = resample(statistic, num_examples, seed=seed, num_resamples=num_resamples)
    defined = values[~np.isnan(values)]
    if not defined.size:
        return Interval(np.nan, np.nan, confidence)
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high), confidence)


def resample(
    statistic: Callable[[Numbers], Numbers],
    num_examples: int,
    *,
    seed: int,
    num_resamples: int = NUM_RESAMPLES,
) -> Numbers:
    """Compute the metric of each resample; arguments as in `bootstrap_interval`."""
    if num_examples < 1 or num_resamples < 1:
        raise InputError(
            f"an interval needs at least one example and one resample, and not {num_examples:,} and"
            f" {num_resamples:,}"
        )
    generator = np.random.default_rng(seed)
    num_at_once = max(1, NUM_WEIGHTS_AT_ONCE // num_examples)
    values = np.concatenate(
        [
            statistic(_draw(generator, min(num_at_once, num_resamples - start), num_examples))
            for start in range(0, num_resamples, num_at_once)
        ]
    )
    assert values.shape == (num_resamples,)
    return values


def _draw(generator: np.random.Generator, num_resamples: int, num_examples: int) -> Numbers:
    """Draw resamples; return how often each example was drawn, `[resamples, examples]`."""
    drawn = generator.integers(num_examples, size=(num_resamples, num_examples))
    drawn += np.arange(num_resamples)[:, None] * num_examples
    counts = np.bincount(drawn.ravel(), minlength=num_resamples * num_examples)
    return counts.reshape(num_resamples, num_examples).astype(np.float64)
