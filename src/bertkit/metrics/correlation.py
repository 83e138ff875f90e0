"""Regression metrics: Pearson and Spearman correlation, mean squared and mean absolute error.

A correlation with constant values is undefined and therefore NaN. JSON has no NaN; code that
writes a correlation writes null instead.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertkit.metrics.examples import (
    Numbers,
    check_lengths,
    read_numbers,
    read_weights,
    weighted_mean,
)


def pearson(
    truth: ArrayLike, predictions: ArrayLike, weights: NDArray[np.floating] | None = None
) -> Numbers:
    """Return Pearson's correlation, from -1 to 1; NaN if either side is constant.

    Args:
        truth: the true values, `[examples]`.
        predictions: the predicted values, `[examples]`.
        weights: how often each example counts, `[..., examples]`.

    Returns:
        One number for each row of `weights`.
    """
    first, second = _read_pair(truth, predictions)
    # Subtract the first value, so that large means don't round small differences away.
    return _correlate(first - first[0], second - second[0], read_weights(weights, len(first)))


def spearman(
    truth: ArrayLike, predictions: ArrayLike, weights: NDArray[np.floating] | None = None
) -> Numbers:
    """Return Pearson's correlation of the ranks; ties get the mean of their ranks.

    Args and errors are those of `pearson`. With weights, ranks are those in the set that contains
    each example as often as its weight says.
    """
    first, second = _read_pair(truth, predictions)
    counted = read_weights(weights, len(first))
    return _correlate(_rank(first, counted), _rank(second, counted), counted)


def mean_squared_error(
    truth: ArrayLike, predictions: ArrayLike, weights: NDArray[np.floating] | None = None
) -> Numbers:
    """Return the mean squared error; args and errors are those of `pearson`."""
    first, second = _read_pair(truth, predictions)
    return weighted_mean((first - second) ** 2, weights)


def mean_absolute_error(
    truth: ArrayLike, predictions: ArrayLike, weights: NDArray[np.floating] | None = None
) -> Numbers:
    """Return the mean absolute error; args and errors are those of `pearson`."""
    first, second = _read_pair(truth, predictions)
    return weighted_mean(np.abs(first - second), weights)


def _read_pair(truth: ArrayLike, predictions: ArrayLike) -> tuple[Numbers, Numbers]:
    first, second = read_numbers(truth, "truth"), read_numbers(predictions, "predictions")
    check_lengths(truth=first, predictions=second)
    return first, second


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
    mean = (weights * values).sum(axis=-1, keepdims=True) / weights.sum(axis=-1, keepdims=True)
    centered: Numbers = values - mean
    return centered
