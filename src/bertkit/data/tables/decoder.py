"""Decoding, numbering and counting rows, which all formats share."""

import codecs
import hashlib
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from pydantic import JsonValue

from bertkit.base.errors import BertkitError, DamagedFileError, InputError, storage_errors
from bertkit.base.json_files import MAX_JSON_VALUES, parse_json
from bertkit.base.remote import RemoteFile
from bertkit.data.compression import BUFFER_BYTES, COMPRESSIONS, classify, unpack
from bertkit.data.encodings import (
    ADVICE,
    NUM_BYTES,
    SAMPLE_BYTES,
    DecodingCounts,
    describe_guess,
    find_content,
    find_other_content,
    guess_encoding,
    is_binary,
    is_foreign,
    open_text,
    refuse_encoding,
)
from bertkit.data.problems import UNDECODABLE, RowReport
from bertkit.data.tables.settings import LayoutSettings
from bertkit.tokenization.words import SURROGATE

MAX_ROW_BYTES = 16 << 20
DEFAULT_FIELD = "text"
ID_FIELD = "\0id"  # no file has such a column
MAX_SHOWN_NAMES, MAX_SHOWN_CHARS = 10, 40
HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")
DISK_BYTES_AT_ONCE = 1 << 14  # granularity of progress through a compressed file


