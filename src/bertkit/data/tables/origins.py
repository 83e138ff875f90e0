"""Origins of records: a file, or standard input, in one of several formats."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from bertkit.base.checksums import record_file
from bertkit.base.errors import InputError
from bertkit.data.decompression import unpack
from bertkit.data.tables.formats import conll, jsonl, lines, parquet, separated, squad
from bertkit.data.tables.opening import open_packed, skip_mark
from bertkit.data.tables.record import RecordDecoder, Rows
from bertkit.data.tables.settings import RecordSettings

RecordReader = Callable[[BinaryIO, RecordDecoder, RecordSettings], Rows]

RECORD_READERS: dict[str, RecordReader] = {
    "text": lines.read_records,
    "jsonl": jsonl.read_records,
    "csv": separated.read_csv_records,
    "tsv": separated.read_tsv_records,
    "parquet": parquet.read_records,
    "conll": conll.read_records,
    "squad": squad.read_records,
}
ENDINGS = {
    ".txt": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".conll": "conll",
    ".conllu": "conll",
    ".iob": "conll",
    ".iob2": "conll",
    ".bio": "conll",
    ".json": "squad",
}


class Origin(Protocol):
    """The interface of what a table reads its rows from."""

    def columns(self, decoder: RecordDecoder) -> tuple[str, ...]:
        """Return the names of the columns."""

    def begin(self, decoder: RecordDecoder) -> AbstractContextManager[Rows]:
        """Begin with the first row."""

    def sha256(self) -> str | None:
        """Return the SHA-256 of the content; None if it can't be read again."""


@dataclass(frozen=True)
class FileOrigin:
    """A file.

    Attributes:
        path: of the file, which may be compressed.
        format: a key of `RECORD_READERS`.
        settings: how it is read.
    """

    path: Path
    format: str
    settings: RecordSettings

    def columns(self, decoder: RecordDecoder) -> tuple[str, ...]:
        """Return the names of the columns."""
        with self.begin(decoder) as rows:
            return rows.columns

    @contextmanager
    def begin(self, decoder: RecordDecoder) -> Iterator[Rows]:
        """Begin with the first row; may be called repeatedly."""
        with _open(self.path, self.format, decoder) as stream:
            yield RECORD_READERS[self.format](stream, decoder, self.settings)

    def sha256(self) -> str:
        """Return the SHA-256 of the file on disk."""
        return record_file(self.path).sha256


@dataclass
class InputOrigin:
    """Standard input, which can only be read once.

    Attributes:
        format: a key of `RECORD_READERS`.
        settings: how it is read.
    """

    format: str
    settings: RecordSettings
    _is_read: bool = field(default=False, init=False)
    _begun: tuple[RecordDecoder, Rows] | None = field(default=None, init=False)
    _opened: ExitStack = field(default_factory=ExitStack, init=False)

    def columns(self, decoder: RecordDecoder) -> tuple[str, ...]:
        """Return the names of the columns; the opened input is kept for `begin`."""
        stream = self._opened.enter_context(_open(None, self.format, decoder))
        rows = RECORD_READERS[self.format](stream, decoder, self.settings)
        self._begun = decoder, rows
        return rows.columns

    @contextmanager
    def begin(self, decoder: RecordDecoder) -> Iterator[Rows]:
        """Continue with the first row, counting in the report of `decoder`."""
        if self._begun is None:
            raise InputError(f"{decoder.name} can be read once; write it to a file and name that")
        (first, rows), self._begun = self._begun, None
        decoder.report.take_over(first.report)
        first.report = decoder.report
        with self._opened:
            yield rows

    def sha256(self) -> None:
        """Return None: standard input can't be read again."""


@contextmanager
def _open(path: Path | None, name_of_format: str, decoder: RecordDecoder) -> Iterator[BinaryIO]:
    """Open the decompressed content, without a byte order mark."""
    if name_of_format == "parquet":
        with parquet.open_table(path, decoder) as stream:
            yield stream
        return
    suffix = path.suffix.lower() if path else ""
    with open_packed(path) as packed:
        yield skip_mark(unpack(packed, suffix, decoder.refuse_rest), decoder.name)
