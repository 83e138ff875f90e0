import math

import pytest
from tests.closeness import close

from bertkit.recipes.finetune.comparison import SeedComparison, describe_spread


def compare(*values: float) -> SeedComparison:
    return SeedComparison("accuracy", dict(enumerate(values)))


def test_the_highest_value_wins_and_of_equals_the_lowest_seed():
    found = compare(0.5, 0.6, 0.4)
    assert (found.best_seed, found.median, found.spread) == (1, 0.5, (0.4, 0.6))
    assert compare(0.5, 0.25).median == 0.375
    assert compare(0.5, 0.5).best_seed == 0


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_run_without_a_number_is_the_worst(odd):
    found = compare(odd, odd, 0.9)
    assert found.best_seed == 2
    assert math.isnan(found.median)
    assert found.spread == (0.9, 0.9)
    assert all(math.isnan(value) for value in compare(odd).spread)
    assert compare(odd).to_json() == {
        "best": 0,
        "mean": None,
        "deviation": None,
        "median": None,
        "lowest": None,
        "highest": None,
        "values": {"0": None},
    }


def test_the_spread_over_seeds_is_told_before_the_best_of_them():
    found = compare(0.5, 0.6, 0.4)
    assert found.describe().startswith(
        "accuracy over 3 seeds: mean 50.0 % (standard deviation 10.0 points; 40.0–60.0 %)."
        " Kept: seed 1, the best (60.0 %). The best of several runs looks better on"
    )
    assert found.to_json()["mean"] == close(0.5)
    assert found.to_json()["deviation"] == close(0.1)
    failed = describe_spread("pearson", [0.5, 0.7, math.nan])
    assert failed == "mean 0.600 (standard deviation 0.141; 0.500–0.700; 1 without a value)"
    assert describe_spread("accuracy", [0.5]) == "50.0 %"
    assert describe_spread("accuracy", [math.nan]) == "not defined"
