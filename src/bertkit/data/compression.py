"""Compressed files as streams: gzip, bzip2 and Zstandard, in bounded memory."""

import bz2
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from bertkit.base.errors import BertkitError
from bertkit.base.extras import require_package

BUFFER_BYTES = 1 << 18
# A Zstandard bomb expands each byte to up to 32 KiB, so input is passed in small chunks.
ZSTD_BITE_BYTES = 1 << 10
FAILURES = (EOFError, OSError, zlib.error)


def unpack(
    packed: BinaryIO, suffix: str, count_fault: Callable[[str, str], None]
) -> io.BufferedReader:
    """Return the decompressed content of a file as a stream.

    A suffix that isn't a key of `COMPRESSIONS` means an uncompressed file. If the file can't be
    read any further, `count_fault` is called once with the outcome (a key of `OUTCOMES`) and the
    cause, and the stream ends.
    """
    pieces = COMPRESSIONS.get(suffix, read_plain)
    return stream_pieces(pieces(packed), count_fault)


def stream_pieces(
    pieces: Iterator[bytes],
    count_fault: Callable[[str, str], None] | None = None,
    file: io.FileIO | BinaryIO | None = None,
) -> io.BufferedReader:
    """Return the bytes of an iterator as a stream, which closes their file.

    Errors are those of `unpack`; without `count_fault` they are raised.
    """
    return io.BufferedReader(_Pieces(pieces, count_fault, file), BUFFER_BYTES)


class _Pieces(io.RawIOBase):
    """A file object over an iterator of bytes."""

    def __init__(
        self,
        pieces: Iterator[bytes],
        count_fault: Callable[[str, str], None] | None,
        file: io.FileIO | BinaryIO | None,
    ) -> None:
        self._pieces, self._file = pieces, file
        self._count_fault = count_fault
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        while not self._rest:
            piece = None
            try:
                piece = next(self._pieces, None)
            except BertkitError:  # of a remote file, which isn't damaged
                raise
            except FAILURES as error:
                if self._count_fault is None:
                    raise
                self._count_fault(*classify(error))
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def classify(error: Exception) -> tuple[str, str]:
    """Return the outcome of a read error (a key of `OUTCOMES`), and its cause in a few words."""
    if isinstance(error, EOFError):
        return "truncated", "it ends too early"
    if isinstance(error, OSError) and error.strerror:
        return "unreadable-file", error.strerror
    return "damaged", str(error)


def read_plain(packed: BinaryIO | io.FileIO) -> Iterator[bytes]:
    """Yield the content of an uncompressed file."""
    while data := packed.read(BUFFER_BYTES):
        yield data


def _read_unpacked(file: gzip.GzipFile | bz2.BZ2File) -> Iterator[bytes]:
    with file:
        while data := file.read1(BUFFER_BYTES):
            yield data


def _read_zstd(packed: BinaryIO) -> Iterator[bytes]:
    """Yield the content of all frames; Python's own Zstandard module requires Python 3.14."""
    require_package("zstandard", "a .zst file")
    import zstandard

    unpacker = zstandard.ZstdDecompressor()
    frame = None
    while bite := packed.read(ZSTD_BITE_BYTES):
        while bite:
            frame = frame or unpacker.decompressobj()
            try:
                yield frame.decompress(bite)
            except zstandard.ZstdError as error:
                raise zlib.error(str(error)) from None
            bite, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError


COMPRESSIONS: dict[str, Callable[[BinaryIO], Iterator[bytes]]] = {
    ".gz": lambda packed: _read_unpacked(gzip.GzipFile(fileobj=packed)),
    ".bz2": lambda packed: _read_unpacked(bz2.BZ2File(packed)),
    ".zst": _read_zstd,
}
