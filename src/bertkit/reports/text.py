"""Safe display of untrusted text: legible characters, and names shortened to fit."""

import math
import re
import unicodedata
from dataclasses import dataclass

NAME_COLUMNS = 80
# First: control characters, lone surrogates and noncharacters. Then invisible characters that
# change how text is laid out: zero-width spaces, line separators, bidirectional controls.
_ILLEGIBLE = re.compile(
    "[^\t\n\r -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\u180e\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


def show(text: str, limit: int = NAME_COLUMNS) -> str:
    """Return untrusted text as one line for display: a label, a column name, an example's text.

    All user data that is displayed passes through here: no character that controls a terminal or
    reorders a page, and … at the end if it exceeds `limit` columns. Data files keep it unchanged.
    """
    start = text[: 8 * limit]  # so that a cell of megabytes isn't split at whitespace
    shown = " ".join(make_legible(start).split())
    return shorten(shown if len(start) == len(text) else shown + "…", limit)


def make_legible(text: str) -> str:
    """Replace control characters by their pictures (␀) and others by �; the length stays the same.

    XML allows no control characters, not even escaped: viewers refuse an SVG file that has one.
    A right-to-left override would reverse all text after it.
    """
    return _ILLEGIBLE.sub(lambda found: _picture(found[0]), text)


def shorten(text: str, limit: int = NAME_COLUMNS) -> str:
    """Truncate a text with … if it takes more than `limit` ≥ 2 columns."""
    num_columns = 0
    for index, character in enumerate(text):
        num_columns += count_columns(character)
        if num_columns > limit:
            return text[: index - 1] + "…"
    return text


def count_columns(text: str) -> int:
    """Return about how many monospaced columns a text takes: wide East Asian characters take 2."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _picture(character: str) -> str:
    return chr(0x2400 + ord(character)) if character < " " else "\ufffd"


TEXT_COLUMNS = 400  # the longest text that a cell shows


@dataclass(frozen=True)
class IntervalCell:
    """A value and the confidence interval or spread around it, shown as 0.912 (0.897–0.926)."""

    value: float
    low: float
    high: float


Cell = str | int | float | IntervalCell


def format_cell(cell: Cell) -> str:
    """Format a number for display, or text as one line."""
    if isinstance(cell, str):
        return show(cell, TEXT_COLUMNS)
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, IntervalCell):
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
