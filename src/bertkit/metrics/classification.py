"""One label an example: which label was taken for which, and what follows from it.

The scores need of each label only how often it is there, was predicted, and was right: of many
labels nothing is a square. They take counts `[..., labels]` and give one value for each row, so
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
    """How often each label is there, was predicted, and was right.

    Labels that a model can't predict get numbers behind those that it knows: they count as its
    mistakes.

    Args:
        labels: the true label of each example, from 0.
        predictions: the predicted ones.
        num_labels: how many labels there are.
        weights: how often each example counts, `[..., examples]`; each once by default.

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
    """The confusion matrix as those of its cells that aren't 0: counts by true and predicted label.

    Args:
        labels: the true label of each example, from 0.
        predictions: the predicted ones.
        num_labels: how many labels there are.
    """
    truth, guess = _read_pair(labels, predictions, num_labels)
    cells, counts = np.unique(truth * num_labels + guess, return_counts=True)
    pairs = zip((cells // num_labels).tolist(), (cells % num_labels).tolist(), strict=True)
    return dict(zip(pairs, counts.tolist(), strict=True))


def accuracy(counts: Counts) -> Numbers:
    """The share of examples whose label is right."""
    pooled = counts.pool()
    return divide(pooled.correct, pooled.actual)


def binary_f1(counts: Counts, positive: int = 1) -> Numbers:
    """F1 of one label."""
    num_labels = counts.actual.shape[-1]
    if not 0 <= positive < num_labels:
        raise InputError(f"positive is {positive}, but there are {num_labels} labels, from 0")
    f1: Numbers = np.take(counts.f1, positive, axis=-1)
    return f1


def macro_f1(counts: Counts) -> Numbers:
    """The mean F1 of the labels that are there or were predicted, as in scikit-learn."""
    return counts.average(counts.f1)


def micro_f1(counts: Counts) -> Numbers:
    """F1 of all labels taken as one; with one label an example, that is the accuracy."""
    return counts.pool().f1


def matthews(counts: Counts) -> Numbers:
    """Matthews' correlation between true and predicted labels, from -1 to 1; 0 is chance.

    It is 0 where all examples have one label, or one was predicted for all, as in scikit-learn.

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
    """How often each label comes, `[..., labels]`, where examples count as `weights` say."""
    outer = weights.shape[:-1]
    rows = weights.reshape(math.prod(outer), len(ids))
    counts: Numbers = np.stack([np.bincount(ids, row, num_labels) for row in rows])
    return counts.reshape(*outer, num_labels)
