"""Probabilities, and what is found on held-out examples for them."""

import numpy as np
from tests.closeness import close

from bertkit.tasks.classify.decoding import find_probabilities, find_threshold, fit, fit_joint

RANDOM = np.random.default_rng(0)


def test_probabilities_are_softmax_or_logistic():
    scores = np.array([0.5, -1.0, 2.0])
    powers = np.exp(scores / 2)
    assert find_probabilities(scores, 2.0, multi_label=False) == close(powers / powers.sum())
    found = find_probabilities(scores, 2.0, multi_label=True)
    assert found == close(1 / (1 + np.exp(-scores / 2)))
    far = [1e6, -1e6]
    assert find_probabilities(far, 1.0, multi_label=True) == [1.0, 0.0]
    assert find_probabilities(far, 1.0, multi_label=False) == [1.0, 0.0]


def test_unknown_labels_change_no_temperature():
    truth = RANDOM.integers(3, size=400)
    scores = 3 * RANDOM.normal(size=(400, 3)) + 3 * np.eye(3)[truth]
    found = fit(scores, truth)["temperature"]
    assert found > 1
    unknown = np.concatenate([truth, [-100] * 50])
    more = np.concatenate([scores, RANDOM.normal(size=(50, 3))])
    assert fit(more, unknown)["temperature"] == found


def test_where_all_are_right_no_temperature_is_found():
    assert fit(np.eye(3), np.array([0, 1, 2])) == {}
    assert fit_joint(np.eye(3) - 0.5, np.eye(3, dtype=bool), needs_threshold=False) == {}


def test_the_threshold_gives_the_best_micro_f1():
    for _ in range(20):
        labels = RANDOM.random((30, 4)) < 0.3
        scores = np.round(RANDOM.normal(size=(30, 4)) + labels - 1, 1)  # many are equal
        found = fit_joint(scores, labels, needs_threshold=True)
        temperature = found["temperature"]
        shares = np.array(
            [find_probabilities(row, temperature, multi_label=True) for row in scores.tolist()]
        )

        def f1(threshold, labels=labels, shares=shares):
            given = shares >= threshold
            return 2 * (given & labels).sum() / (given.sum() + labels.sum())

        best = max(f1(share) for share in shares.ravel())
        assert f1(found["threshold"]) == best
        assert found["threshold"] not in shares


def test_a_threshold_needs_labels():
    assert find_threshold(np.array([[0.2], [0.2]]), np.array([[True], [False]])) == 0.1
    assert fit_joint(
        np.ones((2, 2)), np.zeros((2, 2), dtype=bool), needs_threshold=True
    ).keys() == {"temperature"}
