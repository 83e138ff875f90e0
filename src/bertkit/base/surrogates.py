"""Texts of a command line, which may hold bytes that are no text."""

from typing import Any


def mend(value: Any) -> Any:
    """A value without what isn't Unicode, as a command line may hold it; that becomes U+FFFD."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="replace")
    if isinstance(value, list | tuple):
        return type(value)(map(mend, value))
    if isinstance(value, dict):
        return {key: mend(part) for key, part in value.items()}
    return value
