"""CSV and TSV: a header with the column names, then one record per row.

CSV is as in RFC 4180: a quoted cell may contain commas and line ends, and quotes in it are doubled.
In TSV quotes are ordinary text and a record is a line, as in the IANA registration of the type and
in the files of the GLUE tasks, unless the beginning of the file shows that cells are quoted as in
CSV, as pandas and R write them. In a file with other line ends a lone CR is a part of its cell.
Blanks around column names are dropped, and so are columns without a name at the end of the header.
"""

import csv
import io
import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from bertkit.base.errors import InputError, pluralize
from bertkit.data.encodings import SAMPLE_BYTES
from bertkit.data.problems import REPEATED_HEADER
from bertkit.data.tables.decoder import MAX_ROW_BYTES, RowDecoder
from bertkit.data.tables.formats.lines import read_lines
from bertkit.data.tables.record import Record, Rows
from bertkit.reports.text import show

OTHER_SEPARATORS = (";", "\t", "|")
# A malicious file can make each line swallow all that follow; this limits how much is read again
# because of it.
MAX_AGAIN_BYTES = 16 * MAX_ROW_BYTES
QUOTED_NAME = re.compile(rb'"(?:[^"]|"")*+"')
QUOTED_CELL = re.compile(rb'(?<![^\t\r\n])"((?:[^"]|"")*+)"(?![^\t\r\n])')
CUT_CELL = re.compile(rb'(?<![^\t\r\n])"(?:[^"]|"")*+"?\Z')
DOUBLED_QUOTES = re.compile(r'"(?:[^"]|"")*?""(?:[^"]|"")*+"')
MAX_NAME_WORDS, SENTENCE_ENDS = 4, (".", "!", "?", "。", "！", "？", "।")
SHOWN_CHARS = 40
BLANK_LINES = {b"\n", b"\r\n", b"\r"}
SEPARATOR_LINE = re.compile(r"sep=([^\w\s\"]|[ \t])", re.IGNORECASE)  # the first line, for Excel
LONE_RETURN = re.compile(r"\r(?!\n|\Z)")
# The csv module can't read a lone CR outside quotes. No decoded text has this lone surrogate.
RETURN = "\udc0d"


def read_csv_rows(stream: BinaryIO, decoder: RowDecoder) -> Rows:
    """Read a record for each row of a CSV file."""
    delimiter = decoder.layout.delimiter or ","
    return _read_rows(CellReader(stream, decoder, delimiter=delimiter, strict=True), decoder)


def read_tsv_rows(stream: io.BufferedReader, decoder: RowDecoder) -> Rows:
    """Read a record for each line of a TSV file."""
    if _has_quoted_cells(stream.peek(SAMPLE_BYTES)[:SAMPLE_BYTES]):
        decoder.report.notes.append("cells are quoted as in CSV, and are read without the quotes")
        return _read_rows(CellReader(stream, decoder, delimiter="\t", strict=True), decoder)
    reader = CellReader(stream, decoder, delimiter="\t", quoting=csv.QUOTE_NONE)
    rows = _read_rows(reader, decoder)
    return rows._replace(records=_count_quoted(rows.records, decoder))


def _has_quoted_cells(sample: bytes) -> bool:
    """Whether the names of several columns are quoted, or all cells with quotes, some doubled."""
    names = sample.partition(b"\n")[0].rstrip().split(b"\t")
    if len(names) > 1 and all(map(QUOTED_NAME.fullmatch, names)):
        return True
    cells = [found[1] for found in QUOTED_CELL.finditer(sample)]
    others = QUOTED_CELL.sub(b"", sample)
    if len(sample) == SAMPLE_BYTES:
        others = CUT_CELL.sub(b"", others)
    return b'"' not in others and any(b'""' in cell for cell in cells)


def _count_quoted(records: Iterator[Record], decoder: RowDecoder) -> Iterator[Record]:
    """Note rows whose cells seem to be quoted though those before them aren't."""
    num_rows, first = 0, ""
    for record in records:
        cells = [cell for cell in record.values.values() if isinstance(cell, str)]
        if any(cell.startswith('"') and DOUBLED_QUOTES.fullmatch(cell) for cell in cells):
            num_rows, first = num_rows + 1, first or record.place
        yield record
    if num_rows:
        decoder.report.notes.append(
            f"{pluralize(num_rows, 'row')} {'looks' if num_rows == 1 else 'look'} quoted (first:"
            f" {first}). TSV keeps quotes; to remove them use --format csv --delimiter tab"
        )


def _read_rows(rows: "CellReader", decoder: RowDecoder) -> Rows:
    """Return the column names, and the records below."""
    # This limit is global to the process and too low by default; `CellReader` enforces ours.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))
    try:
        first = _read_first(rows, decoder)
    except csv.Error as error:
        raise InputError(_describe_error(error, decoder)) from None
    if first is None:
        return Rows((), iter(()))
    rows.is_blank_row = len(first) == 1 or decoder.texts_only
    if not decoder.layout.header:
        rows.repeat_row()
    columns, chosen = find_columns(first, decoder, "give --format text")
    records = _name_cells(rows, columns, len(first), decoder)
    return Rows(chosen, records, delimiter=rows.delimiter)


