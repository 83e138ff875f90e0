"""Profiles of columns: whether their cells look like texts, like labels or like numbers."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from bertkit.data.tables.record import PLAIN, Record
from bertkit.reports.text import show

MAX_LABELS, MAX_LABEL_CHARS, LEAST_REPEATED = 50, 60, 3
LEAST_LETTERS = 0.5  # share of the characters of texts
NUMBER = re.compile(r"[+-]?\d{1,18}(?:[.,]\d{1,18})?", re.ASCII)
DATE = re.compile(r"\d{1,4}([-./:])\d{1,2}(\1\d{1,4})?\b.*", re.ASCII | re.DOTALL)
# Letters of scripts without blanks between words: of Thai, Burmese, Khmer, Japanese and Chinese.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
)
SHOWN_VALUES, SHOWN_CHARS = 3, 20


@dataclass
class ColumnProfile:
    """The cells of a column that aren't empty, counted; of lists, their items."""

    name: str
    cells: Counter[str] = field(default_factory=Counter)
    has_lists: bool = False

    @cached_property
    def is_number(self) -> bool:
        """Whether the cells are different numbers, and don't merely count rows."""
        are_numbers = len(self.cells) > 1 and all(map(NUMBER.fullmatch, self.cells))
        is_id = len(self.cells) == self.cells.total() and all(map(str.isdecimal, self.cells))
        return are_numbers and not is_id

    @cached_property
    def is_label(self) -> bool:
        """Whether the cells are a few short values that repeat, and neither dates nor measures."""
        most = min(MAX_LABELS, self.cells.total() / LEAST_REPEATED)
        return 1 < len(self.cells) <= most and not any(
            len(cell) > MAX_LABEL_CHARS
            or DATE.fullmatch(cell)
            or (NUMBER.fullmatch(cell) and not cell.strip("+-0,.").isdecimal() and cell != "0")
            for cell in self.cells
        )

    @cached_property
    def num_words(self) -> float:
        """Words of a cell on average; 0 if half of the characters aren't letters."""
        num_letters = sum(letter.isalpha() for cell in self.cells for letter in cell)
        if num_letters <= LEAST_LETTERS * sum(map(len, self.cells)):
            return 0.0
        words = (len(cell.split()) + len(UNSPACED.findall(cell)) / 2 for cell in self.cells)
        return sum(words) / len(self.cells)

    def describe(self) -> str:
        """Return the name, and the first values of a column of labels."""
        if not self.is_label:
            return show(self.name)
        values = [show(cell, SHOWN_CHARS) for cell, _ in self.cells.most_common(SHOWN_VALUES + 1)]
        shown = [*values[:SHOWN_VALUES], *(["…"] if len(values) > SHOWN_VALUES else [])]
        return f"{show(self.name)} ({', '.join(shown)})"


def profile_columns(
    records: Iterable[Record], columns: Iterable[str], separator: str | None = None
) -> list[ColumnProfile]:
    """Profile the columns of records.

    Args:
        separator: of several labels in a cell; None if a cell has one.
    """
    profiles = {name: ColumnProfile(name) for name in columns}
    for record in records:
        for name, value in record.values.items():
            if (profile := profiles.get(name)) is None:
                continue
            profile.has_lists |= isinstance(value, list)
            if separator is not None and isinstance(value, str) and len(value) <= MAX_LABEL_CHARS:
                value = value.split(separator)
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, (*PLAIN, float)) and (cell := str(each).strip()):
                    profile.cells[cell] += 1
    return list(profiles.values())
