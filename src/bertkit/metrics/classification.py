"""One label an example: the confusion matrix, and what follows from it.

All of these take a matrix `[..., labels, labels]` and give one value a matrix, so that a thousand
resamples are scored at once.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertkit.base.errors import InputError
from bertkit.metrics.counts import Counts
from bertkit.metrics.examples import Numbers, check_lengths, divide, read_labels, read_weights

Matrix = NDArray[np.number]


def confusion_matrix(
    labels: ArrayLike,
    predictions: ArrayLike,
    num_labels: int,
    weights: NDArray[np.floating] | None = None,
) -> Matrix:
    """How often each label was taken for each.

    Labels that a model can't predict get numbers behind those that it knows: they count as its
    mistakes.

    Args:
        labels: the true label of each example, from 0.
        predictions: the predicted ones.
        num_labels: how many labels there are.
        weights: how often each example counts, `[..., examples]`; each once by default.

    Returns:
        Rows are true labels, columns predicted ones: whole numbers `[labels, labels]`, or
        `[..., labels, labels]` for `weights`.

    Raises:
        InputError: there are no examples, more of one than of the other, or a label that isn't
            below `num_labels`.
    """
    truth = read_labels(labels, num_labels, "labels")
    guess = read_labels(predictions, num_labels, "predictions")
    num_examples = check_lengths(labels=truth, predictions=guess)
    cells = truth * num_labels + guess
    shape = (num_labels, num_labels)
    if weights is None:
        return np.bincount(cells, minlength=num_labels**2).reshape(shape)
    counted = read_weights(weights, num_examples)
    rows = [
        np.bincount(cells, row, minlength=num_labels**2)
        for row in counted.reshape(-1, num_examples)
    ]
    return np.stack(rows).reshape(*counted.shape[:-1], *shape)


def accuracy(matrix: Matrix) -> Numbers:
    """The share of examples whose label is right."""
    return divide(_trace(matrix), matrix.sum(axis=(-2, -1)))


def count_labels(matrix: Matrix) -> Counts:
    """Counts of each label, of which its precision, recall and F1 are made."""
    correct = np.diagonal(matrix, axis1=-2, axis2=-1)
    return Counts(correct, predicted=matrix.sum(axis=-2), actual=matrix.sum(axis=-1))


def binary_f1(matrix: Matrix, positive: int = 1) -> Numbers:
    """F1 of one label.

    Raises:
        InputError: there is no label of that number.
    """
    num_labels = matrix.shape[-1]
    if not 0 <= positive < num_labels:
        raise InputError(f"positive is {positive}, but there are {num_labels} labels, from 0")
    f1: Numbers = np.take(count_labels(matrix).f1, positive, axis=-1)
    return f1


def macro_f1(matrix: Matrix) -> Numbers:
    """The mean F1 of the labels that are there or were predicted, as in scikit-learn."""
    counts = count_labels(matrix)
    return counts.average(counts.f1)


def micro_f1(matrix: Matrix) -> Numbers:
    """F1 of all labels taken as one; with one label an example, that is the accuracy."""
    return count_labels(matrix).pool().f1


def matthews(matrix: Matrix) -> Numbers:
    """Matthews' correlation between true and predicted labels, from -1 to 1; 0 is chance.

    It is 0 where all examples have one label, or one was predicted for all, as in scikit-learn.

    Source: Gorodkin, "Comparing two K-category assignments by a K-category correlation
    coefficient", Computational Biology and Chemistry 28 (2004).
    """
    actual = matrix.sum(axis=-1).astype(np.float64)
    predicted = matrix.sum(axis=-2).astype(np.float64)
    total = actual.sum(axis=-1)
    shared = _trace(matrix) * total - (actual * predicted).sum(axis=-1)
    spread_of_actual = total**2 - (actual**2).sum(axis=-1)
    spread_of_predicted = total**2 - (predicted**2).sum(axis=-1)
    return divide(shared, np.sqrt(spread_of_actual * spread_of_predicted))


def _trace(matrix: Matrix) -> Numbers:
    trace: Numbers = np.trace(matrix, axis1=-2, axis2=-1).astype(np.float64)
    return trace
