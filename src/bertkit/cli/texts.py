"""Texts from the command line: arguments, a file, or standard input."""

import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from cyclopts import Parameter

from bertkit.base.errors import InputError, SettingsError, storage_errors
from bertkit.base.files import BYTE_ORDER_MARK
from bertkit.base.surrogates import replace_surrogates
from bertkit.data.tables.opening import check_standard_input

LIMIT_BYTES = 4 << 20  # of a line
NO_TEXT = "there is no text: give one as an argument, --file, or - for standard input"
JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}\N{SOFT HYPHEN}"
OPTION = re.compile(r"--[a-z][a-z0-9_-]*(=.*)?", re.DOTALL | re.IGNORECASE)


class MisspelledOptionError(SettingsError):
    """A word among texts looks like an option; the message is the word."""


def refuse_options(_: Any, word: str | None) -> None:
    """Refuse a misspelled flag where a text is expected; an omitted text is None.

    Raises:
        MisspelledOptionError: the word is two hyphens and a name, and perhaps = and a value.
    """
    if word is not None and OPTION.fullmatch(word):
        raise MisspelledOptionError(word)


# Arguments that may begin with a hyphen; where several are accepted, a lone - is standard input.
Words = Annotated[str, Parameter(allow_leading_hyphen=True, validator=refuse_options)]


def gather_texts(texts: Sequence[str], file: Path | None) -> Iterator[tuple[str, str]]:
    """Yield all texts, each after its name for messages; empty lines are skipped.

    Lines are read lazily. Bytes of an argument that aren't Unicode become U+FFFD.

    Raises:
        InputError: there is no text, a line is too long, or one isn't UTF-8.
        MissingFileError: there is no such file.
        StorageError: the file can't be read.
    """
    gathered = _gather(texts, file)
    first = next(gathered, None)
    if first is None:
        raise InputError(NO_TEXT)
    return chain([first], gathered)


def _gather(texts: Sequence[str], file: Path | None) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(texts, start=1):
        if text == "-":
            check_standard_input("texts")
            yield from _read_lines(sys.stdin.buffer, "standard input")
        else:
            yield f"text {number}", replace_surrogates(text)
    if file is not None:
        with storage_errors(file, "read"), file.open("rb") as stream:
            yield from _read_lines(stream, str(file))
    if not texts and file is None and is_fed():
        yield from _read_lines(sys.stdin.buffer, "standard input")


def find_source(
    texts: Sequence[str], file: str | None, *, has_other_inputs: bool = False
) -> str | None:
    """Return the file to read, - for standard input; None if texts were given.

    Raises:
        SettingsError: both texts and a file were given.
        InputError: neither was given.
    """
    is_given = bool(texts) or has_other_inputs
    if file is None and (tuple(texts) == ("-",) or (not is_given and is_fed())):
        file, is_given = "-", has_other_inputs
    if file is not None and is_given:
        raise SettingsError("give texts or --file, not both; - alone is standard input")
    if file is None and not is_given:
        raise InputError(NO_TEXT)
    return file


def is_fed() -> bool:
    """Whether standard input is a file or a pipe rather than a terminal."""
    return sys.stdin is not None and not sys.stdin.isatty()


def _read_lines(stream: BinaryIO, name: str) -> Iterator[tuple[str, str]]:
    start = 0
    for number in count(1):
        data = stream.readline(LIMIT_BYTES + 1)
        if not data:
            return
        if len(data) > LIMIT_BYTES:
            raise InputError(
                f"line {number} of {name} has more than {LIMIT_BYTES >> 20} MiB; give one"
                " text per line"
            )
        try:
            line = data.decode("utf-8").removesuffix("\n").rstrip("\r")
            if number == 1:
                line = line.removeprefix(BYTE_ORDER_MARK)
        except UnicodeDecodeError as error:
            raise InputError(f"{name} isn't UTF-8 at byte {start + error.start:,}") from None
        start += len(data)
        if line.strip():
            yield f"line {number} of {name}", line


def find_size(texts: Sequence[str], file: Path | None) -> int | None:
    """Return the total bytes of all texts; None if unknown."""
    return None if file is None or texts or not file.is_file() else file.stat().st_size


def printable(text: str) -> str:
    """Replace control characters of a text, so that it can't control the terminal.

    Spaces of any script, joiners and soft hyphens stay.
    """
    return "".join(map(_show, text))


def shorten(text: str, max_chars: int) -> str:
    """Truncate a text that is longer than `max_chars`."""
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def legible(text: str) -> str:
    """Replace control characters except line feeds and tabs."""
    return "".join(letter if letter in "\n\t" else _show(letter) for letter in text)


def _show(letter: str) -> str:
    is_text = letter.isprintable() or letter in JOINERS or unicodedata.category(letter) == "Zs"
    return letter if is_text else "\N{REPLACEMENT CHARACTER}"
