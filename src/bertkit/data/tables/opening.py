"""Opening a table's file: compressed or not, from disk or standard input."""

import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

from bertkit.base.errors import InputError, storage_errors
from bertkit.data.decompression import BUFFER_BYTES, COMPRESSIONS, unpack
from bertkit.data.readers.sources import SAMPLE_BYTES, UTF16_MARKS, is_foreign
from bertkit.data.tables.decoder import RowDecoder

UTF8 = "utf-8"
DISK_BYTES_AT_ONCE = 1 << 14  # granularity of progress through a compressed file


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
        encoding = find_encoding(stream.peek(SAMPLE_BYTES)[:SAMPLE_BYTES], decoder)
        if encoding != UTF8:
            if opened and packed.seekable():
                decoder.position = packed.tell
            stream = io.BufferedReader(_Recoded(stream, encoding, decoder.name))
        start = stream.peek(SAMPLE_BYTES)[:SAMPLE_BYTES]
        if is_foreign(start):
            raise InputError(
                f"{decoder.name} isn't text: much of it is NUL or not UTF-8; name its encoding,"
                " such as --encoding cp1252, or convert it to UTF-8"
            )
        if start.startswith(codecs.BOM_UTF8):
            stream.read(len(codecs.BOM_UTF8))
        yield stream


def find_encoding(start: bytes, decoder: RowDecoder) -> str:
    """Return the encoding from the settings, or from the byte order mark."""
    wanted = decoder.layout.encoding
    if wanted is not None:
        return codecs.lookup(wanted).name
    return "utf-16" if start.startswith(UTF16_MARKS) else UTF8


class _Recoded(io.RawIOBase):
    """A stream in another encoding, as UTF-8."""

    def __init__(self, stream: io.BufferedReader, encoding: str, name: str) -> None:
        self._stream, self._encoding, self._name = stream, encoding, name
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._rest = b""
        self._has_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        while not self._rest and not self._has_ended:
            content = self._stream.read(BUFFER_BYTES)
            self._has_ended = not content
            try:
                text = self._decoder.decode(content, final=self._has_ended)
            except UnicodeError as error:
                raise InputError(
                    f"{self._name} isn't in {self._encoding} ({error}); name another encoding"
                ) from None
            self._rest = text.encode(errors="replace")
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def check_standard_input(kind: str) -> None:
    """Check that standard input isn't closed, as it is by `<&-`."""
    if sys.stdin is None:
        raise InputError(f"there is no standard input; name a file of {kind}")
