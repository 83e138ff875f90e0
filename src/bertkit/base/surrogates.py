"""Command-line texts, which may hold bytes that aren't valid text."""

from typing import Any


def replace_surrogates(value: Any) -> Any:
    """Replace surrogate escapes (bytes that aren't Unicode) with U+FFFD, in nested values too."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="replace")
    if isinstance(value, list | tuple):
        return type(value)(map(replace_surrogates, value))
    if isinstance(value, dict):
        return {key: replace_surrogates(part) for key, part in value.items()}
    return value
