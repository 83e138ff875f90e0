"""Metrics of multi-label classification, from Boolean matrices of true and predicted labels."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertkit.base.errors import InputError
from bertkit.metrics.counts import Counts
from bertkit.metrics.examples import Numbers, check_lengths, weighted_mean


def count_label_sets(labels: ArrayLike, predictions: ArrayLike) -> Counts:
    """Count each label in each example, `[examples, labels]`.

    `counts.add_up(weights).pool().f1` is the micro F1 and `counts.add_up(weights).f1.mean(axis=-1)`
    the macro F1. The macro F1 includes labels that never occur, as 0, as in scikit-learn.

    Args:
        labels: True where an example has a label, `[examples, labels]`.
        predictions: True where a label was predicted, `[examples, labels]`.
    """
    truth, guess = _read_pair(labels, predictions)
    return Counts(
        correct=(truth & guess).astype(np.int64),
        predicted=guess.astype(np.int64),
        actual=truth.astype(np.int64),
    )


def subset_accuracy(
    labels: ArrayLike, predictions: ArrayLike, weights: NDArray[np.floating] | None = None
) -> Numbers:
    """Return the share of examples whose predicted set of labels equals the true set.

    Args:
        labels: True where an example has a label, `[examples, labels]`.
        predictions: True where a label was predicted, `[examples, labels]`.
        weights: how often each example counts, `[..., examples]`.
    """
    truth, guess = _read_pair(labels, predictions)
    return weighted_mean((truth == guess).all(axis=1), weights)


def _read_pair(
    labels: ArrayLike, predictions: ArrayLike
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    truth, guess = np.asarray(labels), np.asarray(predictions)
    check_lengths(labels=np.atleast_1d(truth), predictions=np.atleast_1d(guess))
    for name, values in (("labels", truth), ("predictions", guess)):
        if values.dtype != np.bool_ or values.ndim != 2:
            raise InputError(
                f"{name} must be Boolean, [examples, labels], and not {values.dtype} of shape"
                f" {values.shape}"
            )
    if truth.shape != guess.shape:
        raise InputError(
            f"labels know {truth.shape[1]} labels, and predictions {guess.shape[1]}: both must"
            " have a column for each"
        )
    return truth, guess
