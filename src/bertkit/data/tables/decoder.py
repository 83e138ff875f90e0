"""Decoding, numbering and counting rows, which all formats share."""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NoReturn

from bertkit.base.errors import InputError, storage_errors
from bertkit.base.remote import RemoteFile
from bertkit.data.encodings import (
    ADVICE,
    COMPRESSIONS,
    SAMPLE_BYTES,
    is_binary,
    is_foreign,
    open_text,
    refuse_encoding,
    unpack,
)
from bertkit.data.tables.record import RowReport, has_column, look_up
from bertkit.data.tables.settings import LayoutSettings
from bertkit.tokenization.words import SURROGATE

MAX_ROW_BYTES = 16 << 20
DEFAULT_FIELD = "text"
ID_FIELD = "\0id"  # no file has such a column
MAX_SHOWN_NAMES, MAX_SHOWN_CHARS = 10, 40


@dataclass
class RowDecoder:
    """Decodes the rows of one table, and counts them in its report.

    Attributes:
        texts_only: whether row n is text n. The reader then returns one column of texts, and keeps
            blank rows; a row without a text is an error.
        column: of the texts, with `texts_only`; None: the only column, else `text`.
        where: the current row: its line, or an equivalent for the format.
        position: returns the number of bytes read of a compressed file; None for other files.
    """

    name: str
    report: RowReport = field(default_factory=lambda: RowReport(""))
    layout: LayoutSettings = field(default_factory=LayoutSettings)  # how the file is read
    texts_only: bool = False
    column: str | None = None
    id_column: str | None = None  # of the ids of texts, if they have some
    where: str = "line 1"
    num_lines: int = 0
    position: Callable[[], int] | None = None
    _last_undecodable: int = -1

    @property
    def place(self) -> str:
        """File and line of the current row, or its number in a table of texts."""
        where = f"row {self.report.num_rows + 1:,}" if self.texts_only else self.where
        return f"{self.name}, {where}"

    def number_lines(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the lines unchanged, and count them."""
        for line in lines:
            self.num_lines += 1
            self.report.num_bytes += len(line)
            yield line

    def set_line(self, number: int) -> None:
        """Set the line, from 1, at which the current row begins."""
        self.where = f"line {number:,}"

    def decode(self, content: bytes) -> str:
        """Decode UTF-8; invalid bytes become U+FFFD, and the row is counted."""
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            self._count_undecodable()
            self.report.decoding.add_invalid(content, self.place, error)
            return content.decode("utf-8", errors="replace")
        self.report.decoding.add_valid(text)
        return text

    def replace_surrogates(self, text: str) -> str:
        """Replace lone surrogates, which invalid escapes can produce, and count the row."""
        if SURROGATE.search(text) is None:
            return text
        self._count_undecodable()
        return SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)

    def finish_row(self, problem: str = "", num_rows: int = 1) -> None:
        """Count one or several rows; a problem begins with their place.

        In a table of texts it is an error.
        """
        if problem and self.texts_only:
            raise InputError(problem)
        self.report.num_rows += num_rows
        if self._last_undecodable == self.report.num_rows - num_rows:
            self.check_decodable(is_whole=False)
        if problem:
            self.report.add_broken(problem, num_rows)

    def check_decodable(self, *, is_whole: bool) -> None:
        """Raise an error if the file seems to be in another encoding, and none was named."""
        if self.layout.encoding is None:
            self.report.decoding.check(self.name, is_whole=is_whole)

    def choose_column(self, names: Sequence[str]) -> str:
        """Return the name of the column that has the text."""
        self._check_id_column(names)
        others = [name for name in names if name != self.id_column] or names
        wanted = others[0] if self.column is None and len(others) == 1 else self.column
        if wanted is None and DEFAULT_FIELD not in names:
            raise InputError(
                f"{self.name} has the columns {show_names(names)}, and none is named"
                f" {DEFAULT_FIELD}; name the one that has the text with --text-column"
            )
        wanted = DEFAULT_FIELD if wanted is None else wanted
        if not has_column(names, wanted):
            raise InputError(
                f"{self.name} has no column {wanted}; name with --text-column one of"
                f" {show_names(names)}"
            )
        self.check_unique([name for name in names if name == wanted])
        return wanted

    def name_id(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return the id of a row as a value by `ID_FIELD`; nothing if rows needn't have one."""
        if self.id_column is None:
            return {}
        try:
            found = look_up(values, self.id_column)
        except KeyError:
            found = None
        return {ID_FIELD: None if isinstance(found, dict | list) else found}

    def _check_id_column(self, names: Sequence[str]) -> None:
        if self.id_column is not None and not has_column(names, self.id_column):
            raise InputError(
                f"{self.name} has no column {self.id_column}; name with --id-column one of"
                f" {show_names(names)}"
            )

    def check_unique(self, names: Sequence[str]) -> None:
        """Raise an error if two columns have the same name."""
        twice, count = Counter(names).most_common(1)[0] if names else ("", 1)
        if count > 1:
            raise InputError(
                f"{self.name} has the column {twice[:MAX_SHOWN_CHARS]} twice; rename one of them"
            )

    def check_size(self, num_bytes: int) -> None:
        """Raise an error if the line after the last one is too long."""
        if num_bytes > MAX_ROW_BYTES:
            self.set_line(self.num_lines + 1)
            raise InputError(
                f"{self.place} has more than {MAX_ROW_BYTES >> 20} MiB, the limit for a row"
            )

    def refuse_rest(self, _: str, cause: str) -> NoReturn:
        """Raise an error for a file that can't be decompressed any further."""
        raise InputError(
            f"{self.name} is damaged or cut short after row {self.report.num_rows:,} ({cause});"
            " create or download it again"
        )

    def refuse_encoding(self, cause: str) -> NoReturn:
        """Raise an error for a file that isn't in the named encoding."""
        raise InputError(f"{self.name} {cause}; name another encoding")

    def _count_undecodable(self) -> None:
        if self._last_undecodable != self.report.num_rows:
            self._last_undecodable = self.report.num_rows
            self.report.num_undecodable += 1


def show_names(names: Collection[str]) -> str:
    """Return the first column names as one string for a message; quoted where blanks matter."""
    shown = [
        name[:MAX_SHOWN_CHARS]
        if name.isprintable() and name == name.strip() != ""
        else repr(name[:MAX_SHOWN_CHARS])
        for name in list(names)[:MAX_SHOWN_NAMES]
    ]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


DISK_BYTES_AT_ONCE = 1 << 14  # granularity of progress through a compressed file


class NotTextError(InputError):
    """A file, such as a picture, isn't text."""


@contextmanager
def open_content(path: Path | RemoteFile | None, decoder: RowDecoder) -> Iterator[BinaryIO]:
    """Open the decompressed text after its byte order mark; None is standard input."""
    with storage_errors(path, "read") if path else nullcontext():
        opened = path.open("rb", buffering=DISK_BYTES_AT_ONCE) if path else None
    with opened or nullcontext(sys.stdin.buffer) as packed:  # standard input is left open
        suffix = path.suffix.lower() if path else ""
        if opened and suffix in COMPRESSIONS and packed.seekable():
            decoder.position = packed.tell
        stream = unpack(packed, suffix, decoder.refuse_rest)
        text = open_text(stream, decoder.layout.encoding, decoder.refuse_encoding)
        if opened and text is not stream and packed.seekable():  # recoded
            decoder.position = packed.tell
        if is_foreign(start := text.peek(SAMPLE_BYTES)[:SAMPLE_BYTES]):
            if not is_binary(start):
                refuse_encoding(decoder.name)
            raise NotTextError(
                f"{decoder.name} isn't text: much of it is NUL or not UTF-8; {ADVICE}"
            )
        yield text


def check_standard_input(kind: str) -> None:
    """Check that standard input isn't closed, as it is by `<&-`."""
    if sys.stdin is None:
        raise InputError(f"there is no standard input; name a file of {kind}")
