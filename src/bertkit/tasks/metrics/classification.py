"""Metrics of classification, and the weights of examples that all metrics share.

A metric that takes `weights` returns one value for each row of them: the value on the set that
contains each example that many times. So a thousand resamples are scored at once. Without weights,
a metric returns one number, which `float` converts to a Python number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertkit.base.errors import InputError

Numbers = NDArray[np.float64]
Number = TypeVar("Number", bound=np.number)


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


def read_pair(
    truth: ArrayLike, predictions: ArrayLike, dtype: type[Number]
) -> tuple[NDArray[Number], NDArray[Number]]:
    """Return what is true and what was predicted of the same examples as arrays."""
    first, second = np.asarray(truth, dtype), np.asarray(predictions, dtype)
    check_lengths(truth=first, predictions=second)
    return first, second


def read_weights(weights: NDArray[np.floating] | None, num_examples: int) -> Numbers:
    """Return how often each example counts, `[..., examples]`; once if `weights` is None."""
    if weights is None:
        return np.ones(num_examples)
    return weights.astype(np.float64, copy=False)


def weighted_mean(values: ArrayLike, weights: NDArray[np.floating] | None = None) -> Numbers:
    """Return the weighted mean of the examples' values, one number for each row of `weights`.

    True counts as 1; the weights say how often each example counts, `[..., examples]`.
    """
    numbers = np.asarray(values, dtype=np.float64)
    counted = read_weights(weights, check_lengths(values=numbers))
    mean: Numbers = counted @ numbers / counted.sum(axis=-1)
    return mean


def divide(part: NDArray[np.number], whole: NDArray[np.number]) -> Numbers:
    """Return `part` / `whole`, and 0 where `whole` is 0."""
    is_zero = whole == 0
    quotient: Numbers = np.where(is_zero, 0.0, part) / np.where(is_zero, 1, whole)
    return quotient


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
    truth, guess = read_pair(labels, predictions, np.int64)
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
    truth, guess = read_pair(labels, predictions, np.int64)
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
