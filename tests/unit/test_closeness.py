"""Floats are compared by their largest value, in the precision of the reference."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.closeness import TOLERANCES, assert_close, close


@pytest.mark.parametrize("precision", TOLERANCES)
def test_the_limit_is_a_share_of_the_largest_value(precision):
    dtype = getattr(torch, precision)
    reference = torch.tensor([0.0, -512.0], dtype=dtype)
    limit = 512 * TOLERANCES[precision]
    assert_close(torch.tensor([0.9 * limit, -512.0]), reference)
    with pytest.raises(AssertionError, match=r"\[0\] .* at most"):
        assert_close(torch.tensor([1.1 * limit, -512.0], dtype=torch.float64), reference)


def test_below_one_the_limit_is_that_of_one_unless_told():
    near, reference = [0.001 + 5e-6, 0.0], [0.001, 0.0]
    assert near == close(reference, "float32")
    assert near != close(reference, "float32", floor=0)
    assert close(reference, "float32", floor=0) == [0.001 + 5e-9, 0.0]


def test_numbers_of_python_are_float64_unless_told():
    assert close(0.3) != 0.3 + 1e-8
    assert close(0.3, "float32") == 0.3 + 1e-8
    assert close(3) == 3.0


def test_a_distance_of_its_own_takes_the_place_of_a_precision():
    assert close([100.0, 3.04], within=0.05) == [99.96, 3.0]
    assert close([100.0, 3.04], within=0.05) != [99.94, 3.0]


@pytest.mark.parametrize(
    "kind", [list, tuple, np.array, torch.tensor, lambda row: np.array(row, np.float32)]
)
def test_numbers_of_any_kind_stand_on_either_side(kind):
    assert kind([1.0, 2.0]) == close([1.0, 2.0])
    assert close(kind([1.0, 2.0])) == [1.0, 2.0]
    assert kind([1.0, 2.0]) != close([1.0, 2.1])
    assert kind([1.0, 2.0]) != close([[1.0, 2.0]])
    assert kind([1.0, 2.0]) != close([1.0])
    assert kind([1.0, 2.0]) != close(1.0)


def test_other_values_have_to_be_equal():
    reference = {"label": "a", "rows": [[1.0], [2.0, 3.0]], "n": 4, "sure": True, "none": None}
    found = {**reference, "rows": [[1.0], [2.0, 3.0 + 1e-12]]}
    assert found == close(reference)
    assert {**found, "label": "b"} != close(reference)
    assert {**found, "rows": [[1.0], [2.0, 3.1]]} != close(reference)
    assert {**found, "n": 5} != close(reference)
    assert {**found, "more": 1} != close(reference)
    assert {"label": close(1.0)} == {"label": 1.0 + 1e-12}


def test_each_value_of_a_dict_has_its_own_scale():
    assert close({"loss": 1e6 + 1e-4, "share": 0.5}) == {"loss": 1e6, "share": 0.5}
    assert close({"loss": 1e6, "share": 0.5001}) != {"loss": 1e6, "share": 0.5}


def test_infinity_is_close_to_itself_and_nothing_to_nan():
    assert [-math.inf, 1.0] == close([-math.inf, 1.0])
    assert [math.inf, 1.0] != close([-math.inf, 1.0])
    assert close([math.inf, 1.0]) != [1e300, 1.0]
    assert [math.nan] != close([math.nan])
    assert close([math.nan]) != [1.0]
    assert torch.tensor([1.0, math.nan]) != close(torch.ones(2), within=1e9)


def test_the_error_names_the_place_the_distance_and_the_limit():
    text = r"\['a'\]\[1\]\[1, 0\] 3\.5 is 0\.5 from 3\.0; at most 3e-09"
    with pytest.raises(AssertionError, match=text):
        assert_close({"a": [0, [[1, 2], [3.5, 3]], "x"]}, {"a": [0, [[1, 2], [3, 3]], "x"]})
    expected = close(torch.zeros(2))
    assert torch.ones(2) != expected
    assert "[0] 1.0 is 1 from 0.0; at most 1e-05" in repr(expected)


OTHER_WAYS = {
    "allclose",
    "approx",
    "assert_allclose",
    "assert_almost_equal",
    "assert_array_almost_equal",
    "assertAlmostEqual",
    "isclose",
}
PLANTED = """
from numpy.testing import assert_allclose
assert found == pytest.approx(3.0)
torch.testing.assert_close(found, expected)
assert torch.allclose(found, expected)
assert abs(found - expected) < 1e-6
assert 0 < float((found - expected).abs().max()) <= TOLERANCE
assert found.isclose(expected).all()
"""
ALLOWED = """
from tests.closeness import assert_close
assert_close(found, expected)
assert found == close(expected)
nearest = min(names, key=lambda name: abs(places[name] - place))
assert abs(gradient) > 0
"""


def find_other_ways(source):
    """Yield the lines that compare floats, but not by `tests/closeness.py`."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(names=names):
                is_other = any(one.name in OTHER_WAYS for one in names)
            case ast.Attribute(attr="assert_close"):
                is_other = True
            case ast.Attribute(attr=name) | ast.Name(id=name):
                is_other = name in OTHER_WAYS
            case ast.Assert(test=condition):
                compared = [one for one in ast.walk(condition) if isinstance(one, ast.Compare)]
                is_other = any(map(limits_a_distance, compared))
            case _:
                is_other = False
        if is_other:
            yield node.lineno


def limits_a_distance(comparison):
    """Tell whether it is like `abs(a - b) < limit` or `(a - b).abs().max() <= limit`."""
    calls = [one for one in ast.walk(comparison) if isinstance(one, ast.Call)]
    distances = [
        one
        for one in calls
        if getattr(one.func, "attr", getattr(one.func, "id", "")) in ("abs", "fabs")
        and any(isinstance(each, ast.Sub) for each in ast.walk(one))
    ]
    return bool(distances) and any(isinstance(one, ast.Lt | ast.LtE) for one in comparison.ops)


def test_floats_are_compared_in_no_other_way():
    root = Path(__file__).parents[2]
    folders = ("tests", "studies/tests", "examples/demo/tests")
    files = [path for folder in folders for path in (root / folder).rglob("*.py")]
    found = {
        str(path.relative_to(root)): sorted(find_other_ways(path.read_text("utf-8")))
        for path in files
    }
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_other_ways_are_found():
    lines = [number for number, line in enumerate(PLANTED.splitlines(), start=1) if line]
    assert sorted(set(find_other_ways(PLANTED))) == lines
    assert list(find_other_ways(ALLOWED)) == []
