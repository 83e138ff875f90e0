"""Opening a table's file: compressed or not, from disk or standard input."""

import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bertkit.base.errors import InputError, storage_errors
from bertkit.data.readers.sources import SAMPLE_BYTES, UTF16_MARKS, is_foreign

DISK_BYTES_AT_ONCE = 1 << 14  # granularity of progress through a compressed file


@contextmanager
def open_packed(path: Path | None) -> Iterator[BinaryIO]:
    """Open a file without decompressing it; None is standard input, which is left open."""
    if path is None:
        yield sys.stdin.buffer
        return
    with storage_errors(path, "read"):
        opened = path.open("rb", buffering=DISK_BYTES_AT_ONCE)
    with opened as stream:
        yield stream


def skip_mark(stream: io.BufferedReader, name: str) -> BinaryIO:
    """Return the stream after its byte order mark; raise an error if it isn't UTF-8 text."""
    start = stream.peek(SAMPLE_BYTES)[:SAMPLE_BYTES]
    if start.startswith(UTF16_MARKS):
        raise InputError(f"{name} is in UTF-16; convert it to UTF-8")
    if is_foreign(start):
        raise InputError(f"{name} isn't text: much of it is NUL or no UTF-8; convert it to UTF-8")
    if start.startswith(codecs.BOM_UTF8):
        stream.read(len(codecs.BOM_UTF8))
    return stream


def check_standard_input(kind: str) -> None:
    """Check that standard input isn't closed, as it is by `<&-`."""
    if sys.stdin is None:
        raise InputError(f"there is no standard input; name a file of {kind}")
