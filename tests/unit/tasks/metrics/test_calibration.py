"""Reliability, likelihood and temperature."""

import numpy as np
import pytest
from tests.closeness import close
from tests.unit.tasks.small import negative_log_likelihood

from bertkit.base.errors import InputError
from bertkit.tasks.metrics import calibration
from bertkit.tasks.metrics.calibration import (
    GREATEST_TEMPERATURE,
    LEAST_TEMPERATURE,
    CalibrationError,
    find_reliability,
    fit_temperature,
    measure_calibration,
)


def test_bins_have_what_lies_above_their_lower_end():
    bins = find_reliability([0.0, 0.02, 0.2, 0.6, 1.0], [False, True, True, False, True])
    assert [(bin_.low * 15, bin_.high * 15, bin_.count) for bin_ in bins] == [
        (0, close(1), 2),
        (close(2), close(3), 1),
        (close(8), close(9), 1),
        (close(14), 15, 1),
    ]
    assert (bins[0].confidence, bins[0].accuracy) == (close(0.01), 0.5)


def test_the_error_is_the_mean_gap():
    found = measure_calibration([0.9, 0.9, 0.6, 0.6], [True, False, True, True])
    assert found.value == close(0.5 * 0.4 + 0.5 * 0.4)
    assert measure_calibration([1.0, 0.0], [True, False]).value == 0.0


def test_no_other_temperature_is_likelier():
    generator = np.random.default_rng(0)
    grid = np.geomspace(LEAST_TEMPERATURE, GREATEST_TEMPERATURE, 150)
    for _ in range(15):
        num_examples, num_labels = generator.integers(2, 40), generator.integers(2, 6)
        labels = generator.integers(num_labels, size=num_examples)
        logits = generator.normal(size=(num_examples, num_labels))
        logits[np.arange(num_examples), labels] += generator.normal()
        logits *= 10 ** generator.uniform(-2, 2)
        fitted = fit_temperature(logits, labels)
        assert LEAST_TEMPERATURE <= fitted <= GREATEST_TEMPERATURE
        reached = negative_log_likelihood(logits, labels, fitted)
        likeliest = min(negative_log_likelihood(logits, labels, value) for value in grid)
        assert reached <= likeliest + 1e-12
        if LEAST_TEMPERATURE < fitted < GREATEST_TEMPERATURE:
            nearby = [negative_log_likelihood(logits, labels, fitted * f) for f in (0.999, 1.001)]
            assert reached <= min(nearby)


def test_where_the_data_has_no_end_a_bound_has():
    logits = np.array([[5.0, 0.0], [0.0, 5.0]])
    assert fit_temperature(logits, [0, 1]) == LEAST_TEMPERATURE
    assert fit_temperature(logits, [1, 0]) == GREATEST_TEMPERATURE
    assert fit_temperature([[3.0, 3.0], [1.0, 1.0]], [0, 1]) == 1.0
    assert fit_temperature([[3.0], [1.0]], [0, 0]) == 1.0


def test_scores_of_any_size_are_fitted():
    logits = np.array([[1e6, 0.0], [0.0, 1e6], [1e6, 0.0]])
    assert fit_temperature(logits, [0, 1, 1]) == GREATEST_TEMPERATURE
    assert fit_temperature(logits * 1e-12, [0, 1, 1]) == LEAST_TEMPERATURE


def test_logits_that_are_not_finite_have_no_temperature():
    with pytest.raises(InputError, match="the logits aren't finite"):
        fit_temperature([[0.0, np.nan]], [1])


def draw_answers(number, seed, excess):
    """Confidences of a model that is too sure by `excess`, and which of its answers are right."""
    generator = np.random.default_rng(seed)
    confidences = 0.5 + 0.5 * generator.beta(3, 1, number)
    return confidences, generator.random(number) < confidences - excess


def test_the_interval_of_a_calibrated_model_holds_the_mean_error():
    found = [
        measure_calibration(*draw_answers(200, seed, excess=0.0), seed=0) for seed in range(60)
    ]
    values = [one.value for one in found]
    is_inside = [one.low <= np.mean(values) <= one.high for one in found]
    assert np.mean(is_inside) > 0.9
    assert all(one.low <= one.value <= one.high for one in found)


def test_a_model_that_is_too_sure_has_an_interval_far_from_0():
    found = measure_calibration(*draw_answers(2000, 0, excess=0.2), seed=0)
    assert found.num_bins == 15
    assert 0.1 < found.low < 0.2 < found.high < 0.3
    assert found == measure_calibration(*draw_answers(2000, 0, excess=0.2), seed=0)


def test_a_model_that_is_sure_and_right_can_have_no_error():
    assert measure_calibration([1.0, 1.0], [True, True], seed=0) == CalibrationError(0.0, 15)


def test_the_error_is_told_with_bins_and_interval(monkeypatch):
    whole = CalibrationError(0.031, 15, low=0.02, high=0.044)
    assert whole.describe() == ("calibration error 3.1 % (15 bins; 95 % interval 2.0–4.4 %)")
    monkeypatch.setattr(calibration, "MAX_RESAMPLED", 1)
    many = measure_calibration([0.75, 0.75], [True, False], seed=0)
    assert many.describe() == "calibration error 25.0 % (15 bins)"