class HashedStream(io.RawIOBase):
    """A file whose SHA-256 is computed while it is read.

    If it can't be read any further, `count_fault` is called as by `unpack`, and the stream ends.
    """

    def __init__(self, file: BinaryIO | io.FileIO, count_fault: Callable[[str, str], None]) -> None:
        self._file, self._digest, self._count_fault = file, hashlib.sha256(), count_fault

    def readable(self) -> bool:
        """It can be read, and not seek."""
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Read the next bytes."""
        try:
            count: int = self._file.readinto(buffer)  # type: ignore[union-attr]
        except BertkitError:  # of a remote file, which isn't damaged
            raise
        except OSError as error:
            self._count_fault(*classify(error))
            return 0
        self._digest.update(buffer[:count])
        return count

    def finish(self) -> str:
        """Read what a reader has left, such as what follows the end of an archive."""
        while self.read(BUFFER_BYTES):
            pass
        return self._digest.hexdigest()

    def close(self) -> None:
        """Close the file, too."""
        self._file.close()
        super().close()


@dataclass
class RowDecoder:
    """Decodes the rows of one table, and counts them in its report.

    A subclass may count what is an error here: `refuse_…` then returns, and the stream ends.

    Attributes:
        texts_only: whether row n is text n. The reader then returns one column of texts, and keeps
            blank rows; a row without a text is an error.
        column: of the texts, with `texts_only`; None: the only column, else `text`.
        where: the current row: its line, or an equivalent for the format.
        position: returns the number of bytes read of a compressed file; None for other files.
        hashed: the file of a table of records, if it is read from its beginning to its end.
        sha256: of that file, once it was read.
        needs_mark: whether the file has a byte order mark or isn't UTF-8; CSV that is made of it
            then has such a mark, for the same program.
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
    hashed: HashedStream | None = None
    sha256: str | None = None
    needs_mark: bool = False
    # encoding and delimiter of similar files, to try by default; None: nothing is guessed
    kept: Mapping[str, str] | None = None
    guessed: str | None = None  # the encoding, if none was named and the content shows it
    is_faulty: bool = False  # whether a fault was counted that ends the reading
    _last_undecodable: int = -1

    @property
    def place(self) -> str:
        """File and line of the current row, or its number in a table of texts."""
        where = f"row {self.report.num_rows + 1:,}" if self.texts_only else self.where
        return f"{self.name}, {where}"

    @property
    def encoding(self) -> str | None:
        """The encoding that was named, or is evident."""
        return self.layout.encoding or self.guessed

    def guess_encoding(self, content: bytes) -> None:
        """Guess the encoding of a table of records by its beginning, unless one was named."""
        if self.layout.encoding is None and self.kept is not None:
            self.guessed = guess_encoding(content, self.kept.get("encoding"))
        if self.guessed is not None:
            how = describe_guess(content, self.guessed)
            self.report.notes.append(f"{how}; --encoding names another")

    @property
    def decoding(self) -> DecodingCounts:
        """How lines decode."""
        return self.report.decoding

    def count_line(self, num_bytes: int, num_lines: int = 1) -> None:
        """Count a line that was read, or several."""
        self.num_lines += num_lines
        self.report.num_bytes += num_bytes

    def set_line(self, number: int) -> None:
        """Set the line, from 1, at which the current row begins."""
        self.where = f"line {number:,}"

    def decode(self, content: bytes) -> str:
        """Decode UTF-8; invalid bytes become U+FFFD, and the row is counted."""
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            self.count_undecodable()
            self.decoding.add_invalid(content, self.place, error)
            self.check_decodable(is_whole=False)
            return content.decode(errors="replace")
        counts = self.report.decoding
        counts.num_lines += 1
        counts.num_non_ascii += not text.isascii()
        return text

    def parse(
        self, content: bytes, place: str = "", max_values: int = MAX_JSON_VALUES
    ) -> JsonValue:
        """Parse JSON; invalid Unicode in strings is replaced by U+FFFD and counted.

        NaN and Infinity are None, as in a data frame.
        """
        place = place or self.place
        values = parse_json(self.decode(content), place, max_values=max_values, has_nan=True)
        if HALF_CHARACTER.search(content) is None:
            return values
        try:
            return self._replace_surrogates_in(values)
        except RecursionError:
            raise DamagedFileError(f"{place} is nested too deeply") from None

    def _replace_surrogates_in(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.replace_surrogates(value)
        if isinstance(value, list):
            return [self._replace_surrogates_in(item) for item in value]
        if isinstance(value, dict):
            return {
                self.replace_surrogates(key): self._replace_surrogates_in(item)
                for key, item in value.items()
            }
        return value

    def replace_surrogates(self, text: str) -> str:
        """Replace lone surrogates, which invalid escapes can produce, and count the row."""
        if SURROGATE.search(text) is None:
            return text
        self.count_undecodable()
        return SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)

    def finish_row(self, problem: str = "", num_rows: int = 1) -> None:
        """Count one or several rows; a problem begins with their place.

        In a table of texts it is an error.
        """
        if problem and self.texts_only:
            raise InputError(problem)
        self.report.num_rows += num_rows
        if problem:
            self.report.add_broken(problem, num_rows)

    def check_decodable(self, *, is_whole: bool) -> None:
        """Raise an error if the file seems to be in another encoding, and none was named."""
        if self.encoding is None:
            self.decoding.check(self.name, is_whole=is_whole)

    def choose_column(self, names: Sequence[str]) -> str:
        """Return the name of the column that has the text."""
        if self.id_column is not None and not has_column(names, self.id_column):
            raise InputError(
                f"{self.name} has no column {self.id_column}; name with --id-column one of"
                f" {show_names(names)}"
            )
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
        found = values.get(self.id_column)
        if found is None and "." in self.id_column:
            with suppress(KeyError):
                found = look_up(values, self.id_column)
        return {ID_FIELD: None if isinstance(found, dict | list) else found}

    def check_unique(self, names: Sequence[str]) -> None:
        """Raise an error if two columns have the same name."""
        twice, count = Counter(names).most_common(1)[0] if names else ("", 1)
        if count > 1:
            raise InputError(
                f"{self.name} has the column {twice[:MAX_SHOWN_CHARS]} twice; rename one of them"
            )

    def count_undecodable(self) -> None:
        """Count the current row, once, as one with invalid Unicode."""
        if self._last_undecodable != self.report.num_rows:
            self._last_undecodable = self.report.num_rows
            self.report.add(UNDECODABLE, self.place)

    def open_file(self, path: Path | RemoteFile | None) -> BinaryIO | None:
        """Open a file, or standard input; None if it can't be read, which was counted."""
        if path is None:
            return sys.stdin.buffer
        with storage_errors(path, "read"):
            if not self.texts_only:
                self.hashed = HashedStream(path.open("rb", buffering=0), self.refuse_rest)
                return io.BufferedReader(self.hashed, BUFFER_BYTES)
            packed = path.open("rb", buffering=DISK_BYTES_AT_ONCE)
        if path.suffix.lower() in COMPRESSIONS and packed.seekable():
            self.position = packed.tell
        return packed

    def refuse_line(self) -> None:
        """Refuse a line that is too long."""
        self.set_line(self.num_lines + 1)
        raise InputError(
            f"{self.place} has more than {MAX_ROW_BYTES >> 20} MiB, the limit for a row"
        )

    def refuse(self, fault: str, cause: str, message: str) -> None:
        """Refuse a file by a message; a subclass may count the fault, whose cause is shorter."""
        del fault, cause
        raise InputError(f"{self.name} {message}")

    def refuse_rest(self, fault: str, cause: str) -> None:
        """Refuse a file that can't be decompressed or read any further."""
        where = f"is damaged or cut short after row {self.report.num_rows:,}"
        self.refuse(fault, cause, f"{where} ({cause}); create or download it again")

    def refuse_encoding(self, cause: str) -> None:
        """Refuse a file that isn't in its encoding."""
        if self.encoding is not None:
            raise InputError(f"{self.name} {cause}; name another encoding")
        self.refuse("damaged", f"it {cause}", f"{cause}; name another encoding")

    def refuse_foreign(self, start: bytes) -> None:
        """Refuse a file that isn't text, or in another encoding, by its first bytes."""
        if found := find_content(start):
            raise NotTextError(f"{self.name} isn't text: it is {found[0]}; {found[1]}")
        if not is_binary(start):
            refuse_encoding(self.name)
        raise NotTextError(f"{self.name} isn't text: much of it is NUL or not UTF-8; {ADVICE}")


