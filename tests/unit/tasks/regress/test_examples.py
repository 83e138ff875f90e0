"""Cells as numbers, and scales that are learned badly."""

import math

import pytest
from tests.unit.tasks.small import record_of, table_of

from bertkit.base.errors import InputError
from bertkit.data.tables.record import BrokenRowError
from bertkit.tasks.regress.examples import (
    RegressExample,
    build_parser,
    list_warnings,
    take_number,
)
from bertkit.tasks.regress.settings import RegressSettings
from bertkit.tasks.texts import Texts


@pytest.mark.parametrize(
    ("value", "number"),
    [("1.5", 1.5), (" -2 ", -2.0), ("1e3", 1000.0), (0, 0.0), (2.25, 2.25), ("1e18", 1e18)],
)
def test_numbers(value, number):
    assert take_number(record_of(y=value), "y") == number


@pytest.mark.parametrize(
    "value",
    [
        *("", "x", "1,5", "1_000", "\u0663", "nan", "inf", "9" * 400),
        *(math.nan, -math.inf, None, True, [1], 1e19, 10**400),
    ],
)
def test_what_is_no_number_is_a_broken_row(value):
    with pytest.raises(BrokenRowError, match=r"t\.csv, line 2 has .* in y where a number from -1e"):
        take_number(record_of(y=value), "y")


def test_a_record_becomes_an_example():
    table = table_of("sentence1", "sentence2", "score")
    parse = build_parser(RegressSettings(), table, needs_answer=True)
    record = record_of(sentence1="a", sentence2="b", score="3.5")
    assert parse(record) == RegressExample(Texts("a", "b"), 3.5, "t.csv, line 2")
    assert build_parser(RegressSettings(), table, needs_answer=False)(record).number is None
    with pytest.raises(InputError, match="no column for the label"):
        build_parser(RegressSettings(), table_of("text"), needs_answer=True)


@pytest.mark.parametrize(
    ("numbers", "is_odd"),
    [((0, 2.5, 5), False), ((0, 50, 100), True), ((0, 0.01), True), ((2000, 2001), True)],
)
def test_scales(numbers, is_odd):
    lines = list_warnings([RegressExample(Texts("a"), number) for number in numbers])
    assert lines[0].startswith(f"numbers from {min(numbers)} to {max(numbers)}, mean")
    assert any("learned slowly" in line for line in lines) == is_odd


def test_pairs_are_told():
    pairs = [RegressExample(Texts("a", "b"), number) for number in (0.0, 1.0)]
    assert list_warnings(pairs)[-1] == "they are pairs of texts"
