"""Cells of CSV and TSV row by row; a broken row doesn't affect the others."""

import csv
from collections import deque
from collections.abc import Iterator
from typing import Any

from bertkit.base.errors import InputError
from bertkit.data.tables.record import RecordDecoder
from bertkit.data.tables.row import MAX_ROW_BYTES

# A malicious file can make each line swallow all that follow; this limits how much is read again
# because of it.
MAX_AGAIN_BYTES = 16 * MAX_ROW_BYTES
BLANK_LINES = {b"\n", b"\r\n", b"\r"}


class CellReader(Iterator[list[str]]):
    """Iterates over the cells of each row.

    An unclosed quote swallows the lines after it. They are read again: the row after a broken one
    begins on the line after the broken one's first. If such a quote happens to match another one,
    the text between them is taken as a cell, since the error can't be detected.

    Args:
        lines: of the file, with their line ends.
        decoder: is told the line at which a row begins.
        dialect: arguments of `csv.reader`.

    Attributes:
        is_blank_row: whether a blank line is a row, as in a table of one column.
    """

    is_blank_row = False

    def __init__(
        self, lines: Iterator[bytes], decoder: RecordDecoder, dialect: dict[str, Any]
    ) -> None:
        self._lines, self._decoder, self._dialect = enumerate(lines, 1), decoder, dialect
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

    def _put_back(self, lines: list[tuple[int, bytes]]) -> None:
        self._again.extendleft(reversed(lines))
        self._num_again_bytes += sum(len(line) for _, line in lines)
        if self._num_again_bytes > MAX_AGAIN_BYTES:
            raise InputError(
                f"{self._decoder.place} and rows before it have quotes that are never closed; mend"
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
