"""A file of texts, read row by row: row n of the file is always text n of the stream.

An empty line or cell is an empty text, so that results stay aligned with the file. A row that can't
be read as a text is an error that names the row; no row is skipped.
"""

import hashlib
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from bertkit.base.errors import InputError, storage_errors
from bertkit.data.decompression import COMPRESSIONS, unpack
from bertkit.data.readers.sources import (
    NOT_TEXT,
    STANDARD_INPUT,
    STANDARD_INPUT_NAME,
    find_ending,
)
from bertkit.data.tables.formats import jsonl, lines, parquet, separated
from bertkit.data.tables.opening import check_standard_input, open_packed, skip_mark
from bertkit.data.tables.row import RowDecoder, TextRow
from bertkit.data.tables.settings import TableSettings

HEAD_BYTES = 1 << 16

RowReader = Callable[[BinaryIO, RowDecoder], Iterator[TextRow]]

ROW_READERS: dict[str, RowReader] = {
    "text": lines.read_rows,
    "jsonl": jsonl.read_rows,
    "csv": separated.read_csv_rows,
    "tsv": separated.read_tsv_rows,
}
ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}


@dataclass
class TextTable:
    """A file, or standard input, each row of which holds one text.

    Attributes:
        name: its name in messages.
        format: text, jsonl, csv, tsv or parquet.
        path: the file; None for standard input.
        field: column that has the text; None: the only column, else `text`.
        size_bytes: bytes on disk; None if unknown, as for a pipe.
        num_undecodable: number of rows read so far with invalid UTF-8 or lone surrogates, which
            became U+FFFD.
    """

    name: str
    format: str
    path: Path | None = None
    field: str | None = None
    size_bytes: int | None = None
    num_undecodable: int = 0

    def rows(self) -> Iterator[TextRow]:
        """Yield all rows from the beginning, in memory that doesn't grow with the file.

        A row may have up to 16 MiB. Parquet is read by row groups, whose size its writer chose.
        """
        decoder = RowDecoder(self.name, self.field)
        self.num_undecodable = 0
        rows = self._read_parquet(decoder) if self.format == "parquet" else self._read(decoder)
        for row in rows:
            decoder.num_rows += 1
            self.num_undecodable = decoder.num_undecodable
            yield row

    def identity(self) -> dict[str, Any] | None:
        """Return what identifies the input, to detect changes; None if it can't be read again."""
        if self.path is None or self.size_bytes is None:
            return None
        with storage_errors(self.path, "read"), self.path.open("rb") as stream:
            status = self.path.stat()
            head = hashlib.sha256(stream.read(HEAD_BYTES)).hexdigest()
        return {
            "name": self.path.name,
            "format": self.format,
            "field": self.field,
            "size_bytes": status.st_size,
            "changed_ns": status.st_mtime_ns,
            "head_sha256": head,
        }

    def _read(self, decoder: RowDecoder) -> Iterator[TextRow]:
        with open_packed(self.path) as packed:
            suffix = self.path.suffix.lower() if self.path else ""
            stream = skip_mark(unpack(packed, suffix, decoder.refuse_rest), self.name)
            num_read = 0
            for row in ROW_READERS[self.format](stream, decoder):
                if suffix in COMPRESSIONS and self.size_bytes is not None:
                    place = packed.tell()
                    row, num_read = TextRow(row.text, place - num_read), place
                yield row

    def _read_parquet(self, decoder: RowDecoder) -> Iterator[TextRow]:
        return parquet.read_rows(self.path, self.size_bytes, decoder)


def open_texts(source: str | Path, settings: TableSettings | None = None) -> TextTable:
    """Open a file of texts; no content is read yet.

    Args:
        source: a file (may be .gz, .bz2 or .zst), or - for standard input.
        settings: its format, and the column that has the text.

    Raises:
        MissingFileError: the file doesn't exist.
        InputError: `source` is a folder or a file type without rows of text, or standard input is
            closed.
        StorageError: the file can't be accessed.
    """
    settings = settings or TableSettings()
    if str(source) == STANDARD_INPUT:
        check_standard_input("texts")
        chosen = "text" if settings.format == "auto" else settings.format
        return TextTable(STANDARD_INPUT_NAME, chosen, field=settings.field)
    path = Path(source)
    with storage_errors(path, "read"):
        status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path} is a folder; name one file of texts")
    ending = find_ending(path)
    if settings.format == "auto" and ending in NOT_TEXT:
        raise InputError(f"{path} isn't text: {NOT_TEXT[ending]}")
    is_auto = settings.format == "auto"
    return TextTable(
        name=str(path),
        format=ENDINGS.get(ending, "text") if is_auto else settings.format,
        path=path,
        field=settings.field,
        size_bytes=status.st_size if stat.S_ISREG(status.st_mode) else None,
    )
