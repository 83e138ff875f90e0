"""Encodings of text files, which files would be damaged as UTF-8, and which aren't text.

A few bytes that aren't UTF-8 are replaced by U+FFFD and counted. A file in another encoding has
many, and few characters that are: it is refused, because each of its letters would be lost.
"""

import codecs
import io
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, NoReturn

from cyclopts import Group, Parameter
from pydantic import AfterValidator, Field

from bertkit.base.errors import InputError
from bertkit.data.compression import BUFFER_BYTES, stream_pieces
from bertkit.reports.text import format_percent, show

OF_FILES = Parameter(group=Group("Reading files", sort_key=7))  # a panel of the help
MaxBroken = Annotated[
    float,
    OF_FILES,
    Field(
        ge=0,
        le=1,
        description="Largest share of a file's rows that may be broken: unreadable ones are left"
        " out, and damaged characters replaced. If more are broken, it is an error; with 0 the"
        " first.",
    ),
]
UTF8 = "utf-8"
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
SAMPLE_BYTES = 1 << 16
MIN_NUM_FOREIGN, MAX_SHARE_OF_FOREIGN = 32, 0.1
CONTROLS = bytes({*range(32)} - set(b"\t\n\f\r\x1b"))
MAX_SHARE_OF_CONTROLS = 0.01
# Lines with invalid UTF-8 that a refusal needs: of whole input, of a part of it, and as a share.
LEAST_INVALID, MANY_INVALID, LEAST_SHARE = 3, 100, 1e-4
ADVICE = (
    "name its encoding, such as --encoding latin-1 or cp1252, or utf-8 to replace what isn't UTF-8"
)


def _check_encoding(value: str | None) -> str | None:
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=value or UTF8)
    except (LookupError, ValueError):
        raise ValueError("unknown encoding; try utf-8, cp1252, latin-1 or utf-16") from None
    return value


Encoding = Annotated[
    str | None,
    AfterValidator(_check_encoding),
    OF_FILES,
    Field(
        description="Encoding of text files, such as cp1252 (Western European Windows) or latin-1;"
        " by default UTF-8, or UTF-16 if the file begins with its byte order mark; of data for a"
        " task also cp1252, if its letters show it. utf-8 also reads a file that seems to be in"
        " another encoding, and replaces what isn't UTF-8.",
    ),
]


@dataclass
class DecodingCounts:
    """How the lines or records of a file decode as UTF-8."""

    num_lines: int = 0
    num_non_ascii: int = 0  # those with characters outside of ASCII, all of them valid
    num_invalid: int = 0  # those with invalid bytes
    first_invalid: str = ""  # place and value

    def add_invalid(self, content: bytes, place: str, error: UnicodeDecodeError) -> None:
        """Count the lines of content that isn't UTF-8, or the objects of JSON in one line."""
        if not self.num_invalid:
            start = content.rfind(b"\n", 0, error.start) + 1
            byte, number = content[error.start], error.start - start + 1
            self.first_invalid = f"{place}, byte {number:,} (0x{byte:02X})"
        for line in filter(bytes.strip, content.replace(b"}", b"}\n").splitlines()):
            self.num_lines += 1
            try:
                self.num_non_ascii += not line.decode(UTF8).isascii()
            except UnicodeDecodeError:
                self.num_invalid += 1

    def add(self, other: "DecodingCounts") -> None:
        """Add the counts of other lines."""
        self.num_lines += other.num_lines
        self.num_non_ascii += other.num_non_ascii
        self.num_invalid += other.num_invalid
        self.first_invalid = self.first_invalid or other.first_invalid

    def are_foreign(self, least: int = LEAST_INVALID) -> bool:
        """Whether the lines seem to be in another encoding; at least so many are invalid then."""
        bad = self.num_invalid
        is_enough = bad >= max(least, LEAST_SHARE * self.num_lines)
        return is_enough and (bad > self.num_non_ascii or 3 * bad >= self.num_lines)

    def check(self, name: str, *, is_whole: bool) -> None:
        """Raise an error if the lines seem to be in another encoding.

        They do if more have invalid bytes than have valid characters outside of ASCII, or a third
        has. Until all lines were read (`is_whole`), few of them don't tell.
        """
        if self.are_foreign(LEAST_INVALID if is_whole else MANY_INVALID):
            bad, read = self.num_invalid, "" if is_whole else "the first "
            raise InputError(
                f"{name}: {bad:,} of {read}{self.num_lines:,} lines"
                f" ({format_percent(bad / self.num_lines)}) aren't UTF-8 and would lose characters,"
                f" the first at {self.first_invalid}; {ADVICE}"
            )


