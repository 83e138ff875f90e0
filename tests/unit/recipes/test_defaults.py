"""Settings that a run's model decides aren't told as choices of its user."""

import pytest

from bertkit.recipes.defaults import list_defaults


@pytest.mark.parametrize(("features", "rate"), [(None, None), ("last", None)])
def test_the_learning_rate_is_none_where_the_model_decides_it(features, rate):
    found = list_defaults({"task": "classify", "features": features}, "run.json")
    assert found["learning_rate"] == rate
    assert found["max_length"] == 128
