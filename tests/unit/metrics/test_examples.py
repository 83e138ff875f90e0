"""What metrics take, and what they refuse."""

import json

import numpy as np
import pytest

from bertkit.base.errors import InputError
from bertkit.metrics.classification import accuracy, count_labels
from bertkit.metrics.examples import (
    check_lengths,
    divide,
    read_labels,
    read_numbers,
    read_weights,
    weighted_mean,
)


def test_lengths_that_differ_are_told():
    assert check_lengths(labels=[1, 2], predictions=[1, 1]) == 2
    with pytest.raises(InputError, match=r"labels 3, predictions 1,200"):
        check_lengths(labels=[1] * 3, predictions=[1] * 1200)


def test_nothing_has_no_score():
    with pytest.raises(InputError, match="labels and predictions are empty"):
        check_lengths(labels=[], predictions=[])
    with pytest.raises(InputError, match="values are empty"):
        weighted_mean([])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, 3], r"labels has 3 at 1, but with 3 labels the numbers go from 0 to 2"),
        ([0, 1, -100], r"labels has -100 at 2"),
        ([0.0, 1.0], "whole numbers, one an example, and not float64"),
        ([True, False], "not bool"),
        ([[0, 1]], r"shape \(1, 2\)"),
        ([0, [1, 2]], "labels must be an array of numbers"),
        (["a"], "whole numbers"),
    ],
)
def test_labels_are_whole_numbers_in_range(values, message):
    with pytest.raises(InputError, match=message):
        read_labels(values, 3, "labels")


def test_labels_of_any_width_are_read():
    assert read_labels(np.array([0, 2], dtype=np.uint8), 3, "labels").tolist() == [0, 2]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.nan], "scores has nan in example 1"),
        ([np.inf], "scores has inf in example 0"),
        ([[1.0]], r"1 axes, and not the shape \(1, 1\)"),
        (["many"], "scores must be an array of numbers: could not convert"),
        ([{}], "scores must be an array of numbers"),
    ],
)
def test_numbers_are_finite(values, message):
    with pytest.raises(InputError, match=message):
        read_numbers(values, "scores")


@pytest.mark.parametrize("weights", [np.ones(3), np.ones((2, 3)), np.array(1.0)])
def test_weights_are_of_the_examples(weights):
    with pytest.raises(InputError, match="don't fit 2 examples"):
        read_weights(weights, 2)


def test_weights_say_how_often_an_example_counts():
    assert weighted_mean([True, False]) == 0.5
    assert weighted_mean([1.0, 4.0], np.array([[2.0, 1.0], [0.0, 3.0]])).tolist() == [2.0, 4.0]


def test_nothing_of_nothing_is_zero():
    quotients = divide(np.array([1, 0, 2]), np.array([2, 0, 0]))
    assert quotients.tolist() == [0.5, 0.0, 0.0]


def test_a_score_can_be_written():
    assert json.dumps(accuracy(count_labels([0, 1], [0, 0], 2))) == "0.5"
