"""Texts of a file, of standard input, or from memory, row by row: row n is text n of the stream.

An empty line or cell is an empty text, so that results stay aligned with the file. A row that can't
be read as a text is an error that names the row; no row is skipped.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, get_args

from bertkit.base.errors import InputError, storage_errors
from bertkit.base.progress import announce
from bertkit.base.remote import RemoteFile, locate
from bertkit.data.input_files import (
    NOT_TEXT,
    STANDARD_INPUT,
    STANDARD_INPUT_NAME,
    find_extension,
    look_at,
)
from bertkit.data.tables.decoder import (
    ID_FIELD,
    MAX_ROW_BYTES,
    NotTextError,
    RowDecoder,
    check_standard_input,
    open_content,
)
from bertkit.data.tables.formats import find_format, open_rows
from bertkit.data.tables.settings import CorpusSettings, LayoutSettings, TableFormat, TableSettings

HEAD_BYTES = 1 << 16
MEMORY = "memory"  # the format of texts that are in no file


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
    """Texts, each in a row of a file or of standard input, or given one by one."""

    name: str  # in messages
    format: str  # one of `TableFormat`, or memory
    path: Path | RemoteFile | None = None  # None for standard input and texts in memory
    reading: TableSettings = field(default_factory=TableSettings)  # how its bytes become texts
    size_bytes: int | None = None  # None if unknown, as for a pipe
    texts: Sequence[str] = field(default=(), repr=False)  # of memory
    _decoder: RowDecoder | None = field(default=None, init=False, compare=False, repr=False)
    _announced: set[str] = field(default_factory=set, init=False, compare=False)

    @property
    def id_column(self) -> str | None:
        """The column of ids; None if texts have none."""
        return self.reading.id_column if isinstance(self.reading, CorpusSettings) else None

    @property
    def num_undecodable(self) -> int:
        """Rows read so far with invalid UTF-8 or lone surrogates, which became U+FFFD."""
        return 0 if self._decoder is None else self._decoder.report.num_undecodable

    def place(self, number: int) -> str:
        """Return the name of a row, counted from 1, in messages."""
        return f"{self.name}{' ' if self.format == MEMORY else ', row '}{number:,}"

    def rows(self) -> Iterator[TextRow]:
        """Yield all rows from the beginning, in memory that doesn't grow with the file.

        A row may have up to 16 MiB. Parquet is read by row groups, whose size its writer chose.
        """
        if self.format == MEMORY:
            yield from (TextRow(text, len(text)) for text in self.texts)
            return
        decoder = self._begin()
        with ExitStack() as stack:
            rows = open_rows(self.path, self.format, decoder, stack)
            position = 0
            for record in rows.records:
                before, number = position, decoder.report.num_rows
                if rows.num_rows is not None:  # of Parquet: rows are taken to be equally large
                    position = (self.size_bytes or 0) * number // rows.num_rows
                else:
                    position = decoder.position() if decoder.position else decoder.report.num_bytes
                own_id = record.values.get(ID_FIELD)
                if own_id is None and self.id_column is not None:
                    where = f"{self.name}, row {number:,}"
                    raise InputError(f"{where} has no id in {self.id_column}; give it one")
                text = record.values[rows.columns[0]] or ""  # a null of Parquet is an empty text
                shown_id = None if own_id is None else str(own_id)
                yield TextRow(str(text), position - before, shown_id)
        decoder.check_decodable(is_whole=True)
        self._announce_notes(decoder)

    def documents(self) -> Iterator[TextRow]:
        """Yield each row, or a plain text file, of up to 16 MiB, as one.

        The encoding of a plain text file is guessed, as that of a table of records is.
        """
        if self.format != "text":
            yield from self.rows()
            return
        decoder = self._begin()
        decoder.kept = {}
        with open_content(self.path, decoder) as stream:
            content = stream.read(MAX_ROW_BYTES + 1)
            if len(content) > MAX_ROW_BYTES:
                raise InputError(
                    f"{self.name} has more than {MAX_ROW_BYTES >> 20} MiB, the limit for a text;"
                    " split it, or make it a file of rows, such as JSONL"
                )
        text = decoder.decode(content)
        decoder.check_decodable(is_whole=True)
        self._announce_notes(decoder)
        yield TextRow(text, len(content))

    def _announce_notes(self, decoder: RowDecoder) -> None:
        for note in set(decoder.report.notes).difference(self._announced):
            announce(f"{self.name}: {note}")
            self._announced.add(note)

    def _begin(self) -> RowDecoder:
        """Return a decoder for reading from the beginning."""
        layout = LayoutSettings(delimiter=self.reading.delimiter, encoding=self.reading.encoding)
        self._decoder = RowDecoder(
            self.name,
            layout=layout,
            texts_only=True,
            column=self.reading.text_column,
            id_column=self.id_column,
        )
        return self._decoder

    def identity(self) -> dict[str, str | int | None] | None:
        """Return how the file is read, its state and the SHA-256 of its first 64 KiB.

        State and first bytes are taken for its content. None if it can't be read again.
        """
        if self.path is None or self.size_bytes is None:
            return None
        with storage_errors(self.path, "read"), self.path.open("rb") as stream:
            head = hashlib.sha256(stream.read(HEAD_BYTES)).hexdigest()
        return {
            "name": self.path.name,
            "format": self.format,
            "text_column": self.reading.text_column,
            "delimiter": self.reading.delimiter,
            "encoding": self.reading.encoding,
            **({} if self.id_column is None else {"id_column": self.id_column}),
            **look_at(self.path).stamp,
            "head_sha256": head,
        }


def hold_texts(texts: Sequence[str]) -> TextTable:
    """Return texts in memory as a table."""
    return TextTable("text", MEMORY, size_bytes=sum(map(len, texts)), texts=texts)


def open_texts(source: str | Path | RemoteFile, settings: TableSettings | None = None) -> TextTable:
    """Open a file of texts, or - for standard input; no content is read yet.

    The file may be .gz, .bz2 or .zst.
    """
    settings = settings or TableSettings()
    chosen: str | None = None if settings.format == "auto" else settings.format
    if str(source) == STANDARD_INPUT:
        check_standard_input("texts")
        return TextTable(STANDARD_INPUT_NAME, chosen or "text", reading=settings)
    path = source if isinstance(source, RemoteFile) else locate(source)
    state = look_at(path)
    if state.is_folder:
        raise InputError(f"{path} is a folder; name one file of texts")
    if chosen is None:
        chosen, ending = find_format(path, get_args(TableFormat)), find_extension(path)
        if chosen is None and ending in NOT_TEXT:
            raise NotTextError(f"{path} isn't text: {NOT_TEXT[ending]}")
    return TextTable(str(path), chosen or "text", path, settings, state.size_bytes)
