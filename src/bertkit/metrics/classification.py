"""Metrics of single-label classification: accuracy, F1, Matthews correlation, confusion matrix.

The scores need only three counts per label (actual, predicted, correct), so memory doesn't grow
with the square of the labels. They take counts `[..., labels]` and return one value per row, so
that a thousand resamples are scored at once.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertkit.base.errors import InputError
from bertkit.metrics.counts import Counts
from bertkit.metrics.examples import Numbers, check_lengths, divide, read_labels, read_weights

Ids = NDArray[np.int64]


def count_labels(
    labels: ArrayLike,
    predictions: ArrayLike,
    num_labels: int,
    weights: NDArray[np.floating] | None = None,
) -> Counts:
    """Count how often each label occurs, was predicted, and was predicted correctly.

    Give labels that the model doesn't know ids above those that it knows: they count as its
    mistakes.

    Args:
        labels: the true label id of each example, from 0.
        predictions: the predicted label ids.
        num_labels: number of labels.
        weights: how often each example counts, `[..., examples]`; by default once.

    Returns:
        Counts `[labels]`, or `[..., labels]` for `weights`.
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
    """Return the nonzero cells of the confusion matrix: (true, predicted) label ids → count.

    Args:
        labels: the true label id of each example, from 0.
        predictions: the predicted label ids.
        num_labels: number of labels.
    """
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
    num_labels = counts.actual.shape[-1]
    if not 0 <= positive < num_labels:
        raise InputError(f"positive is {positive}, but there are {num_labels} labels, from 0")
    f1: Numbers = np.take(counts.f1, positive, axis=-1)
    return f1


def macro_f1(counts: Counts) -> Numbers:
    """Return the mean F1 of the labels that occur or were predicted, as in scikit-learn."""
    return counts.average(counts.f1)


def micro_f1(counts: Counts) -> Numbers:
    """Return the F1 of the pooled counts; with one label per example, it equals the accuracy."""
    return counts.pool().f1


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