def look_up(values: Mapping[str, object], column: str) -> object:
    """Return the value of a column; `doc.body` may be the field body of the column doc.

    A `KeyError` says that there is none.
    """
    if column in values or "." not in column:
        return values[column]
    found: object = values
    for name in column.split("."):
        if not isinstance(found, Mapping):
            raise KeyError(column)
        found = found[name]
    return found


def has_column(columns: Collection[str], name: str) -> bool:
    """Whether a column, or a field of one as in `look_up`, may be among these."""
    return name in columns or ("." in name and name.partition(".")[0] in columns)


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


class NotTextError(InputError):
    """A file, such as a picture, isn't text."""


@contextmanager
def open_content(
    path: Path | RemoteFile | None, decoder: RowDecoder, *, is_text: bool = True
) -> Iterator[io.BufferedReader]:
    """Open the decompressed content; text as UTF-8, after its byte order mark.

    A path of None is standard input, which is left open.
    """
    packed = decoder.open_file(path)
    if packed is None:
        yield io.BufferedReader(io.BytesIO())
        return
    with packed if path else nullcontext():
        suffix = path.suffix.lower() if path else ""
        other = None
        if suffix in COMPRESSIONS and isinstance(packed, io.BufferedReader):
            other = find_other_content(packed.peek(NUM_BYTES), suffix)
        if other:
            cause = f"isn't compressed as {suffix} says, but is {other}"
            advice = f"give it a name without {suffix}, or create or download it again"
            decoder.refuse("damaged", f"it {cause}", f"{cause}; {advice}")
            packed, suffix = io.BytesIO(), ""
        stream = packed if isinstance(packed, io.BufferedReader) else None
        if stream is None or stream.raw is not decoder.hashed or suffix in COMPRESSIONS:
            stream = unpack(packed, suffix, decoder.refuse_rest)
        if is_text:
            decoder.needs_mark = stream.peek(3).startswith(codecs.BOM_UTF8)
            decoder.guess_encoding(stream.peek(BUFFER_BYTES))
            text = open_text(stream, decoder.encoding, decoder.refuse_encoding)
            if path and text is not stream and packed.seekable():  # recoded
                decoder.position = packed.tell
            decoder.needs_mark |= text is not stream
            start = text.peek(SAMPLE_BYTES)[:SAMPLE_BYTES]
            if is_foreign(start) or find_content(start):
                decoder.refuse_foreign(start)
                text = io.BufferedReader(io.BytesIO())
            stream = text
        yield stream
        if decoder.hashed is not None:
            decoder.sha256 = decoder.hashed.finish()


def check_standard_input(kind: str) -> None:
    """Check that standard input isn't closed, as it is by `<&-`."""
    if sys.stdin is None:
        raise InputError(f"there is no standard input; name a file of {kind}")
