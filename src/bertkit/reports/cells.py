"""Table cells: their types, and how numbers are formatted."""

import math
from dataclasses import dataclass

from bertkit.reports.text import show

TEXT_COLUMNS = 400  # the longest text that a cell shows


@dataclass(frozen=True)
class Interval:
    """A value and the confidence interval or spread around it, shown as 0.912 (0.897–0.926)."""

    value: float
    low: float
    high: float


Cell = str | int | float | Interval


def format_cell(cell: Cell) -> str:
    """Format a number for display, or text as one line."""
    if isinstance(cell, str):
        return show(cell, TEXT_COLUMNS)
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, Interval):
        if math.isnan(cell.value):
            return format_cell(cell.value)
        digits = 0 if abs(cell.value) >= 1e3 else 3
        return f"{cell.value:,.{digits}f} ({cell.low:,.{digits}f}–{cell.high:,.{digits}f})"
    if math.isnan(cell):
        return "not defined"
    return f"{cell:,.0f}" if 1e3 <= abs(cell) < 1e15 else f"{cell:.4g}"


def is_numeric(cell: Cell) -> bool:
    """Whether a cell holds a number or an interval, which are right-aligned."""
    return not isinstance(cell, str)
