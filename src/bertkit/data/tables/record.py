"""A row as a record, the rows of a table, and a report that counts them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from bertkit.base.errors import InputError
from bertkit.data.encodings import DecodingCounts
from bertkit.reports.text import format_percent

NUM_SHOWN_BROKEN = 5
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


def look_up(values: Mapping[str, object], column: str) -> object:
    """Return the value of a column; `doc.body` may be the field body of the column doc.

    A `KeyError` says that there is none.
    """
    if column in values or "." not in column:
        return values[column]
    found: object = values
    for name in column.split("."):
        if not isinstance(found, Mapping):
            raise KeyError(column)
        found = found[name]
    return found


def has_column(columns: Collection[str], name: str) -> bool:
    """Whether a column, or a field of one as in `look_up`, may be among these."""
    return name in columns or ("." in name and name.partition(".")[0] in columns)


def list_columns(rows: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Return the columns that any of the rows has, in the order in which they occur."""
    return tuple(dict.fromkeys(str(name) for values in rows for name in values))


def to_plain(value: object) -> object:
    """Return a cell with NumPy's values and decimals as Python's, and a missing number as None."""
    if type(value) in PLAIN:  # by far the most, and looking for an attribute takes time
        return value
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: to_plain(item) for name, item in value.items()}
    if isinstance(value, Decimal):
        return _read_decimal(value)
    return None if isinstance(value, float) and value != value else value


def _read_decimal(value: Decimal) -> int | float | None:
    """Return an int where the number is whole, because ids may have more digits than a float."""
    if value.is_nan():
        return None
    is_small = value.is_finite() and value.adjusted() < MAX_DIGITS
    return int(value) if is_small and value == value.to_integral_value() else float(value)


class BrokenRowError(InputError):
    """A row is unusable, to be left out and counted; the message begins with its place."""


@dataclass
class RowReport:
    """Counts of a file's rows, updated as they are read.

    Attributes:
        num_rows: rows that were read, including broken ones. A broken section that may contain
            several rows, such as one sentence of CoNLL, counts once.
        num_empty: rows whose text is empty; they are kept, and counted by the parsing function.
    """

    name: str
    num_rows: int = 0
    num_broken: int = 0  # left out
    num_empty: int = 0
    num_undecodable: int = 0  # with invalid Unicode, which became U+FFFD
    num_bytes: int = 0  # decompressed
    first_broken: list[str] = field(default_factory=list)  # messages of the first five
    # how lines decode, to recognize another encoding
    decoding: DecodingCounts = field(default_factory=DecodingCounts)

    def add_broken(self, message: str, num_rows: int = 1) -> None:
        """Count rows that are left out for the same reason."""
        self.num_broken += num_rows
        if len(self.first_broken) < NUM_SHOWN_BROKEN:
            self.first_broken.append(message)

    def merge(self, other: "RowReport") -> None:
        """Add the counts of an earlier report on the same file."""
        self.num_rows += other.num_rows
        self.num_undecodable += other.num_undecodable
        self.num_bytes += other.num_bytes
        self.decoding.add(other.decoding)
        self.num_broken += other.num_broken
        self.first_broken = [*other.first_broken, *self.first_broken][:NUM_SHOWN_BROKEN]

    def summary_lines(self) -> list[str]:
        """Return the problems as lines for users; empty if there are none."""
        lines = []
        if self.num_broken:
            lines.append(f"{self._share(self.num_broken)} broken and left out:")
            lines += [f"  {message}" for message in self.first_broken]
            if self.num_broken > len(self.first_broken):
                lines.append("  …")
        if self.num_empty:
            lines.append(f"{self._share(self.num_empty)} without text, kept")
        if self.num_undecodable:
            share = self._share(self.num_undecodable)
            lines.append(f"{share} with invalid UTF-8, replaced by \N{REPLACEMENT CHARACTER}")
        return lines

    def check_share(self, max_broken: float) -> None:
        """Raise an error if there are no rows, or too many are broken."""
        if not self.num_rows:
            raise InputError(f"{self.name} has no rows; is it the right file, and complete?")
        if self.num_broken > max_broken * self.num_rows or self.num_broken == self.num_rows:
            first = [*self.first_broken, "…"][: min(self.num_broken, NUM_SHOWN_BROKEN + 1)]
            raise InputError(
                f"{self._share(self.num_broken)} are broken, and at most"
                f" {format_percent(max_broken)} may be (max_broken): {'; '.join(first)}"
            )

    def _share(self, count: int) -> str:
        share = format_percent(count / self.num_rows)
        return f"{self.name}: {count:,} of {self.num_rows:,} rows ({share})"


class Rows(NamedTuple):
    """The columns and rows of an opened table.

    Attributes:
        columns: column names; for JSONL, where each row has its own, those of the first thousands
            of rows. Of a table of texts, only the column that has them.
    """

    columns: tuple[str, ...]
    records: Iterator[Record]  # usable rows; broken ones are counted
    num_rows: int | None = None  # if the file states it
