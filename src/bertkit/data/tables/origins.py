"""Where the records of a table come from: a file, or standard input."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bertkit.base.checksums import record_file
from bertkit.base.errors import InputError
from bertkit.base.remote import RemoteFile
from bertkit.data.tables.decoder import RowDecoder
from bertkit.data.tables.formats import open_rows
from bertkit.data.tables.record import Rows


class Origin(Protocol):
    """The interface of what a table reads its rows from."""

    def columns(self, decoder: RowDecoder) -> tuple[str, ...]:
        """Return the names of the columns."""

    def open(self, decoder: RowDecoder) -> AbstractContextManager[Rows]:
        """Open at the first row."""

    def sha256(self) -> str | None:
        """Return the SHA-256 of the content; None if it can't be read again."""


@dataclass(frozen=True)
class FileOrigin:
    """A file, which may be compressed, and its format, a key of `READERS`."""

    path: Path | RemoteFile
    format: str

    def columns(self, decoder: RowDecoder) -> tuple[str, ...]:
        """Return the names of the columns."""
        with self.open(decoder) as rows:
            return rows.columns

    def open(self, decoder: RowDecoder) -> AbstractContextManager[Rows]:
        """Open at the first row; may be called repeatedly."""
        return open_rows(self.path, self.format, decoder)

    def sha256(self) -> str:
        """Return the SHA-256 of the file on disk."""
        return record_file(self.path).sha256


@dataclass
class InputOrigin:
    """Standard input, which can only be read once, and its format, a key of `READERS`."""

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
        decoder.report.merge(first.report)
        first.report = decoder.report
        with self._stack:
            yield rows

    def sha256(self) -> None:
        """Return None: standard input can't be read again."""