def find_columns(
    first: list[str], decoder: RowDecoder, advice: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns that the first row names, or numbers, and those that are read."""
    if decoder.layout.header:
        columns = name_columns(first)
    else:
        columns = tuple(str(number) for number in range(1, len(first) + 1))
    if not decoder.texts_only:
        decoder.check_unique(columns)
        return columns, columns
    if decoder.column is None and lacks_names(columns):
        decoder.report.notes.append(
            f"the first row, {show(columns[0], SHOWN_CHARS)!r}, is read as the name of the column;"
            f" if it is a text, {advice}"
        )
    return columns, (decoder.choose_column(columns),)


def lacks_names(columns: Sequence[str]) -> bool:
    """Whether the first row seems to be data, as one of its cells is a sentence."""
    return any(
        len(name.split()) > MAX_NAME_WORDS or name.endswith(SENTENCE_ENDS) for name in columns
    )


def _read_first(rows: "CellReader", decoder: RowDecoder) -> list[str] | None:
    """Return the cells of the first row, after a line that names the separator for Excel."""
    try:
        first = next(rows, None)
    except csv.Error:
        # Try the only other separator that is behind a quote in the line.
        marks = [mark for mark in OTHER_SEPARATORS if f'"{mark}'.encode() in rows.first_line]
        if decoder.layout.delimiter is not None or not rows.can_change or len(marks) != 1:
            raise
        rows.change_delimiter(marks[0])
        rows.repeat_row()
        first = next(rows)
    found = SEPARATOR_LINE.fullmatch(rows.delimiter.join(first or ()))
    if found is not None and (rows.can_change or found[1] == rows.delimiter):
        if decoder.layout.delimiter is None:
            rows.change_delimiter(found[1])
        return next(rows, None)
    if first is not None and decoder.layout.delimiter is None:
        first = _try_other_delimiter(rows, first, decoder)
    return first


def name_columns(header: list[str]) -> tuple[str, ...]:
    """Return the names in a header without blanks around them, and without empty ones at its end.

    Exported spreadsheets have such; if all names are empty, they are kept.
    """
    names = [name.strip() for name in header]
    num_named = max((number for number, name in enumerate(names, 1) if name), default=len(names))
    return tuple(names[:num_named])


def _try_other_delimiter(rows: "CellReader", first: list[str], decoder: RowDecoder) -> list[str]:
    """Read a header of one cell again with the only other separator that is in it.

    Rows with another number of cells are broken, so a wrong guess ends in an error.
    """
    marks = [mark for mark in OTHER_SEPARATORS if len(first) == 1 and mark in first[0]]
    kept = (decoder.kept or {}).get("delimiter")
    if kept is not None and len(first) == 1 and kept in first[0]:
        marks = [kept]
    if len(marks) == 1 and rows.can_change:
        rows.change_delimiter(marks[0])
        rows.repeat_row()
        first = next(rows)
    if marks and len(first) == 1:
        raise InputError(
            f"{decoder.name} has one column, {first[0][:80]!r}; name the separator of its cells"
            " with --delimiter, or the format with --format (csv, tsv)"
        )
    return first


def _name_cells(
    rows: "CellReader", columns: tuple[str, ...], num_cells: int, decoder: RowDecoder
) -> Iterator[Record]:
    """Yield a record for each row with the right number of cells; others count as broken.

    The header has `num_cells`; there may be more than columns, and those cells must be empty.
    """
    may_repeat_header = decoder.layout.header and len(columns) > 1 and not decoder.texts_only
    while True:
        try:
            cells = next(rows, None)
        except csv.Error as error:
            decoder.finish_row(_describe_error(error, decoder))
            continue
        if cells is None:
            return
        cells = cells or [""]
        if len(columns) < len(cells) <= num_cells and not any(
            map(str.strip, cells[len(columns) :])
        ):
            del cells[len(columns) :]
        is_header = may_repeat_header and cells[0].strip() == columns[0]
        if is_header and name_columns(cells) == columns:  # of a concatenated file
            decoder.report.add(REPEATED_HEADER, decoder.place)
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

    Attributes:
        is_blank_row: whether a blank line is a row, as in a table of one column.
    """

    is_blank_row = False
    _has_return = False

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
        self._has_return = False
        try:
            cells = next(self._parser)
        except csv.Error:
            self._put_back(self._taken[1:])
            raise
        return [cell.replace(RETURN, "\r") for cell in cells] if self._has_return else cells

    def repeat_row(self) -> None:
        """Return the last row again on the next call."""
        self._put_back(self._taken)

    @property
    def first_line(self) -> bytes:
        """The first line of the last row."""
        return self._taken[0][1]

    @property
    def delimiter(self) -> str:
        """The mark between cells."""
        return str(self._dialect["delimiter"])

    @property
    def can_change(self) -> bool:
        """Whether cells may be separated by something else than a comma: not so in TSV."""
        return self.delimiter == ","

    def change_delimiter(self, mark: str) -> None:
        """Separate the cells of the next row, and of those after it, by another mark."""
        self._dialect["delimiter"] = mark
        self._put_back([])

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
            line = self._decoder.decode(numbered[1])
            if "\r" in line and (found := LONE_RETURN.subn(RETURN, line))[1]:
                line, self._has_return = found[0], True
            yield line
