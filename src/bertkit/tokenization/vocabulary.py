"""Vocabularies: lists of entries in the order of their ids, from untrusted files."""

from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

from pydantic import JsonValue

from bertkit.base.errors import InputError
from bertkit.base.files import read_text
from bertkit.tokenization.names import OF_BERT
from bertkit.tokenization.settings import MAX_ENTRIES

# In memory a character may take four bytes, twice: in the text and in what is parsed from it.
MAX_FILE_BYTES = 32 << 20  # a vocabulary of 500,000 entries has 15 million
MAX_ENTRY_CHARS = 1000


def check_entries(
    vocabulary: Sequence[str], source: str, *, are_lines: bool = True
) -> dict[str, int]:
    """Reject invalid entries, which `source` names in the message; return the id of each.

    Those that `are_lines` of a file have no line end in them.
    """
    check_size(len(vocabulary), source)
    ids = {token: index for index, token in enumerate(vocabulary)}
    if len(ids) == len(vocabulary) and _are_fine(vocabulary, are_lines=are_lines):
        return ids
    seen: dict[str, int] = {}
    for index, token in enumerate(vocabulary):
        if problem := _entry_problem(token, is_line=are_lines):
            raise InputError(f"{source}: entry {index} is {problem}")
        if token in seen:
            raise InputError(
                f"{source} has {token!r} twice, as entries {seen[token]} and {index}; remove one"
            )
        seen[token] = index
    return ids


def check_vocabulary(vocabulary: Sequence[str], source: str) -> None:
    """Reject what isn't a vocabulary of BERT; `source` names it in the message."""
    if not vocabulary:
        raise InputError(f"{source} is empty; expected one entry per line, [PAD] first")
    seen = check_entries(vocabulary, source)
    missing = [token for token in OF_BERT if token not in seen]
    if missing:
        raise InputError(f"{source} lacks {', '.join(missing)}; is it a BERT vocabulary?")
    if (pad := OF_BERT.pad) != vocabulary[0]:
        raise InputError(
            f"{source} begins with {vocabulary[0]!r} and has {pad} as entry {seen[pad]};"
            f" {pad} must be entry 0"
        )


def check_size(num_entries: int, source: str) -> None:
    """Reject more entries than any vocabulary has, before they take memory."""
    if num_entries > MAX_ENTRIES:
        raise InputError(
            f"{source} has {num_entries:,} entries; at most {MAX_ENTRIES:,} are allowed"
        )


def read_lines(path: Path) -> list[str]:
    """Read the entries of a `vocab.txt`, one per line."""
    # Not splitlines: entries may be characters that it treats as line ends.
    text = read_text(path, limit_bytes=MAX_FILE_BYTES)
    check_size(text.count("\n"), str(path))
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read_vocabulary(path: Path) -> list[str]:
    """Read the entries of a `vocab.txt` of BERT."""
    vocabulary = read_lines(path)
    check_vocabulary(vocabulary, str(path))
    return vocabulary


def order_entries(listed: JsonValue, source: str) -> list[str]:
    """Return the entries of a table from entry to id, in the order of their ids."""
    entries = listed if isinstance(listed, dict) else {}
    pairs = [(index, token) for token, index in entries.items() if type(index) is int]
    if not isinstance(listed, dict) or len(pairs) < len(listed):
        raise InputError(f"{source}: model.vocab must map each entry to its id")
    pairs.sort(key=itemgetter(0))
    vocabulary, ids = [token for _, token in pairs], [index for index, _ in pairs]
    if ids[:1] != [0] or any(after != before + 1 for before, after in pairwise(ids)):
        raise InputError(f"{source}: the ids of model.vocab must be 0, 1, 2 … without a gap")
    return vocabulary


def _are_fine(vocabulary: Sequence[str], *, are_lines: bool) -> bool:
    """Whether no entry has a problem; a large vocabulary takes half a second entry by entry."""
    text = "".join(vocabulary)
    has_line_end = are_lines and not {"\n", "\r"}.isdisjoint(text)
    sizes = [*map(len, vocabulary)] or [1]
    if has_line_end or min(sizes) == 0 or max(sizes) > MAX_ENTRY_CHARS:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _entry_problem(token: str, *, is_line: bool) -> str | None:
    if not token:
        return "empty"
    if len(token) > MAX_ENTRY_CHARS:
        return f"{len(token):,} characters long; at most {MAX_ENTRY_CHARS:,} are allowed"
    if is_line and ("\n" in token or "\r" in token):
        return f"{token!r}, which contains a line end"
    if not token.isascii() and token != token.encode("utf-8", "ignore").decode():
        return f"{token!r}, which contains half a character"
    return None
