"""Decoding the rows of a corpus: faults are counted, and reading goes on."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from bertkit.base.errors import BertkitError, DamagedFileError
from bertkit.base.remote import RemoteFile
from bertkit.data.compression import classify, read_plain, stream_pieces
from bertkit.data.encodings import is_binary, refuse_encoding
from bertkit.data.problems import ReadReport
from bertkit.data.signatures import find_content
from bertkit.data.tables.decoder import RowDecoder

Advance = Callable[[int], None]


@dataclass
class SourceDecoder(RowDecoder):
    """Decodes the rows of a source; faults are counted by their names in `OUTCOMES`."""

    problems: ReadReport = field(default_factory=ReadReport)
    advance: Advance | None = None  # called with the number of bytes read, for progress
    line: int = 0  # of the current row; 0 where `where` tells it

    @property
    def place(self) -> str:
        """File and line of the current row, or the title of the page."""
        return f"{self.name}:{self.line:,}" if self.line else f"{self.name}: {self.where}"

    def set_line(self, number: int) -> None:
        """Set the line, from 1, at which the current row begins."""
        self.line = number

    def note(self, name: str) -> None:
        """Count a problem of the current row."""
        self.problems.add(name, self.place)

    def decode(self, content: bytes) -> str:
        """Decode a line or record; invalid UTF-8 is replaced, NULs are removed."""
        if b"\0" in content:
            self.note("nul")
            content = content.replace(b"\0", b"")
        return super().decode(content)

    def decode_value(self, content: bytes) -> str:
        """Decode a value of a file that isn't text, and so isn't in another encoding."""
        try:
            return content.decode()
        except UnicodeDecodeError:
            self.count_undecodable()
            return content.decode(errors="replace")

    def count_undecodable(self) -> None:
        """Count the current row as one with invalid Unicode."""
        self.note("invalid-utf8")

    def parse(self, content: bytes, place: str = "", max_values: int = 0) -> Any:
        """Parse JSON by Python's own rules: a corpus only needs one field of it."""
        try:
            return json.loads(self.decode(content))
        except (ValueError, RecursionError) as error:
            raise DamagedFileError(f"{place or self.place} isn't JSON ({error})") from None

    def finish_row(self, problem: str = "", num_rows: int = 1) -> None:
        """Count a row, which may not be an object of JSON."""
        self.report.num_rows += num_rows
        if problem:
            self.note("broken-json")

    def open_file(self, path: Path | RemoteFile | None) -> BinaryIO | None:
        """Open a file, or standard input; None if it can't be read, which is counted."""
        try:
            packed = sys.stdin.buffer if path is None else path.open("rb", buffering=0)
        except BertkitError:  # of a remote file: the rest of the corpus can't be reached either
            raise
        except OSError as error:
            self.refuse_rest(*classify(error))
            return None
        return stream_pieces(self._count_bytes(packed), file=packed if path else None)

    def _count_bytes(self, packed: BinaryIO | io.FileIO) -> Iterator[bytes]:
        for content in read_plain(packed):
            if self.advance is not None:
                self.advance(len(content))
            yield content

    def refuse_line(self) -> None:
        """Count a line that is too long, and is skipped as if it were blank."""
        self.problems.add("long-record", f"{self.name}:{self.num_lines + 1:,}")

    def refuse(self, fault: str, cause: str, message: str) -> None:
        """Count the fault that ends the reading of this source."""
        self.is_faulty = True
        self.problems.add(fault, f"{self.name} ({cause})")

    def refuse_foreign(self, start: bytes) -> None:
        """Count a file that isn't text; refuse one in another encoding."""
        if found := find_content(start):
            self.refuse_rest("not-text", f"it is {found[0]}; {found[1]}")
            return
        if self.encoding is None and not is_binary(start):
            refuse_encoding(self.name)
        self.refuse_rest("not-text", "much of it is NUL or no UTF-8; convert it")
