"""Checks and weights of examples that all metrics share.

A metric that takes `weights` returns one value for each row of them: the value on the set that
contains each example that many times. So a thousand resamples are scored at once. Without weights,
a metric returns one number, which `float` converts to a Python number.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertkit.base.errors import InputError

Numbers = NDArray[np.float64]


def check_lengths(**examples: Sequence[object] | NDArray[np.generic]) -> int:
    """Check that all arguments have the same, nonzero number of examples, and return it."""
    lengths = {name: len(values) for name, values in examples.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise InputError(f"each example needs all of its values, but there are of {told}")
    num_examples = next(iter(lengths.values()))
    if num_examples == 0:
        raise InputError(f"no example to measure: {' and '.join(lengths)} are empty")
    return num_examples


def read_labels(values: ArrayLike, num_labels: int, name: str) -> NDArray[np.int64]:
    """Check label ids and return them as an array `[examples]`."""
    labels = _as_array(values, name)
    if labels.ndim != 1 or (labels.size and not np.issubdtype(labels.dtype, np.integer)):
        raise InputError(
            f"{name} must be a list of whole numbers, one an example, and not {labels.dtype} of"
            f" shape {labels.shape}"
        )
    wrong = np.flatnonzero((labels < 0) | (labels >= num_labels))
    if wrong.size:
        raise InputError(
            f"{name} has {labels[wrong[0]]} at {wrong[0]:,}, but with {num_labels} labels the"
            f" numbers go from 0 to {num_labels - 1}"
        )
    return labels.astype(np.int64)


def read_numbers(values: ArrayLike, name: str, num_axes: int = 1) -> Numbers:
    """Check that numbers are finite and have `num_axes` axes, and return them as float64."""
    numbers = _as_array(values, name, np.float64)
    if numbers.ndim != num_axes:
        raise InputError(f"{name} must have {num_axes} axes, and not the shape {numbers.shape}")
    wrong = np.argwhere(~np.isfinite(numbers))
    if wrong.size:
        raise InputError(f"{name} has {numbers[tuple(wrong[0])]} in example {wrong[0][0]:,}")
    return numbers


def read_weights(weights: NDArray[np.floating] | None, num_examples: int) -> Numbers:
    """Return how often each example counts, `[..., examples]`; once if `weights` is None."""
    if weights is None:
        return np.ones(num_examples)
    if weights.ndim == 0 or weights.shape[-1] != num_examples:
        raise InputError(f"weights of shape {weights.shape} don't fit {num_examples:,} examples")
    return weights.astype(np.float64, copy=False)


def weighted_mean(values: ArrayLike, weights: NDArray[np.floating] | None = None) -> Numbers:
    """Return the weighted mean of the examples' values.

    Args:
        values: one number per example; True counts as 1.
        weights: how often each example counts, `[..., examples]`.

    Returns:
        One number for each row of `weights`.
    """
    numbers = read_numbers(values, "values")
    counted = read_weights(weights, check_lengths(values=numbers))
    mean: Numbers = counted @ numbers / counted.sum(axis=-1)
    return mean


def divide(part: NDArray[np.number], whole: NDArray[np.number]) -> Numbers:
    """Return `part` / `whole`, and 0 where `whole` is 0."""
    is_zero = whole == 0
    quotient: Numbers = np.where(is_zero, 0.0, part) / np.where(is_zero, 1, whole)
    return quotient


def _as_array(values: ArrayLike, name: str, dtype: type[np.float64] | None = None) -> NDArray[Any]:
    try:
        return np.asarray(values, dtype)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} must be an array of numbers: {error}") from None
