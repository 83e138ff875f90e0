"""A row as a record, and the rows of a table."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, Self

from bertkit.base.errors import InputError

PLAIN = (str, int, bool)
MAX_DIGITS = 80  # of a whole number; Arrow's have at most 76


class Record(NamedTuple):
    """The content of a row, independent of the file's format.

    Attributes:
        values: cells by column: strings of CSV and TSV, JSON values, Python values of Parquet,
            with decimals as int or float. For CoNLL `tokens` and, if the file has them, `tags`; for
            SQuAD's JSON `id`, `title`, `question`, `context`, `answers` (a list of `text` and
            `answer_start`) and `is_impossible`.
        place: file and line where the row begins, for messages.
    """

    values: Mapping[str, object]
    place: str


class ClassName(str):
    """The name of a class, for which the files of Hugging Face's datasets have a number.

    It is the label; where a number is asked for, `number` is the answer.
    """

    number: int

    def __new__(cls, name: str, number: int = 0) -> Self:
        """Return the name without blanks around it, of the class with this number."""
        made = super().__new__(cls, name.strip())
        made.number = number
        return made


def list_columns(rows: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Return the columns that any of the rows has, in the order in which they occur."""
    return tuple(dict.fromkeys(str(name) for values in rows for name in values))


def to_plain(value: Any) -> object:
    """Return a cell with NumPy's values and decimals as Python's, and a missing number as None.

    A number of 32 bits becomes the one that is written alike: 0.1 stays 0.1.
    """
    if type(value) in PLAIN:  # by far the most, and looking for an attribute takes time
        return value
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy
        kind = getattr(getattr(value, "dtype", None), "kind", None)
        value = float(str(value)) if kind == "f" and not value.ndim else value.tolist()
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: to_plain(item) for name, item in value.items()}
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        # An int where the number is whole, because ids may have more digits than a float.
        is_small = value.is_finite() and value.adjusted() < MAX_DIGITS
        return int(value) if is_small and value == value.to_integral_value() else float(value)
    return None if isinstance(value, float) and value != value else value


class BrokenRowError(InputError):
    """A row is unusable, to be left out and counted; the message begins with its place."""


class NoLabelError(BrokenRowError):
    """A row whose label is null, to be left out and counted as one without a label."""


class NumberCell(str):
    """A number of a workbook as text, as CSV has it; a workbook is written with `number`."""

    number: float

    def __new__(cls, number: float) -> Self:
        """Return the shortest text of the number."""
        made = super().__new__(cls, number)
        made.number = number
        return made


class CsvStyle(NamedTuple):
    """How the cells of a CSV file are written, so that who opened the input opens the output."""

    delimiter: str = ","
    has_mark: bool = False  # a byte order mark, without which Excel doesn't read UTF-8


PLAIN_CSV = CsvStyle()


class Rows(NamedTuple):
    """The columns and rows of an opened table.

    Attributes:
        columns: column names; for JSONL, where each row has its own, those of the first thousands
            of rows. Of a table of texts, only the column that has them.
    """

    columns: tuple[str, ...]
    records: Iterator[Record]  # usable rows; broken ones are counted
    num_rows: int | None = None  # if the file states it
    delimiter: str = ","  # of CSV
