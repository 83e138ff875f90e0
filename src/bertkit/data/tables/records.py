"""Labelled records of any file: what they say by column, and where they stand.

A row that can't be used is left out and counted, the first five with file and line; a file of which
more than `max_broken` of the rows are such is refused.
"""

import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from bertkit.base.checksums import record_file
from bertkit.base.errors import InputError, storage_errors
from bertkit.data.decompression import unpack
from bertkit.data.readers.sources import (
    NOT_TEXT,
    STANDARD_INPUT,
    STANDARD_INPUT_NAME,
    find_ending,
)
from bertkit.data.tables import jsonl, lines, separated
from bertkit.data.tables.opening import check_standard_input, open_packed, skip_mark
from bertkit.data.tables.record import BrokenRowError, Record, RecordDecoder, RowReport, Rows
from bertkit.data.tables.settings import RecordSettings

RecordReader = Callable[[BinaryIO, RecordDecoder, RecordSettings], Rows]
Example = TypeVar("Example")

RECORD_READERS: dict[str, RecordReader] = {
    "text": lines.read_records,
    "jsonl": jsonl.read_records,
    "csv": separated.read_csv_records,
    "tsv": separated.read_tsv_records,
}
ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "text",
}
MAX_CHARS = 4 << 30  # of one file's cells, all of which are held in memory at once


@dataclass
class RecordTable:
    """A file, or standard input, each row of which is a record.

    Attributes:
        name: as it is called in messages.
        format: a key of `RECORD_READERS`.
        columns: names of the columns; None where each row has its own, as in JSONL.
        settings: how it is read.
        path: the file; None for standard input.
        roles: columns by what they are for (`text`, `pair`, `label`), where the layout says so.
        begun: standard input, whose columns were read; it can't be begun again.
    """

    name: str
    format: str
    columns: tuple[str, ...] | None = None
    settings: RecordSettings = field(default_factory=RecordSettings)
    path: Path | None = None
    roles: dict[str, str] = field(default_factory=dict)
    begun: tuple[RecordDecoder, Rows] | None = None

    def records(self, report: RowReport) -> Iterator[Record]:
        """All records that can be used, in memory that doesn't grow with the file.

        Args:
            report: where rows, broken ones among them, are counted.

        Raises:
            InputError: the file isn't of its format, damaged or cut short, or a row has over
                16 MiB; or standard input was read before.
            MissingFileError: there is no such file any more.
            StorageError: it can't be read.
        """
        if self.path is None:
            if self.begun is None:
                raise InputError(f"{self.name} can be read once; write it to a file first")
            (decoder, rows), self.begun = self.begun, None
            decoder.report = report
            yield from rows.records
            return
        decoder = RecordDecoder(self.name, report=report)
        with _begin(self, decoder) as rows:
            yield from rows.records

    def identity(self) -> dict[str, Any] | None:
        """What the data is: name, format and SHA-256 as it lies on disk; None of standard input.

        Raises:
            MissingFileError: it is gone.
            StorageError: it can't be read.
        """
        if self.path is None:
            return None
        record = record_file(self.path)
        return {
            "name": self.path.name,
            "format": self.format,
            "size_bytes": record.size_bytes,
            "sha256": record.sha256,
        }


def open_records(
    source: str | Path, settings: RecordSettings | None = None, *, split: str = "train"
) -> RecordTable:
    """Find a file of records and read the names of its columns.

    Args:
        source: a file (perhaps .gz, .bz2 or .zst), or - for standard input.
        settings: how it is read.
        split: which part is meant where `source` has several: train, dev or test.

    Raises:
        MissingFileError: there is no such file.
        InputError: it is a folder, or not of its format, or standard input where there is none.
        StorageError: it can't be read.
    """
    settings = settings or RecordSettings()
    if str(source) == STANDARD_INPUT:
        check_standard_input("records")
        chosen = "text" if settings.format == "auto" else settings.format
        table = RecordTable(STANDARD_INPUT_NAME, chosen, settings=settings)
        decoder = RecordDecoder(table.name)
        stream = skip_mark(unpack(sys.stdin.buffer, "", decoder.refuse_rest), table.name)
        table.begun = decoder, RECORD_READERS[chosen](stream, decoder, settings)
        table.columns = table.begun[1].columns
        return table
    path = Path(source)
    with storage_errors(path, "read"):
        status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path} is a folder; name one file of records")
    table = RecordTable(str(path), _find_format(path, settings), settings=settings, path=path)
    with _begin(table, RecordDecoder(table.name)) as rows:
        table.columns = rows.columns
    return table


def _find_format(path: Path, settings: RecordSettings) -> str:
    ending = find_ending(path)
    if settings.format != "auto":
        return settings.format
    if ending in ENDINGS:
        return ENDINGS[ending]
    raise InputError(
        f"{path} has no ending that tells its format"
        f"{f' ({NOT_TEXT[ending]})' if ending in NOT_TEXT else ''}; name it with --format"
    )


@contextmanager
def _begin(table: RecordTable, decoder: RecordDecoder) -> Iterator[Rows]:
    """Open a file and read what stands above its rows."""
    suffix = table.path.suffix.lower() if table.path else ""
    with open_packed(table.path) as packed:
        stream = skip_mark(unpack(packed, suffix, decoder.refuse_rest), table.name)
        yield RECORD_READERS[table.format](stream, decoder, table.settings)


def gather(
    table: RecordTable,
    parse: Callable[[Record], Example],
    report: RowReport,
    max_broken: float | None = None,
) -> list[Example]:
    """Read all examples of a table into memory.

    Args:
        table: where they are.
        parse: makes an example of a record, or raises `BrokenRowError`: then it is left out.
        report: where rows, broken ones among them, are counted.
        max_broken: share of the rows that may be broken; None for what the table's settings say.

    Raises:
        InputError: more are, or there is no row, or so much text that memory might not hold it.
    """
    examples = []
    num_chars = 0
    for record in table.records(report):
        num_chars += sum(len(cell) for cell in record.values.values() if isinstance(cell, str))
        if num_chars > MAX_CHARS:
            raise InputError(
                f"{record.place} is past the {MAX_CHARS >> 30} Gi characters that are held in"
                " memory at once; divide the file"
            )
        try:
            examples.append(parse(record))
        except BrokenRowError as error:
            report.add_broken(str(error))
    report.check_share(table.settings.max_broken if max_broken is None else max_broken)
    return examples
