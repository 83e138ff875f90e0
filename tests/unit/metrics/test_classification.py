"""What follows from counts of labels; parity tests hold it against scikit-learn."""

import numpy as np
import pytest

from bertkit.base.errors import InputError
from bertkit.metrics.classification import (
    accuracy,
    binary_f1,
    confuse_labels,
    count_labels,
    macro_f1,
    matthews,
    micro_f1,
)
from bertkit.metrics.counts import Counts

LABELS = [0, 0, 0, 1, 1, 3]
PREDICTIONS = [0, 0, 1, 1, 0, 1]


def test_cells_are_named_by_the_true_label_and_the_predicted_one():
    cells = confuse_labels(LABELS, PREDICTIONS, 4)
    assert cells == {(0, 0): 2, (0, 1): 1, (1, 0): 1, (1, 1): 1, (3, 1): 1}
    assert confuse_labels([49_999, 7], [7, 7], 50_000) == {(7, 7): 1, (49_999, 7): 1}


def test_each_label_has_its_rates():
    counts = count_labels(LABELS, PREDICTIONS, 4)
    assert counts.correct.tolist() == [2, 1, 0, 0]
    assert counts.precision.tolist() == pytest.approx([2 / 3, 1 / 3, 0, 0])
    assert counts.recall.tolist() == pytest.approx([2 / 3, 1 / 2, 0, 0])
    assert counts.f1.tolist() == pytest.approx([2 / 3, 2 / 5, 0, 0])


def test_a_label_that_is_nowhere_is_in_no_mean():
    counts = count_labels(LABELS, PREDICTIONS, 4)
    assert macro_f1(counts) == pytest.approx((2 / 3 + 2 / 5 + 0) / 3)  # not of four
    assert micro_f1(counts) == accuracy(counts) == 0.5


def test_one_label_can_be_the_positive_one():
    counts = count_labels(LABELS, PREDICTIONS, 4)
    assert binary_f1(counts) == pytest.approx(2 / 5)
    assert binary_f1(counts, positive=0) == pytest.approx(2 / 3)
    for positive in (4, -1):
        with pytest.raises(InputError, match=f"positive is {positive}, but there are 4 labels"):
            binary_f1(counts, positive)


def test_matthews_tells_chance_from_sense():
    assert matthews(count_labels([0, 1, 2], [0, 1, 2], 3)) == 1.0
    assert matthews(count_labels([0, 1], [1, 0], 2)) == -1.0
    assert matthews(count_labels([0, 0, 1, 1], [0, 1, 0, 1], 2)) == 0.0
    assert matthews(count_labels([0, 1, 1], [1, 1, 1], 2)) == 0.0
    assert matthews(count_labels([1], [1], 2)) == 0.0


def test_matthews_of_a_billion_examples_does_not_overflow():
    right, all_of_it = np.full(2, 10**9), np.full(2, 10**9 + 1)
    counts = Counts(right, all_of_it, all_of_it)
    assert matthews(counts) == pytest.approx(1 - 2e-9, abs=1e-12)


def test_no_label_at_all_is_zero():
    nothing = Counts(np.zeros(0), np.zeros(0), np.zeros(0))
    assert nothing.average(nothing.f1) == 0.0
    assert nothing.pool().f1 == 0.0


def test_weights_score_many_sets_at_once():
    weights = np.array([[1.0] * 6, [0, 0, 0, 2, 1, 0]])
    counts = count_labels(LABELS, PREDICTIONS, 4, weights)
    assert counts.actual.shape == (2, 4)
    for metric in (accuracy, macro_f1, micro_f1, matthews, binary_f1):
        once = metric(count_labels(LABELS, PREDICTIONS, 4))
        repeated = metric(count_labels([1, 1, 1], [1, 1, 0], 4))
        assert metric(counts).tolist() == [once, repeated]


def test_wrong_examples_are_refused():
    with pytest.raises(InputError, match="labels 2, predictions 1"):
        count_labels([0, 1], [0], 2)
    with pytest.raises(InputError, match="are empty"):
        count_labels([], [], 2)
    with pytest.raises(InputError, match="predictions has 2 at 0"):
        count_labels([0], [2], 2)
