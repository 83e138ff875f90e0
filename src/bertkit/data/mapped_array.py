"""Memory-mapped NumPy files that are verified as they are read."""

import zlib
from functools import lru_cache
from mmap import mmap
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertkit.base.checksums import CHUNK_BYTES, FileRecord, damaged_part, verify_head, verify_size
from bertkit.base.errors import DamagedFileError, storage_errors

MAX_MAPPED_FILES = 256


class MappedArray:
    """A mapped one-dimensional `.npy` file; each MiB is verified when it is first read.

    A `DamagedFileError` says that its size is wrong, or that the record lacks checksums.
    """

    def __init__(self, path: Path, record: FileRecord, length: int) -> None:
        verify_size(path, record)
        num_chunks = -(-record.size_bytes // CHUNK_BYTES)
        if len(record.chunk_crc32) != num_chunks:
            raise DamagedFileError(
                f"the record of {path} has {len(record.chunk_crc32)} checksums and should have"
                f" {num_chunks}; restore the manifest"
            )
        self.path = path
        self.length = length
        self._record = record
        self._is_verified = np.zeros(len(record.chunk_crc32), dtype=np.bool_)

    def read(self, start: int = 0, stop: int | None = None) -> NDArray[np.unsignedinteger]:
        """Return a verified slice of the array, by default all of it."""
        mapped, data_start = _map_array(self)
        stop = len(mapped) if stop is None else stop
        width = mapped.itemsize
        self.verify(data_start + start * width, data_start + stop * width)
        return mapped[start:stop]

    def verify_head(self) -> None:
        """Verify the first 4 KiB, which detects a different file of the same size."""
        verify_head(self.path, self._record)

    def verify(self, start_byte: int, stop_byte: int, mapped: mmap | None = None) -> None:
        """Verify the chunks of 1 MiB in a byte range, unless they already were.

        They are read from the file, or from its mapping, which several threads may share.
        """
        first, last = start_byte // CHUNK_BYTES, -(-stop_byte // CHUNK_BYTES)
        if self._is_verified[first:last].all():
            return
        if mapped is not None:
            for index in range(first, last):
                self._verify_chunk(index, mapped[index * CHUNK_BYTES : (index + 1) * CHUNK_BYTES])
            return
        with storage_errors(self.path, "read"), self.path.open("rb") as stream:
            stream.seek(first * CHUNK_BYTES)
            for index in range(first, last):
                self._verify_chunk(index, stream.read(CHUNK_BYTES))

    def _verify_chunk(self, index: int, content: bytes) -> None:
        if zlib.crc32(content) != self._record.chunk_crc32[index]:
            raise damaged_part(self.path, index * CHUNK_BYTES, CHUNK_BYTES)
        self._is_verified[index] = True


@lru_cache(maxsize=MAX_MAPPED_FILES)
def _map_array(file: MappedArray) -> tuple[NDArray[np.unsignedinteger], int]:
    """Return a file's array, and the byte at which its data begins; caches a limited number.

    Each mapping holds a file descriptor, and processes are usually limited to about a thousand.
    """
    file.verify_head()
    try:
        mapped = np.load(file.path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DamagedFileError(f"{file.path} isn't a NumPy file: {error}") from None
    if mapped.ndim != 1 or mapped.dtype.kind != "u":
        raise DamagedFileError(f"{file.path} must hold one row of unsigned numbers")
    if len(mapped) != file.length:
        raise DamagedFileError(
            f"{file.path} holds {len(mapped):,} numbers and should hold {file.length:,}; restore it"
            " or the manifest"
        )
    return mapped.view(np.ndarray), mapped.offset
