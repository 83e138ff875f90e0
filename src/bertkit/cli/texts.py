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
JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}\N{SOFT HYPHEN}"
OPTION = re.compile(r"--[a-z][a-z0-9_-]*(=.*)?", re.DOTALL | re.IGNORECASE)


def refuse_options(_: Any, word: str | None) -> None:
    """Keep a misspelled flag from being taken for a text; a text that may be left out is None.

    Raises:
        SettingsError: the word is two hyphens and a name, and perhaps = and a value.
    """
    if word is not None and OPTION.fullmatch(word):
        raise SettingsError(f"there is no option {word}; see --help")


# Words of a command line that may begin with a hyphen; where many are taken, a bare - stands for
# standard input.
Words = Annotated[str, Parameter(allow_leading_hyphen=True, validator=refuse_options)]


def gather_texts(texts: Sequence[str], file: Path | None) -> Iterator[tuple[str, str]]:
    """All texts that were given, each after its name for messages; empty lines are left out.

    Lines are read when their turn comes, and so are the errors of a file found. What isn't Unicode
    in an argument becomes U+FFFD.

    Raises:
        InputError: there is no text, a line is too long, or one isn't UTF-8.
        MissingFileError: there is no such file.
        StorageError: the file can't be read.
    """
    gathered = _gather(texts, file)
    first = next(gathered, None)
    if first is None:
        raise InputError("there is no text: give it as an argument, with --file, or as -")
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


def is_fed() -> bool:
    """Whether standard input is there, and no person sits before it."""
    return sys.stdin is not None and not sys.stdin.isatty()


def _read_lines(stream: BinaryIO, name: str) -> Iterator[tuple[str, str]]:
    start = 0
    for number in count(1):
        data = stream.readline(LIMIT_BYTES + 1)
        if not data:
            return
        if len(data) > LIMIT_BYTES:
            raise InputError(
                f"line {number} of {name} has more than {LIMIT_BYTES >> 20} MiB; each line is a"
                f" text, and no model reads that much"
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


def printable(text: str) -> str:
    """A text from a foreign file without what would steer the terminal.

    Blanks of any script and what joins or parts letters are text, and stay.
    """
    return "".join(map(_show, text))


def legible(text: str) -> str:
    """The same for lines of our own: ends of lines and tabs stay."""
    return "".join(letter if letter in "\n\t" else _show(letter) for letter in text)


def _show(letter: str) -> str:
    is_text = letter.isprintable() or letter in JOINERS or unicodedata.category(letter) == "Zs"
    return letter if is_text else "\N{REPLACEMENT CHARACTER}"
