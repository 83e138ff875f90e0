"""CSV and TSV: a header with the column names, then one record per row.

CSV is as in RFC 4180: a quoted cell may contain commas and line ends, and quotes in it are doubled.
In TSV quotes are ordinary text and a record is a line, as in the IANA registration of the type and
in the files of the GLUE tasks.
"""

import csv
from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO

from bertkit.base.errors import InputError
from bertkit.base.wording import pluralize
from bertkit.data.tables.decoder import MAX_ROW_BYTES, RowDecoder
from bertkit.data.tables.formats.lines import read_lines
from bertkit.data.tables.record import Record, Rows

OTHER_SEPARATORS = (";", "\t", "|")
# A malicious file can make each line swallow all that follow; this limits how much is read again
# because of it.
MAX_AGAIN_BYTES = 16 * MAX_ROW_BYTES
BLANK_LINES = {b"\n", b"\r\n", b"\r"}


def read_csv_rows(stream: BinaryIO, decoder: RowDecoder) -> Rows:
    """Read a record for each row of a CSV file."""
    delimiter = decoder.layout.delimiter or ","
    return _read_rows(CellReader(stream, decoder, delimiter=delimiter, strict=True), decoder)


def read_tsv_rows(stream: BinaryIO, decoder: RowDecoder) -> Rows:
    """Read a record for each line of a TSV file."""
    reader = CellReader(stream, decoder, delimiter="\t", quoting=csv.QUOTE_NONE)
    return _read_rows(reader, decoder)


def _read_rows(rows: "CellReader", decoder: RowDecoder) -> Rows:
    """Return the column names, and the records below."""
    # This limit is global to the process and too low by default; `CellReader` enforces ours.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))
    try:
        first = next(rows, None)
        if first is not None and decoder.layout.delimiter is None:
            first = _try_other_delimiter(rows, first, decoder)
    except csv.Error as error:
        raise InputError(_describe_error(error, decoder)) from None
    if first is None:
        return Rows((), iter(()))
    rows.is_blank_row = len(first) == 1 or decoder.texts_only
    columns, has_header = tuple(first), decoder.layout.header
    if not has_header:
        columns = tuple(str(number) for number in range(1, len(first) + 1))
        rows.repeat_row()
    elif not decoder.texts_only:
        decoder.check_unique(first)
    records = _name_cells(rows, columns, decoder, has_header=has_header)
    return Rows((decoder.choose_column(first),) if decoder.texts_only else columns, records)


def _try_other_delimiter(rows: "CellReader", first: list[str], decoder: RowDecoder) -> list[str]:
    """Read a header of one cell again with the only other separator that is in it.

    Rows with another number of cells are broken, so a wrong guess ends in an error.
    """
    marks = [mark for mark in OTHER_SEPARATORS if len(first) == 1 and mark in first[0]]
    if len(marks) == 1 and rows.can_change:
        rows.change_delimiter(marks[0])
        first = next(rows)
    if marks and len(first) == 1:
        raise InputError(
            f"{decoder.name} has one column, {first[0][:80]!r}; name the separator of its cells"
            " with --delimiter, or the format with --format (csv, tsv)"
        )
    return first


def _name_cells(
    rows: "CellReader", columns: tuple[str, ...], decoder: RowDecoder, *, has_header: bool
) -> Iterator[Record]:
    """Yield a record for each row with the right number of cells; others count as broken."""
    may_repeat_header = has_header and len(columns) > 1 and not decoder.texts_only
    while True:
        try:
            cells = next(rows, None)
        except csv.Error as error:
            decoder.finish_row(_describe_error(error, decoder))
            continue
        if cells is None:
            return
        cells = cells or [""]
        if may_repeat_header and tuple(cells) == columns:  # of a concatenated file
            decoder.finish_row(f"{decoder.place} has the names of the columns again")
        elif len(cells) == len(columns):
            values = dict(zip(columns, cells, strict=True))
            id_of = decoder.name_id(values)
            decoder.finish_row()
            yield Record({**values, **id_of} if id_of else values, decoder.place)
        else:
            decoder.finish_row(
                f"{decoder.place} has {pluralize(len(cells), 'cell')} where there are"
                f" {pluralize(len(columns), 'column')}; a text with the separator in it needs"
                " quotes in CSV, and can't be in TSV"
            )


def _describe_error(error: csv.Error, decoder: RowDecoder) -> str:
    return (
        f"{decoder.place} isn't CSV ({error}); a cell that begins with a quote must end with one,"
        " and quotes in it are doubled"
    )


class CellReader(Iterator[list[str]]):
    """Iterates over the cells of each row; a broken row doesn't affect the others.

    An unclosed quote swallows the lines after it. They are read again: the row after a broken one
    begins on the line after the broken one's first. If such a quote happens to match another one,
    the text between them is taken as a cell, since the error can't be detected.

    Args:
        stream: the content of the file.
        decoder: where the line at which a row begins is set.
        dialect: arguments of `csv.reader`.

    Attributes:
        is_blank_row: whether a blank line is a row, as in a table of one column.
    """

    is_blank_row = False

    def __init__(self, stream: BinaryIO, decoder: RowDecoder, **dialect: Any) -> None:
        self._lines = enumerate(read_lines(stream, decoder), 1)
        self._decoder, self._dialect = decoder, dialect
        self._again: deque[tuple[int, bytes]] = deque()
        self._taken: list[tuple[int, bytes]] = []
        self._num_again_bytes = 0
        self._parser = csv.reader(self._take_lines(), **dialect)

    def __next__(self) -> list[str]:
        """Return the cells of the next row; a blank line has none."""
        self._taken.clear()
        try:
            return next(self._parser)
        except csv.Error:
            self._put_back(self._taken[1:])
            raise

    def repeat_row(self) -> None:
        """Return the last row again on the next call."""
        self._put_back(self._taken)

    @property
    def can_change(self) -> bool:
        """Whether cells may be separated by something else than a comma: not so in TSV."""
        return bool(self._dialect["delimiter"] == ",")

    def change_delimiter(self, mark: str) -> None:
        """Return the last row again on the next call, and separate cells by another mark."""
        self._dialect["delimiter"] = mark
        self.repeat_row()

    def _put_back(self, lines: list[tuple[int, bytes]]) -> None:
        self._again.extendleft(reversed(lines))
        self._num_again_bytes += sum(len(line) for _, line in lines)
        if self._num_again_bytes > MAX_AGAIN_BYTES:
            raise InputError(
                f"{self._decoder.place} and rows before it have quotes that are never closed; close"
                " them, or name another format (in TSV, --format tsv, quotes are text)"
            )
        self._parser = csv.reader(self._take_lines(), **self._dialect)

    def _take_lines(self) -> Iterator[str]:
        """Yield lines to the parser, which reads as many as a row needs."""
        num_bytes = 0
        while numbered := self._again.popleft() if self._again else next(self._lines, None):
            if not self._taken:
                if numbered[1] in BLANK_LINES and not self.is_blank_row:
                    continue
                self._decoder.set_line(numbered[0])
                num_bytes = 0
            self._taken.append(numbered)
            num_bytes += len(numbered[1])
            if num_bytes > MAX_ROW_BYTES:
                raise csv.Error(f"over {MAX_ROW_BYTES >> 20} MiB")
            yield self._decoder.decode(numbered[1])
