"""What a file was when it was written, so that it can be known again whole or piece by piece.

SHA-256 of the whole is for identity, a CRC-32 for each mebibyte lets a mapped file be checked as it
is first touched, and one of the first 4 KiB tells another file of the same size at little cost.
"""

import hashlib
import zlib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from bertkit.base.errors import DamagedFileError, MissingFileError, storage_errors

CHUNK_BYTES = 1 << 20
HEAD_BYTES = 1 << 12


class FileRecord(BaseModel):
    """What a file was when it was written: enough to know it again.

    Attributes:
        size_bytes: its length.
        sha256: SHA-256 of the whole, in hexadecimal.
        head_crc32: CRC-32 of the first 4 KiB, or of all where there is less.
        chunk_crc32: CRC-32 of each mebibyte, the last one possibly shorter.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    size_bytes: NonNegativeInt
    sha256: str
    head_crc32: NonNegativeInt
    chunk_crc32: list[NonNegativeInt]


class Checksums:
    """Running checksums of bytes that are handed over piece by piece."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._head_crc32 = 0
        self._chunk_crc32: list[int] = []
        self._crc32 = 0
        self._size_bytes = 0

    def update(self, data: bytes | memoryview) -> None:
        """Take the next bytes into account."""
        view = view_bytes(data)
        self._sha256.update(view)
        head = view[: max(HEAD_BYTES - self._size_bytes, 0)]
        self._head_crc32 = zlib.crc32(head, self._head_crc32)
        while view:
            filled = self._size_bytes % CHUNK_BYTES
            part = view[: CHUNK_BYTES - filled]
            self._crc32 = zlib.crc32(part, self._crc32)
            self._size_bytes += len(part)
            view = view[len(part) :]
            if self._size_bytes % CHUNK_BYTES == 0:
                self._chunk_crc32.append(self._crc32)
                self._crc32 = 0

    def record(self) -> FileRecord:
        """The record of all bytes seen so far."""
        unfinished = [self._crc32] if self._size_bytes % CHUNK_BYTES else []
        return FileRecord(
            size_bytes=self._size_bytes,
            sha256=self._sha256.hexdigest(),
            head_crc32=self._head_crc32,
            chunk_crc32=self._chunk_crc32 + unfinished,
        )


def view_bytes(data: bytes | memoryview) -> memoryview:
    """The same memory byte by byte, whatever its items are."""
    view = memoryview(data)
    return view.cast("B") if view.nbytes else memoryview(b"")  # an empty one may have no cast


def record_file(path: Path) -> FileRecord:
    """Read a whole file; the record of what it is now.

    Raises:
        MissingFileError: there is none.
        StorageError: it can't be read.
    """
    checksums = Checksums()
    with storage_errors(path, "read"), path.open("rb") as stream:
        while data := stream.read(CHUNK_BYTES):
            checksums.update(data)
    return checksums.record()


def verify_file(path: Path, record: FileRecord) -> None:
    """Read a whole file and hold it against the record of its writing.

    Raises:
        MissingFileError: it is gone.
        DamagedFileError: its length or a mebibyte of it is not what was written.
        StorageError: it can't be read.
    """
    verify_size(path, record)
    seen = record_file(path)
    pairs = zip(record.chunk_crc32, seen.chunk_crc32, strict=False)
    for index, (expected, found) in enumerate(pairs):
        if expected != found:
            raise damaged_part(path, index * CHUNK_BYTES, CHUNK_BYTES)
    if seen.sha256 != record.sha256:
        raise DamagedFileError(f"{path} was altered: its SHA-256 isn't the recorded one")


def verify_size(path: Path, record: FileRecord) -> None:
    """Hold a file's length against its record; costs nothing.

    Raises:
        MissingFileError: it is gone.
        DamagedFileError: its length is not what was written.
    """
    with storage_errors(path, "read"):
        if not path.is_file():
            raise MissingFileError(f"{path} is missing; it had {record.size_bytes:,} bytes")
        size_bytes = path.stat().st_size
    if size_bytes != record.size_bytes:
        raise DamagedFileError(
            f"{path} has {size_bytes:,} bytes and was written with {record.size_bytes:,};"
            " make it again or restore it"
        )


def verify_head(path: Path, record: FileRecord) -> None:
    """Hold the first 4 KiB of a file against its record.

    Raises:
        DamagedFileError: they are not what was written.
        StorageError: it can't be read.
    """
    with storage_errors(path, "read"), path.open("rb") as stream:
        if zlib.crc32(stream.read(HEAD_BYTES)) != record.head_crc32:
            raise damaged_part(path, 0, HEAD_BYTES)


def damaged_part(path: Path, start_byte: int, num_bytes: int) -> DamagedFileError:
    """The error for a part of a file whose checksum is wrong."""
    return DamagedFileError(
        f"{path} is damaged between bytes {start_byte:,} and {start_byte + num_bytes:,}"
        " (checksum differs); make it again or restore it"
    )
