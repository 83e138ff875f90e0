"""File checksums, recorded when a file is written and verified when it is read.

The SHA-256 of the whole file identifies it. A CRC-32 of each mebibyte lets a memory-mapped file be
verified chunk by chunk on first access. A CRC-32 of the first 4 KiB cheaply tells files of the same
size apart.
"""

import hashlib
import zlib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from bertkit.base.errors import DamagedFileError, MissingFileError, storage_errors
from bertkit.base.remote import RemoteFile

CHUNK_BYTES = 1 << 20
HEAD_BYTES = 1 << 12


class FileRecord(BaseModel):
    """Size and checksums of a file at the time it was written."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    size_bytes: NonNegativeInt
    sha256: str
    head_crc32: NonNegativeInt  # of the first 4 KiB, or of a shorter file
    chunk_crc32: list[NonNegativeInt]  # of each mebibyte, the last one possibly shorter


class Checksums:
    """Checksums of a stream of bytes, updated piece by piece."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._head_crc32 = 0
        self._chunk_crc32: list[int] = []
        self._crc32 = 0
        self._size_bytes = 0

    def update(self, data: bytes | memoryview) -> None:
        """Add the next bytes."""
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
        """Return the size and checksums of all bytes added so far."""
        unfinished = [self._crc32] if self._size_bytes % CHUNK_BYTES else []
        return FileRecord(
            size_bytes=self._size_bytes,
            sha256=self._sha256.hexdigest(),
            head_crc32=self._head_crc32,
            chunk_crc32=self._chunk_crc32 + unfinished,
        )


def view_bytes(data: bytes | memoryview) -> memoryview:
    """Return a view of the same memory as bytes, whatever its item type is."""
    view = memoryview(data)
    return view.cast("B") if view.nbytes else memoryview(b"")  # an empty view may not support cast


def record_file(path: Path | RemoteFile) -> FileRecord:
    """Read a whole file and return its size and checksums."""
    checksums = Checksums()
    with storage_errors(path, "read"), path.open("rb") as stream:
        while data := stream.read(CHUNK_BYTES):
            checksums.update(data)
    return checksums.record()


def verify_file(path: Path, record: FileRecord) -> None:
    """Read a whole file and compare it with its record."""
    verify_size(path, record)
    seen = record_file(path)
    pairs = zip(record.chunk_crc32, seen.chunk_crc32, strict=False)
    for index, (expected, found) in enumerate(pairs):
        if expected != found:
            raise damaged_part(path, index * CHUNK_BYTES, CHUNK_BYTES)
    if seen.sha256 != record.sha256:
        raise DamagedFileError(f"{path} was altered: its SHA-256 isn't the recorded one")


def verify_size(path: Path, record: FileRecord) -> None:
    """Compare a file's length with its record, without reading the file."""
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
    """Compare the first 4 KiB of a file with its record.

    Raises:
        DamagedFileError: their checksum differs.
    """
    with storage_errors(path, "read"), path.open("rb") as stream:
        if zlib.crc32(stream.read(HEAD_BYTES)) != record.head_crc32:
            raise damaged_part(path, 0, HEAD_BYTES)


def damaged_part(path: Path, start_byte: int, num_bytes: int) -> DamagedFileError:
    """Return the error for a part of a file whose checksum is wrong."""
    return DamagedFileError(
        f"{path} is damaged between bytes {start_byte:,} and {start_byte + num_bytes:,}"
        " (checksum differs); make it again or restore it"
    )
