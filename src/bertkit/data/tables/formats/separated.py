"""CSV and TSV: a header with the column names, then one record per row.

CSV is as in RFC 4180: a quoted cell may contain commas and line ends, and quotes in it are doubled.
In TSV quotes are ordinary text and a record is a line, as in the IANA registration of the type and
in the files of the GLUE tasks.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from bertkit.base.errors import InputError
from bertkit.base.wording import pluralize
from bertkit.data.tables.formats.cells import CellReader
from bertkit.data.tables.formats.lines import read_lines
from bertkit.data.tables.record import Record, RecordDecoder, Rows
from bertkit.data.tables.row import MAX_ROW_BYTES, RowDecoder, TextRow
from bertkit.data.tables.settings import RecordSettings

OTHER_SEPARATORS = (";", "\t", "|")


def read_csv_rows(stream: BinaryIO, decoder: RowDecoder) -> Iterator[TextRow]:
    """Yield a row for each record of a CSV file."""
    yield from _read_rows(stream, decoder, strict=True)


def read_tsv_rows(stream: BinaryIO, decoder: RowDecoder) -> Iterator[TextRow]:
    """Yield a row for each line of a TSV file."""
    yield from _read_rows(stream, decoder, delimiter="\t", quoting=csv.QUOTE_NONE)


def _read_rows(stream: BinaryIO, decoder: RowDecoder, **dialect: Any) -> Iterator[TextRow]:
    """Yield a row for each record below the header."""
    # This limit is global to the process and too low by default; `_RecordLines` enforces ours.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))
    source = _RecordLines(read_lines(stream, decoder), decoder)
    records = csv.reader(source, **dialect)
    header = _next_record(records, decoder)
    if header is None:
        return
    column = header.index(_choose_column(header, decoder))
    while (cells := _next_record(records, decoder)) is not None:
        cells = cells or [""]  # a blank line
        if len(cells) != len(header):
            raise InputError(
                f"{decoder.place} has {pluralize(len(cells), 'cell')} and the header"
                f" {len(header)}; a text with the separator in it needs quotes in CSV, and can't"
                " be in TSV"
            )
        yield TextRow(cells[column], source.num_bytes)
        source.num_bytes = 0


def _next_record(records: Iterator[list[str]], decoder: RowDecoder) -> list[str] | None:
    try:
        return next(records, None)
    except csv.Error as error:
        raise InputError(
            f"{decoder.place} isn't CSV ({error}); a cell that begins with a quote must end with"
            " one, and quotes in it are doubled"
        ) from None


def _choose_column(header: list[str], decoder: RowDecoder) -> str:
    _check_separator(header, decoder)
    return decoder.choose_field(header)


def _check_separator(header: list[str], decoder: RowDecoder) -> None:
    """Reject a header that has one cell because it uses another separator."""
    if len(header) == 1 and any(mark in header[0] for mark in OTHER_SEPARATORS):
        raise InputError(
            f"{decoder.name} has one column, {header[0][:80]!r}; cells are separated by commas in"
            " CSV (--format csv) and by tabs in TSV (--format tsv)"
        )


@dataclass
class _RecordLines:
    """Lines for the parser, which reads as many as a record needs.

    Attributes:
        num_bytes: size of the current record; the reader resets it to 0.
    """

    lines: Iterator[bytes]
    decoder: RowDecoder
    num_bytes: int = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self.lines)
        self.num_bytes += len(line)
        if self.num_bytes > MAX_ROW_BYTES:
            raise InputError(
                f"{self.decoder.place} has more than {MAX_ROW_BYTES >> 20} MiB; is a quote in it"
                " never closed?"
            )
        return self.decoder.decode(line)


def read_csv_records(stream: BinaryIO, decoder: RecordDecoder, settings: RecordSettings) -> Rows:
    """Read a record for each row of a CSV file."""
    return _read_records(stream, decoder, settings, strict=True)


def read_tsv_records(stream: BinaryIO, decoder: RecordDecoder, settings: RecordSettings) -> Rows:
    """Read a record for each line of a TSV file."""
    return _read_records(stream, decoder, settings, delimiter="\t", quoting=csv.QUOTE_NONE)


def _read_records(
    stream: BinaryIO, decoder: RecordDecoder, settings: RecordSettings, **dialect: Any
) -> Rows:
    """Return the column names, and the records below."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))
    lines = decoder.number_lines(read_lines(stream, decoder))
    rows = CellReader(lines, decoder, dialect)
    first = _next_record(rows, decoder)
    if first is None:
        return Rows((), iter(()))
    _check_separator(first, decoder)
    rows.is_blank_row = len(first) == 1
    if not settings.header:
        columns = tuple(str(number) for number in range(1, len(first) + 1))
        rows.repeat_row()
        return Rows(columns, _name_cells(rows, columns, decoder))
    decoder.check_unique(first)
    return Rows(tuple(first), _name_cells(rows, tuple(first), decoder, has_header=True))


def _name_cells(
    rows: CellReader, columns: tuple[str, ...], decoder: RecordDecoder, *, has_header: bool = False
) -> Iterator[Record]:
    """Yield a record for each row with the right number of cells; others count as broken."""
    while True:
        try:
            cells = next(rows, None)
        except csv.Error as error:
            decoder.finish_row(
                f"{decoder.place} isn't CSV ({error}); a cell that begins with a quote must end"
                " with one, and quotes in it are doubled"
            )
            continue
        if cells is None:
            return
        cells = cells or [""]
        if has_header and len(cells) > 1 and tuple(cells) == columns:  # of a concatenated file
            decoder.finish_row(f"{decoder.place} has the names of the columns again")
        elif len(cells) == len(columns):
            decoder.finish_row()
            yield Record(dict(zip(columns, cells, strict=True)), decoder.place)
        else:
            decoder.finish_row(
                f"{decoder.place} has {pluralize(len(cells), 'cell')} where there are"
                f" {pluralize(len(columns), 'column')}; a text with the separator in it needs"
                " quotes in CSV, and can't be in TSV"
            )
