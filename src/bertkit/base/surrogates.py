"""Texts of a command line, which may hold bytes that are no text."""

from typing import Any


def replace_surrogates(value: Any) -> Any:
    """A value without what isn't Unicode, as a command line may hold it; that becomes U+FFFD."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="replace")
    if isinstance(value, list | tuple):
        return type(value)(map(replace_surrogates, value))
    if isinstance(value, dict):
        return {key: replace_surrogates(part) for key, part in value.items()}
    return value
