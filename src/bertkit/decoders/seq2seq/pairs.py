"""Parallel text: source texts and target texts, such as translations or summaries.

The input is either two files, where line n of one belongs to line n of the other, or one file with
a column for each side. Unusable pairs are left out and counted; the two sides never get out of
alignment.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal, NamedTuple, cast

from pydantic import Field

from bertkit.base.errors import InputError, pluralize
from bertkit.base.settings import Settings, redefine
from bertkit.data.encodings import Encoding, MaxBroken
from bertkit.data.input_files import NOT_TEXT, STANDARD_INPUT, find_extension
from bertkit.data.problems import RowReport
from bertkit.data.tables.decoder import DEFAULT_FIELD, has_column, look_up, show_names
from bertkit.data.tables.formats import find_format
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import MAX_BYTES, RECORD_FORMATS, RecordTable, open_records
from bertkit.data.tables.rows import Table
from bertkit.data.tables.settings import Delimiter, RecordSettings

PairFormat = Literal["auto", "jsonl", "csv", "tsv", "parquet"]


class PairSettings(Settings):
    """Settings of every command that reads texts in pairs."""

    encoding: Encoding = None
    delimiter: Delimiter = None
    format: PairFormat = redefine(RecordSettings, "format")
    header: bool = redefine(RecordSettings, "header")
    source_column: str = Field(
        default="source",
        description="Column of the source texts; translation.de is the field de of translation.",
    )
    target_column: str = Field(default="target", description="Column of the target texts.")
    max_broken: MaxBroken = 0.01


MAX_CHARS = 1 << 20  # of a text; a longer line is neither a sentence nor an article


class Pair(NamedTuple):
    """A source text and its target; a NamedTuple because a dataclass is slow for so many."""

    source: str  # not blank
    target: str  # not blank


@dataclass
class PairReport:
    """Counts of usable and unusable pairs.

    Attributes:
        tables: two files, or the one that has both sides.
    """

    name: str
    tables: Sequence[RecordTable]
    num_empty: int = 0  # left out because a side has no text
    num_too_long: int = 0  # left out because a side exceeds `MAX_CHARS`
    num_with_nul: int = 0  # with NULs, which were removed

    @property
    def files(self) -> list[RowReport]:
        """The row report of each file."""
        return [table.report for table in self.tables]

    def summary_lines(self) -> list[str]:
        """Return the problems as lines for users; empty if there are none."""
        outcomes = {
            "without text on one side, left out": self.num_empty,
            f"with over {MAX_CHARS:,} characters on one side, left out": self.num_too_long,
            "with NULs, which were dropped": self.num_with_nul,
        }
        lines = [line for file in self.files for line in file.summary_lines()]
        return lines + [
            f"{self.name}: {count:,} of {self.files[0].num_rows:,} pairs {outcome}"
            for outcome, count in outcomes.items()
            if count
        ]

    def keep(self, pairs: Iterator[Pair] | list[Pair]) -> Iterator[Pair]:
        """Yield usable pairs, without NULs and surrounding white space, and count all."""
        for source, target in pairs:
            self.num_with_nul += "\0" in source or "\0" in target
            pair = Pair(_clean(source), _clean(target))
            if not pair.source or not pair.target:
                self.num_empty += 1
            elif max(len(pair.source), len(pair.target)) > MAX_CHARS:
                self.num_too_long += 1
            else:
                yield pair


def read_pairs(
    source: Table,
    target: str | Path | None = None,
    settings: PairSettings | None = None,
    *,
    split: str = "train",
) -> tuple[list[Pair], PairReport]:
    """Read all pairs into memory.

    `source` and `target` have one text per line; without `target`, `source` has both sides, and may
    also be a dataset, hub:owner/name, or rows as in `open_pairs`. Files may be .gz, .bz2 or .zst.
    Messages call rows from Python by `split`.
    """
    settings = settings or PairSettings()
    if target is None:
        table = open_pairs(source, settings, split=split)
        columns = {"source": settings.source_column, "target": settings.target_column}
        _check_columns(table, columns)
        report = PairReport(table.name, [table])
        pairs = table.read(
            lambda record: Pair(*(_take_text(record, column) for column in columns.values()))
        )
    else:
        pairs, report = _read_files(Path(cast("str | Path", source)), Path(target), settings)
    kept = list(report.keep(pairs))
    if not kept:
        raise InputError(f"{report.name} has no pair with text on both sides; is it complete?")
    return kept, report


def _read_files(
    source: Path, target: Path, settings: PairSettings
) -> tuple[list[Pair], PairReport]:
    """Pair each line of one file with the same line of the other."""
    tables = [_open_lines(path, settings) for path in (source, target)]
    report = PairReport(f"{source} and {target}", tables)
    lines, pairs = [table.records() for table in tables], []
    for left, right in zip_longest(*lines):
        if left is not None and right is not None:
            pairs.append(Pair(*(_take_text(line, DEFAULT_FIELD) for line in (left, right))))
        if sum(file.num_bytes for file in report.files) > MAX_BYTES:
            raise InputError(
                f"{report.name} have over {MAX_BYTES >> 30} GiB, more than is held in memory at"
                " once; split them"
            )
    num_left, num_right = (file.num_rows for file in report.files)
    if num_left != num_right:
        raise InputError(
            f"{source} has {pluralize(num_left, 'line')} and {target} has {num_right:,}; line n"
            " of one must belong to line n of the other, so both need the same number"
        )
    return pairs, report


def _open_lines(path: Path, settings: PairSettings) -> RecordTable:
    """Open one of two files, with one text per line."""
    if str(path) == STANDARD_INPUT:
        raise InputError("one of two files can't be standard input; write it to a file first")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file with one text per line")
    ending = find_extension(path)
    chosen: str = settings.format
    if chosen == "auto":
        chosen = find_format(path, RECORD_FORMATS) or "text"
    if chosen != "text":
        raise InputError(
            f"two files are read as plain text, one text per line, and {path} would be {chosen};"
            " name one file that has a column for each side, or two files of lines"
        )
    if ending in NOT_TEXT:
        raise InputError(f"{path} isn't text: {NOT_TEXT[ending]}")
    reading = RecordSettings(
        format="text", encoding=settings.encoding, max_broken=settings.max_broken
    )
    return open_records(path, reading)


def open_pairs(source: Table, settings: PairSettings, *, split: str = "train") -> RecordTable:
    """Open a table with both sides: a file, or rows from Python, where a tuple is a pair."""
    columns = (settings.source_column, settings.target_column)
    if isinstance(source, Sequence) and not isinstance(source, str):
        source = [
            dict(zip(columns, row, strict=True))
            if isinstance(row, tuple) and len(row) == len(columns) and not hasattr(row, "_asdict")
            else row
            for row in source
        ]
    reading = RecordSettings(**settings.model_dump(include=set(RecordSettings.model_fields)))
    return open_records(source, reading, split=split)


def _check_columns(table: RecordTable, columns: Mapping[str, str]) -> None:
    """Check that a table has the columns, given by role, if its columns are known."""
    if table.format == "text":
        raise InputError(
            f"{table.name} is text without columns; name a second file, whose line n belongs to"
            " line n of the first"
        )
    known = table.columns or ()
    for role, column in columns.items():
        if known and not has_column(known, column):
            raise InputError(
                f"{table.name} has no column {column}; name one of its columns with"
                f" --{role}-column: {show_names(known)}"
            )


def _take_text(record: Record, column: str) -> str:
    """Return the text in a column, or in a field of one (`translation.de`); null is empty."""
    try:
        value = look_up(record.values, column)
    except KeyError:
        raise BrokenRowError(f"{record.place} has nothing in {column}") from None
    if value is None:
        return ""
    if not isinstance(value, str):
        found = type(value).__name__
        raise BrokenRowError(f"{record.place} has {found} in {column} where a text should be")
    return value


def _clean(text: str) -> str:
    """Remove NULs and surrounding white space."""
    return text.replace("\0", "").strip()
