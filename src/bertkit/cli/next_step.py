"""The next command to try: quoted for a shell, with texts of the user's own files."""

import re
import shlex
import textwrap
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count, islice
from pathlib import Path

from bertkit.base.errors import BertkitError
from bertkit.base.progress import announce
from bertkit.base.settings import Settings
from bertkit.reports.text import make_legible

PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)  # words that no shell changes
UNQUOTABLE = set('"$`\\!')  # characters that a shell reads inside double quotes
NUM_TRIED = 100  # rows of a file from which one is chosen
SHORT, MOST = 100, 60  # characters of a row that is shown whole, and of a text that is cut

Arguments = Sequence[tuple[str, str]]  # flags and their values; a word has the flag ""


def describe_next(*words: str | int | Path) -> str:
    """Describe the next command to try, quoted for a shell."""
    quoted = [
        word
        if PLAIN.fullmatch(word)
        else shlex.quote(word)
        if UNQUOTABLE & set(word)
        else f'"{word}"'
        for word in map(str, words)
    ]
    return f"Try: bertkit {' '.join(quoted)}"


def suggest(*words: str | int | Path, json: bool) -> None:
    """Announce the next command to try, unless a program reads the result (`json`)."""
    if not json:
        announce(make_legible(describe_next(*words)))


def repeat_flags(settings: Settings, kind: type[Settings]) -> list[str]:
    """Return the given flags of a kind of settings, for a further command that has them."""
    words = []
    for name in kind.model_fields:
        if name in settings.model_fields_set:
            flag, value = name.replace("_", "-"), getattr(settings, name)
            if isinstance(value, bool):
                words.append(f"--{'' if value else 'no-'}{flag}")
            elif value is not None:
                words += [f"--{flag}", str(value)]
    return words


def read_arguments(
    sources: Iterable[str | Path], read_rows: Callable[[], Iterable[Arguments]]
) -> list[str]:
    """Choose a row of files as `choose_arguments` does; empty if they can't be read once more.

    What isn't a regular file, such as a named pipe, may never end, and a file may be gone by now.
    """
    if not all(Path(source).is_file() for source in sources):
        return []
    with suppress(BertkitError, OSError):
        return choose_arguments(read_rows())
    return []


def choose_arguments(rows: Iterable[Arguments]) -> list[str]:
    """Choose a row as words and flags of a command: a short one, else the shortest, cut.

    Empty if none can be given on a command line: a text is missing, or looks like a flag.
    """
    usable = []
    for row in islice(rows, NUM_TRIED):
        values = [" ".join(value.split()) for _, value in row]
        if all(value and not value.startswith("-") for value in values):
            if sum(map(len, values)) <= SHORT:
                return _join(row, values)
            usable.append((row, values))
    if not usable:
        return []
    row, values = min(usable, key=lambda one: sum(map(len, one[1])))
    return _join(row, [textwrap.shorten(one, MOST, placeholder="") or one[:MOST] for one in values])


def find_free(path: Path) -> Path:
    """Return a path that doesn't exist: the given one, or one with a number after its name."""
    others = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return path if not path.exists() else next(one for one in others if not one.exists())


def _join(row: Arguments, values: Sequence[str]) -> list[str]:
    words = zip((flag for flag, _ in row), values, strict=True)
    return [word for pair in words for word in pair if word]
