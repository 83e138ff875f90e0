"""Texts from the command line: arguments, a file, or standard input."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.files import read_text


def refuse_options(_: Any, word: str) -> None:
    """Keep a misspelt flag from being taken for a text.

    Raises:
        SettingsError: the word begins with two hyphens.
    """
    if word.startswith("--"):
        raise SettingsError(f"there is no option {word}; see --help")


# Words of a command line among which a bare - stands for standard input.
Words = Annotated[str, Parameter(allow_leading_hyphen=True, validator=refuse_options)]


def gather_texts(texts: Sequence[str], file: Path | None) -> list[str]:
    """All texts that were given, in order; empty lines of a file or a pipe are passed over.

    Raises:
        InputError: there is none, or standard input isn't UTF-8.
        MissingFileError: there is no such file.
        DamagedFileError: the file isn't UTF-8.
    """
    gathered: list[str] = []
    for text in texts:
        gathered += _read_standard_input() if text == "-" else [text]
    if file is not None:
        gathered += _lines(read_text(file))
    if not texts and file is None and not sys.stdin.isatty():
        gathered += _read_standard_input()
    if not gathered:
        raise InputError("there is no text: give it as an argument, with --file, or as -")
    return gathered


def _read_standard_input() -> list[str]:
    try:
        return _lines(sys.stdin.buffer.read().decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"standard input isn't UTF-8 at byte {error.start:,}") from None


def _lines(content: str) -> list[str]:
    return [line.rstrip("\r") for line in content.split("\n") if line.strip()]
