"""Sets of labels; parity tests hold them against scikit-learn."""

import numpy as np
import pytest
from tests.closeness import close

from bertkit.base.errors import InputError
from bertkit.tasks.metrics.classification import count_label_sets

LABELS = np.array([[True, False, False], [True, True, False], [False, False, False]])
PREDICTIONS = np.array([[True, True, False], [True, True, False], [False, False, False]])


def test_weights_add_up_resamples():
    totals = count_label_sets(LABELS, PREDICTIONS).add_up(np.array([[2.0, 0, 0], [0, 1, 1]]))
    assert totals.predicted.tolist() == [[2, 2, 0], [1, 1, 0]]
    assert totals.pool().f1.tolist() == close([2 / 3, 1.0])


@pytest.mark.parametrize(
    ("labels", "predictions", "message"),
    [
        ([[True]], [[True], [False]], "labels 1, predictions 2"),
        ([[True]], [[True, False]], "labels know 1 labels, and predictions 2"),
        ([[1]], [[True]], "labels must be Boolean"),
        ([True], [True], r"of shape \(1,\)"),
        ([[True]], [[0.7]], "predictions must be Boolean, .* not float64"),
        (np.zeros((0, 2), bool), np.zeros((0, 2), bool), "are empty"),
        (True, True, "must be Boolean"),
    ],
)
def test_other_matrices_are_refused(labels, predictions, message):
    with pytest.raises(InputError, match=message):
        count_label_sets(labels, predictions)
