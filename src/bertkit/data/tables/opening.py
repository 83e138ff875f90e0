"""Opening a table's file: compressed or not, from disk or standard input."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

from bertkit.base.errors import InputError, storage_errors
from bertkit.data.decompression import COMPRESSIONS, unpack
from bertkit.data.encodings import (
    ADVICE,
    SAMPLE_BYTES,
    is_binary,
    is_foreign,
    open_text,
    refuse_encoding,
)
from bertkit.data.tables.decoder import RowDecoder

DISK_BYTES_AT_ONCE = 1 << 14  # granularity of progress through a compressed file


class NotTextError(InputError):
    """A file has no text, such as a picture."""


@contextmanager
def open_content(path: Path | None, decoder: RowDecoder) -> Iterator[BinaryIO]:
    """Open the decompressed text after its byte order mark; None is standard input."""
    with storage_errors(path, "read") if path else nullcontext():
        opened = path.open("rb", buffering=DISK_BYTES_AT_ONCE) if path else None
    with opened or nullcontext(sys.stdin.buffer) as packed:  # standard input is left open
        suffix = path.suffix.lower() if path else ""
        if opened and suffix in COMPRESSIONS and packed.seekable():
            decoder.position = packed.tell
        stream = unpack(packed, suffix, decoder.refuse_rest)
        text = open_text(stream, decoder.layout.encoding, decoder.refuse_encoding)
        if opened and text is not stream and packed.seekable():  # recoded
            decoder.position = packed.tell
        if is_foreign(start := text.peek(SAMPLE_BYTES)[:SAMPLE_BYTES]):
            if not is_binary(start):
                refuse_encoding(decoder.name)
            raise NotTextError(
                f"{decoder.name} isn't text: much of it is NUL or not UTF-8; {ADVICE}"
            )
        yield text


def check_standard_input(kind: str) -> None:
    """Check that standard input isn't closed, as it is by `<&-`."""
    if sys.stdin is None:
        raise InputError(f"there is no standard input; name a file of {kind}")
