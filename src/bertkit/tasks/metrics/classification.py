"""Metrics of classification, and the checks and weights of examples that all metrics share.

A metric that takes `weights` returns one value for each row of them: the value on the set that
contains each example that many times. So a thousand resamples are scored at once. Without weights,
a metric returns one number, which `float` converts to a Python number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
    return weights.astype(np.float64, copy=False)


def weighted_mean(values: ArrayLike, weights: NDArray[np.floating] | None = None) -> Numbers:
    """Return the weighted mean of the examples' values, one number for each row of `weights`.

    True counts as 1; the weights say how often each example counts, `[..., examples]`.
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


@dataclass(frozen=True)
class Counts:
    """How often each label was correctly predicted, was predicted, and occurs, `[..., labels]`.

    A rate whose denominator is 0 is 0, as in conlleval and scikit-learn with `zero_division=0`.
    """

    correct: NDArray[np.number]  # true positives
    predicted: NDArray[np.number]  # true and false positives
    actual: NDArray[np.number]  # true positives and false negatives

    @property
    def precision(self) -> Numbers:
        """Precision: the share of predictions that are correct."""
        return divide(self.correct, self.predicted)

    @property
    def recall(self) -> Numbers:
        """Recall: the share of actual occurrences that were predicted."""
        return divide(self.correct, self.actual)

    @property
    def f1(self) -> Numbers:
        """F1: the harmonic mean of precision and recall."""
        return divide(2 * self.correct, self.predicted + self.actual)

    def pool(self) -> "Counts":
        """Sum the counts over all labels, for micro averages, `[...]`."""
        return Counts(self.correct.sum(-1), self.predicted.sum(-1), self.actual.sum(-1))

    def average(self, rates: Numbers) -> Numbers:
        """Return the mean over labels that occur or were predicted: a macro average, `[...]`.

        It is 0 if there are no such labels. `rates` are `[..., labels]`, such as `f1`.
        """
        is_met = (self.predicted + self.actual) > 0
        return divide(np.where(is_met, rates, 0.0).sum(axis=-1), is_met.sum(axis=-1))

    def add_up(self, weights: NDArray[np.floating] | None = None) -> "Counts":
        """Sum counts `[examples, labels]` over the examples.

        With weights `[..., examples]` the sums are `[..., labels]`.
        """
        counted = read_weights(weights, len(self.correct))
        return Counts(counted @ self.correct, counted @ self.predicted, counted @ self.actual)


Ids = NDArray[np.int64]


def count_labels(
    labels: ArrayLike,
    predictions: ArrayLike,
    num_labels: int,
    weights: NDArray[np.floating] | None = None,
) -> Counts:
    """Count how often each label occurs, was predicted, and was predicted correctly.

    The counts are `[labels]`, or `[..., labels]` for weights `[..., examples]`. Give labels that
    the model doesn't know ids above those that it knows: they count as its mistakes.
    """
    truth, guess = _read_pair(labels, predictions, num_labels)
    counted = read_weights(weights, len(truth))
    hits = truth == guess
    return Counts(
        correct=_count(truth[hits], num_labels, counted[..., hits]),
        predicted=_count(guess, num_labels, counted),
        actual=_count(truth, num_labels, counted),
    )


def confuse_labels(
    labels: ArrayLike, predictions: ArrayLike, num_labels: int
) -> dict[tuple[int, int], int]:
    """Return the nonzero cells of the confusion matrix: (true, predicted) label ids → count."""
    truth, guess = _read_pair(labels, predictions, num_labels)
    cells, counts = np.unique(truth * num_labels + guess, return_counts=True)
    pairs = zip((cells // num_labels).tolist(), (cells % num_labels).tolist(), strict=True)
    return dict(zip(pairs, counts.tolist(), strict=True))


def accuracy(counts: Counts) -> Numbers:
    """Return the share of examples whose label was predicted correctly."""
    pooled = counts.pool()
    return divide(pooled.correct, pooled.actual)


def balanced_accuracy(counts: Counts) -> Numbers:
    """Return the mean recall of the labels that occur, as in scikit-learn."""
    occurs = counts.actual > 0
    return divide(np.where(occurs, counts.recall, 0.0).sum(axis=-1), occurs.sum(axis=-1))


def binary_f1(counts: Counts, positive: int = 1) -> Numbers:
    """Return the F1 of one label."""
    f1: Numbers = np.take(counts.f1, positive, axis=-1)
    return f1


def macro_f1(counts: Counts) -> Numbers:
    """Return the mean F1 of the labels that occur or were predicted, as in scikit-learn."""
    return counts.average(counts.f1)


def matthews(counts: Counts) -> Numbers:
    """Return the Matthews correlation coefficient, from -1 to 1; 0 is chance.

    It is 0 if all true or all predicted labels are the same, as in scikit-learn.

    Source: Gorodkin, "Comparing two K-category assignments by a K-category correlation
    coefficient", Computational Biology and Chemistry 28 (2004).
    """
    actual = counts.actual.astype(np.float64)
    predicted = counts.predicted.astype(np.float64)
    total = actual.sum(axis=-1)
    correct = counts.correct.sum(axis=-1).astype(np.float64)
    shared = correct * total - (actual * predicted).sum(axis=-1)
    spread_of_actual = total**2 - (actual**2).sum(axis=-1)
    spread_of_predicted = total**2 - (predicted**2).sum(axis=-1)
    return divide(shared, np.sqrt(spread_of_actual * spread_of_predicted))


def _read_pair(labels: ArrayLike, predictions: ArrayLike, num_labels: int) -> tuple[Ids, Ids]:
    truth = read_labels(labels, num_labels, "labels")
    guess = read_labels(predictions, num_labels, "predictions")
    check_lengths(labels=truth, predictions=guess)
    return truth, guess


def _count(ids: Ids, num_labels: int, weights: Numbers) -> Numbers:
    """Return the weighted count of each label, `[..., labels]`."""
    outer = weights.shape[:-1]
    rows = weights.reshape(math.prod(outer), len(ids))
    counts: Numbers = np.stack([np.bincount(ids, row, num_labels) for row in rows])
    return counts.reshape(*outer, num_labels)


def count_label_sets(labels: ArrayLike, predictions: ArrayLike) -> Counts:
    """Count each label in each example from Booleans, `[examples, labels]`.

    `counts.add_up(weights).pool().f1` is the micro F1 and `counts.add_up(weights).f1.mean(axis=-1)`
    the macro F1. The macro F1 includes labels that never occur, as 0, as in scikit-learn.
    """
    truth, guess = np.asarray(labels), np.asarray(predictions)
    check_lengths(labels=truth, predictions=guess)
    return Counts(
        correct=(truth & guess).astype(np.int64),
        predicted=guess.astype(np.int64),
        actual=truth.astype(np.int64),
    )
