import math

import pytest

from bertkit.recipes.finetune.comparison import SeedComparison


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
        "median": None,
        "lowest": None,
        "highest": None,
        "values": {"0": None},
    }
