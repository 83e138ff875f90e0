"""Wrong labels are found from out-of-fold probabilities, and errors can be planted."""

import numpy as np
import pytest

from bertkit.recipes.review import label_errors
from bertkit.recipes.review.label_errors import (
    UNJUDGED,
    find_label_errors,
    find_planted,
    plant_errors,
)

PROBABILITIES = np.array(
    [[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.1, 0.8, 0.1], [0.8, 0.2, 0.0], [0.9, 0.1, 0.0]]
)
LABELS = np.array([0, 1, 1, 0, 1])


def test_the_label_that_the_models_deny_is_named_with_the_likely_one():
    found = find_label_errors(PROBABILITIES, LABELS)
    assert found.is_error.tolist() == [False, False, False, False, True]
    assert found.num_errors == 1
    assert found.likely.tolist() == [1, 0, 0, 1, 0]
    assert found.suspicion == pytest.approx([-0.8, -0.5, -0.7, -0.6, 0.8])
    assert found.ranking.tolist() == [4, 1, 3, 2, 0]


def test_rows_of_equal_suspicion_stay_in_order():
    found = find_label_errors(np.full((4, 2), 0.5), np.array([1, 0, 0, 1]))
    assert found.ranking.tolist() == [0, 1, 2, 3]
    assert found.num_errors == 0


def test_a_label_of_one_row_is_not_judged():
    found = find_label_errors(PROBABILITIES, np.array([0, 1, 1, 2, 0]))
    assert (found.suspicion[3], found.likely[3], found.is_error[3]) == (UNJUDGED, 2, False)


def test_one_label_has_no_errors():
    found = find_label_errors(np.ones((3, 1)), np.zeros(3, np.int64))
    assert found.suspicion.tolist() == [UNJUDGED] * 3


def test_blocks_change_nothing(monkeypatch):
    generator = np.random.default_rng(0)
    probabilities = generator.dirichlet(np.ones(4), 50)
    labels = generator.integers(0, 4, 50)
    whole = find_label_errors(probabilities, labels)
    monkeypatch.setattr(label_errors, "SCORES_PER_BLOCK", 28)
    parts = find_label_errors(probabilities, labels)
    assert whole.num_errors > 0
    np.testing.assert_array_equal(whole.suspicion, parts.suspicion)
    np.testing.assert_array_equal(whole.is_error, parts.is_error)


def test_planted_labels_differ_and_are_as_frequent_as_others():
    labels = np.repeat([0, 1, 2], [600, 300, 100])
    changed, is_planted = plant_errors(labels, 0.5, seed=1)
    assert is_planted.sum() == 500
    np.testing.assert_array_equal(changed != labels, is_planted)
    from_first = changed[is_planted & (labels == 0)]
    assert np.mean(from_first == 1) == pytest.approx(0.75, abs=0.06)
    again, _ = plant_errors(labels, 0.5, seed=1)
    np.testing.assert_array_equal(changed, again)
    errors = find_label_errors(np.eye(3)[labels], changed)
    assert find_planted(errors, is_planted) == errors.num_errors == 500


def test_nothing_is_planted_among_equal_labels():
    changed, is_planted = plant_errors(np.ones(10, np.int64), 0.5, seed=0)
    assert changed.tolist() == [1] * 10
    assert not is_planted.any()
