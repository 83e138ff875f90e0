"""Cells: numbers as people read them."""

import math

import pytest

from bertkit.reports.cells import Interval, format_cell, is_numeric


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("12", "12"),
        (1234567, "1,234,567"),
        (0.123456, "0.1235"),
        (1e-4, "0.0001"),
        (12345.6, "12,346"),
        (1e20, "1e+20"),
        (math.nan, "not defined"),
        (math.inf, "inf"),
        (Interval(0.912, 0.8971, 0.926), "0.912 (0.897–0.926)"),
        (Interval(-1234.5, -2000, 0), "-1,234 (-2,000–0)"),
        (Interval(math.nan, 0.1, 0.2), "not defined"),
    ],
)
def test_each_kind_of_cell_is_readable(cell, text):
    assert format_cell(cell) == text


def test_numbers_and_intervals_are_numeric_and_text_is_not():
    assert [is_numeric(cell) for cell in (1, 1.0, Interval(1, 0, 2), "1")] == [True] * 3 + [False]
