"""Where the records of a table come from: a file, standard input, or rows in memory."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bertkit.base.checksums import record_file
from bertkit.base.errors import InputError
from bertkit.base.remote import RemoteFile
from bertkit.data.input_files import FileState, look_at
from bertkit.data.tables.decoder import RowDecoder
from bertkit.data.tables.formats import open_rows
from bertkit.data.tables.record import Rows


class Origin(ABC):
    """What a table reads its rows from."""

    @abstractmethod
    def open(self, decoder: RowDecoder) -> AbstractContextManager[Rows]:
        """Open at the first row; may be called repeatedly, unless it is standard input."""

    def columns(self, decoder: RowDecoder) -> tuple[str, ...]:
        """Return the names of the columns."""
        with self.open(decoder) as rows:
            return rows.columns

    def sha256(self) -> str | None:
        """Return the SHA-256 of the content, here of all rows; None if it can't be read again."""
        digest = hashlib.sha256()
        with self.open(RowDecoder("")) as rows:
            for record in rows.records:
                digest.update(json.dumps(record.values, default=repr).encode())
        return digest.hexdigest()


@dataclass
class FileOrigin(Origin):
    """A file, which may be compressed, and its format, a key of `FORMATS`."""

    path: Path | RemoteFile
    format: str
    _hashed: tuple[FileState, str] | None = field(default=None, init=False, compare=False)

    def open(self, decoder: RowDecoder) -> AbstractContextManager[Rows]:
        """Open at the first row."""
        return open_rows(self.path, self.format, decoder)

    def sha256(self) -> str:
        """Return the SHA-256 of the file on disk, which is read again once it has changed."""
        state = look_at(self.path)
        if self._hashed is None or self._hashed[0] != state:
            self._hashed = state, record_file(self.path).sha256
        return self._hashed[1]


@dataclass
class InputOrigin(Origin):
    """Standard input, which can only be read once, and its format, a key of `FORMATS`."""

    format: str
    _opened: tuple[RowDecoder, Rows] | None = field(default=None, init=False)
    _stack: ExitStack = field(default_factory=ExitStack, init=False)

    def columns(self, decoder: RowDecoder) -> tuple[str, ...]:
        """Return the names of the columns; the opened input is kept for `open`."""
        rows = self._stack.enter_context(open_rows(None, self.format, decoder))
        self._opened = decoder, rows
        return rows.columns

    @contextmanager
    def open(self, decoder: RowDecoder) -> Iterator[Rows]:
        """Continue with the first row, counting in the report of `decoder`."""
        if self._opened is None:
            raise InputError(f"{decoder.name} can be read once; write it to a file and name that")
        (first, rows), self._opened = self._opened, None
        decoder.report.add_rows(first.report)
        first.report = decoder.report
        with self._stack:
            yield rows

    def sha256(self) -> None:
        """Return None: standard input can't be read again."""
