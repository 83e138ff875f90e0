"""Regression examples: texts with target numbers, read from records."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import RecordTable
from bertkit.tasks.columns import SHOWN_CHARS, find_column, take_value
from bertkit.tasks.regress.settings import RegressSettings
from bertkit.tasks.texts import Texts, build_text_parser

USUAL_NUMBER = ("label", "labels", "score", "similarity", "similarity_score")
LARGEST = 1e18  # its square, summed over a batch, still fits a float32
FAR_MEAN, SMALL_SPREAD, LARGE_SPREAD = 20.0, 0.05, 20.0  # STS-B: 0 to 5, mean 2.7, std 1.5


@dataclass(frozen=True, slots=True)
class RegressExample:
    """A text or pair, with an optional target number.

    Attributes:
        texts: the text or pair.
        number: the target; None if unknown.
        place: file and line, for messages.
    """

    texts: Texts
    number: float | None = None
    place: str = ""


def build_parser(
    settings: RegressSettings, table: RecordTable, *, needs_answer: bool
) -> Callable[[Record], RegressExample]:
    """Build a function that reads text, pair and number from a record."""
    parse_texts = build_text_parser(settings, table)
    column, decimal = None, table.settings.decimal
    if needs_answer:
        column = find_column(table, "label", settings.label_column, USUAL_NUMBER)

    def parse(record: Record) -> RegressExample:
        number = None if column is None else take_number(record, column, decimal)
        return RegressExample(parse_texts(record), number, record.place)

    return parse


def take_number(record: Record, column: str, decimal: str = ".") -> float:
    """Return the number in a column, which may be stored as text with a decimal separator."""
    value = take_value(record, column)
    if isinstance(value, str) and decimal != ".":
        number = math.nan if "." in value else read_number(value.replace(decimal, "."))
    else:
        number = read_number(value)
    if not abs(number) <= LARGEST:
        is_comma = isinstance(value, str) and decimal == "." and value.count(",") == 1
        advice = "; --decimal , reads decimal commas" if is_comma else ""
        raise BrokenRowError(
            f"{record.place} has {value!r:.{SHOWN_CHARS}} in {column} where a number from"
            f" {-LARGEST:g} to {LARGEST:g} should be{advice}"
        )
    return number


def read_number(value: object) -> float:
    """Convert a cell's value to a number, with a decimal point; NaN if it isn't one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return math.nan
    if isinstance(value, str) and not (value.isascii() and "_" not in value):
        return math.nan  # float() would accept 1_000 and Arabic digits
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def list_warnings(examples: Sequence[RegressExample]) -> list[str]:
    """Report the range of the numbers, and warn if their scale is hard to learn."""
    numbers = np.array([example.number for example in examples], dtype=np.float64)
    mean, spread = float(numbers.mean()), float(numbers.std())
    extent = f"numbers from {numbers.min():g} to {numbers.max():g}"
    lines = [f"{extent}, mean {mean:.4g}, standard deviation {spread:.4g}"]
    if abs(mean) > FAR_MEAN or not SMALL_SPREAD <= spread <= LARGE_SPREAD:
        lines.append(
            "numbers of this scale are learned slowly or not at all, because the head starts near"
            " 0; scale them so that most are between -5 and 5"
        )
    if any(example.texts.pair is not None for example in examples):
        lines.append("they are pairs of texts")
    return lines
