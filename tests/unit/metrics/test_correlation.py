"""Correlations and errors; parity tests hold them against scipy."""

import numpy as np
import pytest

from bertkit.base.errors import InputError
from bertkit.metrics.correlation import (
    mean_absolute_error,
    mean_squared_error,
    pearson,
    spearman,
)

METRICS = [pearson, spearman, mean_squared_error, mean_absolute_error]


def test_a_straight_line_is_one_and_its_fall_minus_one():
    assert pearson([1, 2, 3], [10, 20, 30]) == pytest.approx(1.0)
    assert pearson([1, 2, 3], [0.3, 0.2, 0.1]) == pytest.approx(-1.0)
    assert spearman([1, 2, 3, 4], [1, 10, 100, 1000]) == pytest.approx(1.0)


def test_equal_numbers_share_the_mean_of_their_ranks():
    # ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4
    assert spearman([0, 5, 5, 9], [1, 2, 3, 4]) == pytest.approx(4.5 / np.sqrt(4.5 * 5))


@pytest.mark.parametrize("metric", [pearson, spearman])
@pytest.mark.parametrize(
    ("truth", "predictions"),
    [
        ([0.1] * 10, range(10)),  # whose mean isn't quite 0.1
        (range(3), [7, 7, 7]),
        ([1], [2]),
        ([0, 0], [1, 1]),
    ],
)
def test_what_is_always_the_same_has_no_correlation(metric, truth, predictions):
    assert np.isnan(metric(list(truth), list(predictions)))


def test_numbers_that_hardly_differ_have_one():
    assert pearson([1, 1 + 2**-52, 1], [0, 1, 0]) == pytest.approx(1.0)


def test_squares_that_vanish_have_none():
    assert np.isnan(pearson([0, 1e-200], [0, 1e-200]))


def test_errors_are_means():
    assert mean_squared_error([1, 2], [1, 5]) == 4.5
    assert mean_absolute_error([1, 2], [1, -1]) == 1.5


@pytest.mark.parametrize("metric", METRICS)
def test_weights_are_repetitions(metric):
    generator = np.random.default_rng(0)
    truth, guess = generator.normal(size=(2, 12)).round(1)
    weights = generator.integers(0, 4, size=(5, 12))
    weights[4] = np.eye(12)[3] * 12  # one example, twelve times
    repeated = [metric(np.repeat(truth, row), np.repeat(guess, row)) for row in weights]
    scores = metric(truth, guess, weights.astype(np.float64))
    np.testing.assert_allclose(scores, repeated, rtol=1e-12)
    assert np.isnan(scores[4]) == (metric in (pearson, spearman))


@pytest.mark.parametrize("metric", METRICS)
def test_wrong_examples_are_refused(metric):
    with pytest.raises(InputError, match="truth 2, predictions 1"):
        metric([1, 2], [1])
    with pytest.raises(InputError, match="are empty"):
        metric([], [])
    with pytest.raises(InputError, match="predictions has nan in example 1"):
        metric([1, 2], [1, np.nan])
