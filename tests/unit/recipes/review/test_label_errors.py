"""Wrong labels are found from out-of-fold probabilities, and errors can be planted."""

import numpy as np
from tests.closeness import assert_close

from bertkit.recipes.review import label_errors
from bertkit.recipes.review.label_errors import (
    UNJUDGED,
    LabelErrors,
    check_errors,
    find_label_errors,
    find_number_errors,
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
    scale = np.log(1.01 / 0.01)
    assert_close(found.suspicion[-1], np.log(0.91 / 0.11) / scale)
    assert_close(found.suspicion[1], np.log(0.21 / 0.71) / scale)
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
    assert_close(np.mean(from_first == 1), 0.75, within=0.06)
    again, _ = plant_errors(labels, 0.5, seed=1)
    np.testing.assert_array_equal(changed, again)
    errors = find_label_errors(np.eye(3)[labels], changed)
    assert errors.is_error.tolist() == is_planted.tolist()


def test_nothing_is_planted_among_equal_labels():
    changed, is_planted = plant_errors(np.ones(10, np.int64), 0.5, seed=0)
    assert changed.tolist() == [1] * 10
    assert not is_planted.any()


def test_one_label_of_a_row_is_exchanged_as_often_a_common_one():
    labels, owners = np.tile([0, 0, 0, 0, 1], 400), np.repeat(np.arange(400), 5)
    changed, is_planted = plant_errors(labels, 0.5, seed=0, owners=owners)
    assert len(set(owners[is_planted])) == is_planted.sum() == 200
    assert_close(np.mean(labels[is_planted] == 0), 0.5, within=0.1)
    np.testing.assert_array_equal(changed != labels, is_planted)


def test_planted_errors_bound_the_number_of_errors():
    """Of 1,000 rows, 20 are wrong; 100 others look wrong to the models, none as much as those."""
    generator = np.random.default_rng(0)
    wrong, hard, fine = (
        generator.uniform(*bounds, number)
        for bounds, number in (((0.5, 1.0), 20), ((0.0, 0.4), 100), ((-1.0, 0.0), 880))
    )
    suspicion = np.concatenate([hard, wrong, fine])
    errors = LabelErrors(suspicion, np.zeros(1000, np.int64), suspicion > 0)
    is_planted = np.arange(1000) >= 950
    with_planted = suspicion.copy()
    with_planted[is_planted] = np.linspace(0.2, 1.0, 50)
    checked, planted = check_errors(errors, with_planted, is_planted)
    assert errors.num_errors == 120
    assert 20 <= checked.num_errors <= 40
    assert checked.is_error[100:120].all()
    first_left = np.sort(suspicion[:950])[-1 - checked.num_errors]
    assert planted.num_found == (with_planted[950:] > first_left).sum() > 20
    assert_close(planted.lift, planted.num_found / 50 / planted.named_share)
    untouched, none = check_errors(errors, suspicion, np.zeros(1000, np.bool_))
    assert (untouched.num_errors, none.number, none.num_found) == (120, 0, 0)


def test_several_rounds_of_planted_errors_are_one_check():
    errors = find_label_errors(PROBABILITIES, LABELS)
    suspicion = np.array([-0.9, -0.9, 0.1, 0.9, 0.95])
    is_planted = np.array([0, 0, 0, 1, 1], np.bool_)
    once, check = check_errors(errors, suspicion, is_planted)
    twice, both = check_errors(errors, np.tile(suspicion, 2), np.tile(is_planted, 2))
    assert twice.is_error.tolist() == once.is_error.tolist()
    assert (both.number, both.num_found, both.lift) == (4, 2 * check.num_found, check.lift)


def test_no_error_remains_where_planted_ones_look_like_other_rows():
    suspicion = np.linspace(-1, 1, 200)
    errors = LabelErrors(suspicion, np.zeros(200, np.int64), suspicion > 0)
    checked, planted = check_errors(errors, suspicion, np.arange(200) % 10 == 5)
    assert planted.lift < label_errors.LEAST_LIFT
    assert (errors.num_errors, checked.num_errors) == (100, 0)


def test_hardly_an_error_remains_where_planted_ones_are_more_suspicious():
    suspicion = np.concatenate([np.full(90, 0.5), np.full(10, 0.9)])
    errors = LabelErrors(suspicion, np.zeros(100, np.int64), suspicion > 0)
    checked, planted = check_errors(errors, suspicion, suspicion > 0.8)
    assert (errors.num_errors, checked.num_errors, planted.num_found) == (100, 1, 10)


def test_numbers_that_are_mostly_predicted_exactly_leave_the_others():
    found = find_number_errors(np.zeros(9), np.array([0.0] * 8 + [5.0]))
    assert found.is_error.tolist() == [False] * 8 + [True]
    assert not find_number_errors(np.zeros(9), np.zeros(9)).is_error.any()
