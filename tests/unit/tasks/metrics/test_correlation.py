"""Intervals by resampling."""

import numpy as np
import pytest
from scipy import stats
from tests.closeness import assert_close, close

from bertkit.base.errors import InputError
from bertkit.tasks.metrics import correlation
from bertkit.tasks.metrics.classification import weighted_mean
from bertkit.tasks.metrics.correlation import bootstrap_interval, pearson, spearman


def test_each_resample_draws_as_many_examples():
    seen = []

    def remember(weights):
        seen.append(weights)
        return weights[:, 0]

    bootstrap_interval(remember, 50, seed=0, num_resamples=200)
    weights = np.concatenate(seen)
    assert weights.shape == (200, 50)
    assert (weights.sum(axis=1) == 50).all()
    assert (weights == np.floor(weights)).all()
    assert weights.mean(axis=0) == close(np.ones(50), within=0.5)
    assert weights.var() == close(1 - 1 / 50, within=0.05)  # of a binomial count


def test_the_interval_of_a_mean_is_that_of_its_standard_error():
    right = np.arange(1000) < 800
    interval = bootstrap_interval(lambda weights: weighted_mean(right, weights), 1000, seed=1)
    expected = stats.binom(1000, 0.8).ppf([0.025, 0.975]) / 1000
    assert interval == close(expected, within=0.003)


def test_the_seed_alone_decides_and_not_how_many_are_made_at_once(monkeypatch):
    values = np.random.default_rng(2).normal(size=30)

    def measure(seed):
        return bootstrap_interval(lambda weights: weighted_mean(values, weights), 30, seed=seed)

    interval = measure(3)
    assert measure(3) == interval != measure(4)
    for num_weights in (70, 1):  # two resamples, and fewer than one
        monkeypatch.setattr(correlation, "NUM_WEIGHTS_AT_ONCE", num_weights)
        assert measure(3) == close(interval)


def test_resamples_without_a_value_are_left_out():
    interval = bootstrap_interval(lambda weights: pearson([0, 1], [0, 1], weights), 2)
    assert interval == close((1.0, 1.0))
    assert np.isnan(bootstrap_interval(lambda weights: pearson([1, 1], [0, 1], weights), 2)).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_examples": 0}, "not 0 and 1,000"),
        ({"num_resamples": 0}, "not 5 and 0"),
    ],
)
def test_an_interval_needs_examples_and_resamples(changes, message):
    arguments = {"num_examples": 5} | changes
    with pytest.raises(InputError, match=message):
        bootstrap_interval(lambda weights: weights[:, 0], **arguments)


METRICS = [pearson, spearman]


def test_numbers_that_hardly_differ_have_one():
    assert pearson([1, 1 + 2**-52, 1], [0, 1, 0]) == close(1.0)


def test_squares_that_vanish_have_none():
    assert np.isnan(pearson([0, 1e-200], [0, 1e-200]))


@pytest.mark.parametrize("metric", METRICS)
def test_weights_are_repetitions(metric):
    generator = np.random.default_rng(0)
    truth, guess = generator.normal(size=(2, 12)).round(1)
    weights = generator.integers(0, 4, size=(5, 12))
    weights[4] = np.eye(12)[3] * 12  # one example, twelve times
    repeated = [metric(np.repeat(truth, row), np.repeat(guess, row)) for row in weights]
    scores = metric(truth, guess, weights.astype(np.float64))
    assert_close(scores[:4], repeated[:4])
    assert np.isnan([scores[4], repeated[4]]).all()


@pytest.mark.parametrize("metric", METRICS)
def test_wrong_examples_are_refused(metric):
    with pytest.raises(InputError, match="truth 2, predictions 1"):
        metric([1, 2], [1])
    with pytest.raises(InputError, match="are empty"):
        metric([], [])


@pytest.mark.parametrize("metric", METRICS)
def test_a_resample_without_an_example_has_none(metric):
    assert np.isnan(metric([0.0, 1.0, 2.0], [0.0, 2.0, 1.0], np.zeros((1, 3)))).all()
