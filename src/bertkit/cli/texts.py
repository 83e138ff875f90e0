"""Texts from the command line: arguments, a file, or standard input."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from cyclopts import Parameter

from bertkit.base.errors import InputError, SettingsError, storage_errors

LIMIT_BYTES = 64 << 20
OPTION = re.compile(r"--[a-z][a-z0-9_-]*(=.*)?", re.DOTALL | re.IGNORECASE)


def refuse_options(_: Any, word: str) -> None:
    """Keep a misspelt flag from being taken for a text.

    Raises:
        SettingsError: the word is two hyphens and a name, and perhaps = and a value.
    """
    if OPTION.fullmatch(word):
        raise SettingsError(f"there is no option {word}; see --help")


# Words of a command line that may begin with a hyphen; where many are taken, a bare - stands for
# standard input.
Words = Annotated[str, Parameter(allow_leading_hyphen=True, validator=refuse_options)]


def gather_texts(texts: Sequence[str], file: Path | None) -> list[tuple[str, str]]:
    """All texts that were given, each after its name for messages; empty lines are left out.

    Raises:
        InputError: there is none, or a file or standard input is too large or isn't UTF-8.
        MissingFileError: there is no such file.
        StorageError: the file can't be read.
    """
    gathered: list[tuple[str, str]] = []
    for number, text in enumerate(texts, start=1):
        gathered += _read_standard_input() if text == "-" else [(f"text {number}", text)]
    if file is not None:
        gathered += _read_file(file)
    if not texts and file is None and not sys.stdin.isatty():
        gathered += _read_standard_input()
    if not gathered:
        raise InputError("there is no text: give it as an argument, with --file, or as -")
    return gathered


def _read_standard_input() -> list[tuple[str, str]]:
    return _read_lines(sys.stdin.buffer, "standard input")


def _read_file(path: Path) -> list[tuple[str, str]]:
    with storage_errors(path, "read"), path.open("rb") as stream:
        return _read_lines(stream, str(path))


def _read_lines(stream: BinaryIO, name: str) -> list[tuple[str, str]]:
    data = stream.read(LIMIT_BYTES + 1)
    if len(data) > LIMIT_BYTES:
        raise InputError(
            f"{name} has more than {LIMIT_BYTES >> 20} MiB of texts, and all are held in memory;"
            " give it in parts"
        )
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} isn't UTF-8 at byte {error.start:,}") from None
    return [
        (f"line {number} of {name}", line.rstrip("\r"))
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]


def printable(text: str) -> str:
    """A text from a foreign file without what would steer the terminal."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
