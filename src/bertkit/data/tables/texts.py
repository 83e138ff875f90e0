"""A file of texts, read row by row: row n of the file is always text n of the stream.

An empty line or cell is an empty text, so that results stay aligned with the file. A row that can't
be read as a text is an error that names the row; no row is skipped.
"""

import hashlib
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, get_args

from bertkit.base.errors import InputError, storage_errors
from bertkit.base.remote import RemoteFile, locate
from bertkit.data.readers.sources import (
    NOT_TEXT,
    STANDARD_INPUT,
    STANDARD_INPUT_NAME,
    find_extension,
)
from bertkit.data.tables.decoder import (
    ID_FIELD,
    MAX_ROW_BYTES,
    NotTextError,
    RowDecoder,
    check_standard_input,
    open_content,
)
from bertkit.data.tables.formats import EXTENSIONS, open_rows
from bertkit.data.tables.record import Record, Rows
from bertkit.data.tables.settings import CorpusSettings, LayoutSettings, TableFormat, TableSettings

HEAD_BYTES = 1 << 16


class TextRow(NamedTuple):
    """A text, and its size in the file.

    Attributes:
        num_bytes: size on disk, for progress; approximate if the file is compressed or Parquet.
    """

    text: str  # may be empty; NULs are kept
    num_bytes: int
    id: str | None = None  # in results; None: the row's number


@dataclass
class TextTable:
    """A file, or standard input, each row of which holds one text.

    Attributes:
        num_undecodable: number of rows read so far with invalid UTF-8 or lone surrogates, which
            became U+FFFD.
    """

    name: str  # in messages
    format: str  # text, jsonl, csv, tsv or parquet
    path: Path | RemoteFile | None = None  # None for standard input
    text_column: str | None = None  # None: the only column, else `text`
    reading: TableSettings = field(default_factory=TableSettings)  # how its bytes become cells
    id_column: str | None = None  # None if texts have no ids
    size_bytes: int | None = None  # None if unknown, as for a pipe
    num_undecodable: int = 0

    def rows(self) -> Iterator[TextRow]:
        """Yield all rows from the beginning, in memory that doesn't grow with the file.

        A row may have up to 16 MiB. Parquet is read by row groups, whose size its writer chose.
        """
        self.num_undecodable = 0
        decoder = self.decoder()
        with open_rows(self.path, self.format, decoder) as rows:
            position = 0
            for record in rows.records:
                before, position = position, self._find_position(decoder, rows)
                self.num_undecodable = decoder.report.num_undecodable
                text = record.values[rows.columns[0]] or ""  # a null of Parquet is an empty text
                yield TextRow(str(text), position - before, self._find_id(record, decoder))
        decoder.check_decodable(is_whole=True)

    def decoder(self) -> RowDecoder:
        """Return a decoder of its rows."""
        layout = LayoutSettings(delimiter=self.reading.delimiter, encoding=self.reading.encoding)
        return RowDecoder(
            self.name,
            layout=layout,
            texts_only=True,
            column=self.text_column,
            id_column=self.id_column,
        )

    def _find_id(self, record: Record, decoder: RowDecoder) -> str | None:
        """Return the id of a row, if rows have ids."""
        if self.id_column is None:
            return None
        found = record.values.get(ID_FIELD)
        if found is None:
            row = decoder.report.num_rows
            raise InputError(f"{self.name}, row {row:,} has no id in {self.id_column}; give it one")
        return str(found)

    def _find_position(self, decoder: RowDecoder, rows: Rows) -> int:
        """Return the number of bytes read of the file."""
        if rows.num_rows is not None:  # of Parquet: rows are taken to be equally large
            return (self.size_bytes or 0) * decoder.report.num_rows // rows.num_rows
        return decoder.position() if decoder.position else decoder.report.num_bytes

    def stamp(self) -> dict[str, int | str | None]:
        """Return size, and time of change or version, of the file."""
        assert self.path is not None
        if isinstance(self.path, RemoteFile):
            return {"size_bytes": self.path.size_bytes, "version": self.path.version}
        with storage_errors(self.path, "read"):
            status = self.path.stat()
        return {"size_bytes": status.st_size, "changed_ns": status.st_mtime_ns}

    def identity(self) -> dict[str, Any] | None:
        """Return what identifies the input, to detect changes; None if it can't be read again."""
        if self.path is None or self.size_bytes is None:
            return None
        with storage_errors(self.path, "read"), self.path.open("rb") as stream:
            head = hashlib.sha256(stream.read(HEAD_BYTES)).hexdigest()
        return {
            "name": self.path.name,
            "format": self.format,
            "text_column": self.text_column,
            "delimiter": self.reading.delimiter,
            "encoding": self.reading.encoding,
            **({} if self.id_column is None else {"id_column": self.id_column}),
            **self.stamp(),
            "head_sha256": head,
        }


def open_texts(source: str | Path | RemoteFile, settings: TableSettings | None = None) -> TextTable:
    """Open a file of texts, or - for standard input; no content is read yet.

    The file may be .gz, .bz2 or .zst.
    """
    settings = settings or TableSettings()
    id_column = settings.id_column if isinstance(settings, CorpusSettings) else None
    chosen: str = settings.format
    if str(source) == STANDARD_INPUT:
        check_standard_input("texts")
        chosen = "text" if chosen == "auto" else chosen
        return TextTable(
            STANDARD_INPUT_NAME,
            chosen,
            text_column=settings.text_column,
            reading=settings,
            id_column=id_column,
        )
    path = source if isinstance(source, RemoteFile) else locate(source)
    size_bytes = path.size_bytes if isinstance(path, RemoteFile) else _measure(path)
    if chosen == "auto":
        extension = find_extension(path)
        if extension in NOT_TEXT and extension not in EXTENSIONS:
            raise NotTextError(f"{path} isn't text: {NOT_TEXT[extension]}")
        chosen = EXTENSIONS.get(extension, "text")
        chosen = chosen if chosen in get_args(TableFormat) else "text"
    return TextTable(str(path), chosen, path, settings.text_column, settings, id_column, size_bytes)


def _measure(path: Path) -> int | None:
    """Return the size of a file; None of a pipe or a device."""
    with storage_errors(path, "read"):
        status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path} is a folder; name one file of texts")
    return status.st_size if stat.S_ISREG(status.st_mode) else None


class WholeText(NamedTuple):
    """A document."""

    name: str
    row: int | None  # index in the file, from 0; None if the whole file is the text
    text: str  # may be empty; NULs are kept
    is_undecodable: bool  # whether invalid Unicode was replaced by U+FFFD


def read_documents(
    source: str | Path, settings: TableSettings | None = None
) -> Iterator[WholeText]:
    """Yield the documents of a file, or of - for standard input, each of up to 16 MiB.

    The file may be .gz, .bz2 or .zst.
    """
    table = open_texts(source, settings)
    if table.format == "text":
        yield _read_whole(table)
        return
    num_undecodable = 0
    for number, row in enumerate(table.rows()):
        is_undecodable = table.num_undecodable > num_undecodable
        num_undecodable = table.num_undecodable
        yield WholeText(table.name, number, row.text, is_undecodable)


def _read_whole(table: TextTable) -> WholeText:
    """Read a plain text file as one document."""
    decoder = table.decoder()
    with open_content(table.path, decoder) as stream:
        content = stream.read(MAX_ROW_BYTES + 1)
    decoder.check_size(len(content))
    text = decoder.decode(content)
    decoder.check_decodable(is_whole=True)
    return WholeText(table.name, None, text, decoder.report.num_undecodable > 0)
