"""Correlations, errors of numbers, and bootstrap confidence intervals of any metric.

Examples are resampled with replacement. A resample is represented by weights, the number of times
it contains each example, so that a metric scores many resamples at once:

    count = lambda weights: count_labels(labels, predictions, num_labels, weights)
    bootstrap_interval(lambda weights: macro_f1(count(weights)), len(labels), seed=1)

Source: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertkit.base.errors import InputError
from bertkit.tasks.metrics.classification import Numbers, divide, read_pair, read_weights

BOOTSTRAP_SEED = 0
NUM_RESAMPLES = 1000
CONFIDENCE = 0.95
NUM_WEIGHTS_AT_ONCE = 1 << 18  # 2 MB, which fits the processor's cache


def bootstrap_interval(
    statistic: Callable[[Numbers], Numbers],
    num_examples: int,
    *,
    seed: int = BOOTSTRAP_SEED,
    num_resamples: int = NUM_RESAMPLES,
) -> tuple[float, float]:
    """Return the ends of a metric's 95 % percentile bootstrap interval.

    `statistic` maps weights `[resamples, examples]`, the number of times each example was drawn, to
    the metric of each resample; resamples for which it is NaN (undefined) are ignored. An example
    is the unit to draw: a sentence for entities, a question for answers.
    """
    values = resample(statistic, num_examples, seed=seed, num_resamples=num_resamples)
    defined = values[~np.isnan(values)]
    if not defined.size:
        return np.nan, np.nan
    low, high = np.quantile(defined, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


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


def pearson(
    truth: ArrayLike, predictions: ArrayLike, weights: NDArray[np.floating] | None = None
) -> Numbers:
    """Return Pearson's correlation, from -1 to 1; NaN if either side is constant.

    There is one number for each row of `weights`, `[..., examples]`.
    """
    first, second = read_pair(truth, predictions, np.float64)
    # Subtract the first value, so that large means don't round small differences away.
    return _correlate(first - first[0], second - second[0], read_weights(weights, len(first)))


def spearman(
    truth: ArrayLike, predictions: ArrayLike, weights: NDArray[np.floating] | None = None
) -> Numbers:
    """Return Pearson's correlation of the ranks; ties get the mean of their ranks.

    With weights, ranks are those in the set that contains each example as often as its weight says.
    """
    first, second = read_pair(truth, predictions, np.float64)
    counted = read_weights(weights, len(first))
    return _correlate(_rank(first, counted), _rank(second, counted), counted)


def _rank(values: Numbers, weights: Numbers) -> Numbers:
    """Rank the examples from 1, each occurring `weights` times, `[..., examples]`."""
    order = np.argsort(values, kind="stable")
    _, starts, groups = np.unique(values[order], return_index=True, return_inverse=True)
    sizes = np.add.reduceat(weights[..., order], starts, axis=-1)
    ranks = np.cumsum(sizes, axis=-1) - (sizes - 1) / 2
    places = np.empty(len(values), dtype=np.int64)
    places[order] = groups
    ranked: Numbers = ranks[..., places]
    return ranked


def _correlate(first: Numbers, second: Numbers, weights: Numbers) -> Numbers:
    """Return the weighted correlation of each row of `[..., examples]`."""
    is_defined = _has_spread(first, weights) & _has_spread(second, weights)
    first, second = _center(first, weights), _center(second, weights)
    shared = (weights * first * second).sum(axis=-1)
    squares = (weights * first**2).sum(axis=-1), (weights * second**2).sum(axis=-1)
    scale = np.sqrt(squares[0]) * np.sqrt(squares[1])
    is_defined &= scale > 0
    correlation = shared / np.where(is_defined, scale, 1.0)
    return np.where(is_defined, np.clip(correlation, -1.0, 1.0), np.nan)[()]


def _has_spread(values: Numbers, weights: Numbers) -> NDArray[np.bool_]:
    # The computed variance of equal numbers is often not exactly 0, so compare the numbers.
    greatest = np.where(weights > 0, values, -np.inf).max(axis=-1)
    least = np.where(weights > 0, values, np.inf).min(axis=-1)
    has_spread: NDArray[np.bool_] = greatest > least
    return has_spread


def _center(values: Numbers, weights: Numbers) -> Numbers:
    sums, totals = (one.sum(axis=-1, keepdims=True) for one in (weights * values, weights))
    centered: Numbers = values - divide(sums, totals)  # a resample of groups may have no row
    return centered
