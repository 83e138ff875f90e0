"""What follows from counts of labels; parity tests hold it against scikit-learn."""

import numpy as np
import pytest
from tests.closeness import close

from bertkit.base.errors import InputError
from bertkit.tasks.metrics.classification import (
    Counts,
    accuracy,
    binary_f1,
    check_lengths,
    count_label_sets,
    count_labels,
    macro_f1,
    matthews,
    weighted_mean,
)

LABELS = [0, 0, 0, 1, 1, 3]
PREDICTIONS = [0, 0, 1, 1, 0, 1]


def test_one_label_can_be_the_positive_one():
    counts = count_labels(LABELS, PREDICTIONS, 4)
    assert binary_f1(counts) == close(2 / 5)
    assert binary_f1(counts, positive=0) == close(2 / 3)


def test_matthews_of_a_billion_examples_does_not_overflow():
    right, all_of_it = np.full(2, 10**9), np.full(2, 10**9 + 1)
    counts = Counts(right, all_of_it, all_of_it)
    assert matthews(counts) == close(1 - 2e-9)


def test_weights_score_many_sets_at_once():
    weights = np.array([[1.0] * 6, [0, 0, 0, 2, 1, 0]])
    counts = count_labels(LABELS, PREDICTIONS, 4, weights)
    assert counts.actual.shape == (2, 4)
    for metric in (accuracy, macro_f1, matthews, binary_f1):
        once = metric(count_labels(LABELS, PREDICTIONS, 4))
        repeated = metric(count_labels([1, 1, 1], [1, 1, 0], 4))
        assert metric(counts).tolist() == [once, repeated]


def test_nothing_has_no_score():
    with pytest.raises(InputError, match="labels and predictions are empty"):
        check_lengths(labels=[], predictions=[])
    with pytest.raises(InputError, match="values are empty"):
        weighted_mean([])


LABEL_SETS = np.array([[True, False, False], [True, True, False], [False, False, False]])
PREDICTED_SETS = np.array([[True, True, False], [True, True, False], [False, False, False]])


def test_weights_add_up_resamples_of_sets():
    totals = count_label_sets(LABEL_SETS, PREDICTED_SETS).add_up(np.array([[2.0, 0, 0], [0, 1, 1]]))
    assert totals.predicted.tolist() == [[2, 2, 0], [1, 1, 0]]
    assert totals.pool().f1.tolist() == close([2 / 3, 1.0])