def open_text(
    stream: io.BufferedReader, encoding: str | None, refuse: Callable[[str], object]
) -> io.BufferedReader:
    """Return a decompressed stream as UTF-8, without a byte order mark.

    Without an encoding it is UTF-8, or UTF-16 if it begins with its byte order mark. If the content
    isn't in its encoding, `refuse` is called with the reason, and the stream ends.
    """
    chosen = UTF8 if encoding is None else codecs.lookup(encoding).name
    if encoding is None and stream.peek(2).startswith(UTF16_MARKS):
        chosen = "utf-16"
    if chosen != UTF8:
        stream = stream_pieces(_recode(stream, chosen, refuse))
    if stream.peek(3).startswith(codecs.BOM_UTF8):
        stream.read(len(codecs.BOM_UTF8))
    return stream


def _recode(
    stream: io.BufferedReader, encoding: str, refuse: Callable[[str], object]
) -> Iterator[bytes]:
    """Yield the content of a stream in another encoding as UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    content = b" "
    while content:
        content = stream.read(BUFFER_BYTES)
        try:
            text = decoder.decode(content, final=not content)
        except UnicodeError as error:
            refuse(f"isn't in {encoding} ({error})")
            return
        yield text.encode(errors="replace")


def is_foreign(sample: bytes) -> bool:
    """Whether bytes have too many NULs or too much invalid UTF-8 to be UTF-8 text."""
    num_valid = len(sample.decode(errors="ignore").encode())
    num_foreign = len(sample) - num_valid + sample.count(0)
    return num_foreign > max(MIN_NUM_FOREIGN, MAX_SHARE_OF_FOREIGN * len(sample))


def is_binary(sample: bytes) -> bool:
    """Whether foreign bytes have control characters, which text in any encoding of bytes lacks."""
    num_controls = len(sample) - len(sample.translate(None, CONTROLS))
    return num_controls > MAX_SHARE_OF_CONTROLS * len(sample)


def refuse_encoding(name: str) -> NoReturn:
    """Raise an error for a file that is text in another encoding."""
    raise InputError(f"{name} is text, but not in UTF-8, and would lose characters; {ADVICE}")


WESTERN = "cp1252"  # latin-1 with the quotes, dashes and € of Windows
WESTERN_ENCODINGS = {WESTERN, "iso8859-1", "iso8859-15"}
# Letters outside of ASCII by which texts of Western Europe are known: those of one language, as the
# same bytes are letters of many in Czech, Hungarian or Turkish, and signs in Polish or on old Macs.
WESTERN_LETTERS = tuple(
    {*letters, *letters.upper()}
    for letters in (
        "äöüßé",
        "éèàêâîôûùçëïœ",
        "áéíóúñüç",
        "àèéìòù",
        "ãõáéíóúâêôçà",
        "åäöæøé",
        "ëéïöüè",
    )
)
WESTERN_SIGNS = {*"\xa0€‚„…‹›‘’“”•–—™¡§©«®°²´µ·»½¿×"}
LEAST_WESTERN, LEAST_LETTERS = 0.95, 8  # share of letters that are those of one language; all
SHOWN_CHARS, WORD = 40, re.compile(r"\w+")
APOSTROPHE = re.compile("(?<=[a-z])\N{RIGHT SINGLE QUOTATION MARK}(?=[a-z])")
BESIDE_ASCII = re.compile(r"(?<=[A-Za-z])[^\W_]|[^\W_](?=[A-Za-z])")


def guess_encoding(content: bytes, kept: str | None = None) -> str | None:
    """Guess the encoding of text that isn't UTF-8 and would be refused; None if it isn't evident.

    Args:
        content: a file, or its beginning.
        kept: the encoding of similar files, such as the training data; it is tried first. One of
            Western Europe, in which all bytes are letters, needs some evidence, too.
    """
    counts, has_kept = DecodingCounts(), kept is not None
    try:
        content.decode()
    except UnicodeDecodeError as error:
        counts.add_invalid(content, "", error)
    if content.startswith(UTF16_MARKS) or is_binary(content) or not counts.are_foreign():
        return None
    kept = WESTERN if kept is None else codecs.lookup(kept).name
    is_western = kept in WESTERN_ENCODINGS
    least = 1 if has_kept and is_western else LEAST_LETTERS
    for encoding in (kept, WESTERN):
        with suppress(UnicodeError):
            if encoding != "iso8859-1" and _is_western(content.decode(encoding), least):
                return encoding
    with suppress(UnicodeError):
        return kept if not is_western and content.decode(kept) else None
    return None


def describe_guess(content: bytes, encoding: str) -> str:
    """Say in which encoding a file is read, with the first word by which it can be checked."""
    words = (found[0] for found in WORD.finditer(content.decode(encoding, errors="replace")))
    word = next((word for word in words if not word.isascii()), "")
    shown = f", such as {show(word, SHOWN_CHARS)!r}" if word else ""
    return f"read as {encoding}, since it isn't UTF-8{shown}"


def _is_western(text: str, least_letters: int) -> bool:
    """Whether a text's letters outside of ASCII are those of one Western European language.

    Half of them must also stand beside a letter of ASCII, as few do in other alphabets, and be in
    lower case, as quotes and dashes of old Macs aren't. English has few, and apostrophes in words.
    """
    others = [letter for letter in text if letter > "\x7f" and letter not in WESTERN_SIGNS]
    least, num_apostrophes = LEAST_WESTERN * len(others), len(APOSTROPHE.findall(text))
    beside = sum(not found[0].isascii() for found in BESIDE_ASCII.finditer(text))
    num_typical = min(beside, sum(map(str.islower, others)))
    is_enough = len(others) + num_apostrophes >= least_letters and 2 * num_typical >= len(others)
    return is_enough and any(
        sum(letter in letters for letter in others) >= least for letters in WESTERN_LETTERS
    )


# First bytes of files that aren't text, whatever their names say.
SIGNATURES = {
    b"\x1f\x8b": ("gzip", "give it a name that ends with .gz"),
    b"BZh": ("bzip2", "give it a name that ends with .bz2"),
    b"\x28\xb5\x2f\xfd": ("Zstandard", "give it a name that ends with .zst"),
    b"PAR1": ("Parquet", "name its format with --format parquet"),
    b"PK\x03\x04": ("a workbook or another ZIP archive", "save it as CSV, or unpack it first"),
    b"\xd0\xcf\x11\xe0": ("a .xls or .doc file", "save it as CSV or text first"),
    b"\xfd7zXZ": ("xz", "unpack it first"),
    b"ARROW1": ("Arrow", "save it as Parquet first"),
    b"SQLite format 3": ("an SQLite database", "export it as CSV first"),
    b"%PDF-": ("PDF", "make text of it first"),
}
SKIPPABLE_FRAMES = tuple(bytes((0x50 + number, 0x2A, 0x4D, 0x18)) for number in range(16))
COMPRESSED = {
    ".gz": (b"\x1f\x8b",),
    ".bz2": (b"BZh",),
    ".zst": (b"\x28\xb5\x2f\xfd", *SKIPPABLE_FRAMES),
}
NUM_BYTES = 16  # at the beginning of a file


def find_content(start: bytes) -> tuple[str, str] | None:
    """Return what a file is that isn't text, and what to do with it; None if that isn't known.

    A text may begin with letters of a signature, so bytes that text lacks are needed too.
    """
    head = start[:NUM_BYTES]
    if head.isascii() and head == head.translate(None, CONTROLS) and not is_foreign(start):
        return None
    return next((found for mark, found in SIGNATURES.items() if head.startswith(mark)), None)


def find_other_content(start: bytes, suffix: str) -> str | None:
    """Return what a file with the name of a compressed one is; None if it is one, or empty."""
    if not start or start.startswith(COMPRESSED[suffix]):
        return None
    if found := find_content(start):
        return found[0]
    return "something else" if is_foreign(start) else "text"
