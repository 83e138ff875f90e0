"""One row of numbers in a `.npy` file, mapped into memory and checked as it is touched."""

import io
import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertkit.base.checksums import (
    CHUNK_BYTES,
    FileRecord,
    damaged_part,
    verify_head,
    verify_size,
)
from bertkit.base.errors import DamagedFileError, storage_errors
from bertkit.base.files import write_file

MAX_MAPPED_FILES = 256


class MappedArray:
    """A one-dimensional `.npy` file, mapped; each mebibyte is verified when first touched.

    Args:
        path: the file.
        record: what it was when it was written.
        length: numbers that were written.

    Raises:
        MissingFileError: it is gone.
        DamagedFileError: its size is wrong, or the record lacks checksums.
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
        """A stretch of the array, verified; all of it by default."""
        mapped, data_start = _map_array(self)
        stop = len(mapped) if stop is None else stop
        width = mapped.itemsize
        self.verify(data_start + start * width, data_start + stop * width)
        return mapped[start:stop]

    def verify_head(self) -> None:
        """Check the first 4 KiB, by which another file of the same size is known."""
        verify_head(self.path, self._record)

    def verify(self, start_byte: int, stop_byte: int) -> None:
        """Check the mebibytes between two places of the file, unless that was done."""
        first, last = start_byte // CHUNK_BYTES, -(-stop_byte // CHUNK_BYTES)
        if self._is_verified[first:last].all():
            return
        with storage_errors(self.path, "read"), self.path.open("rb") as stream:
            stream.seek(first * CHUNK_BYTES)
            for index in range(first, last):
                if zlib.crc32(stream.read(CHUNK_BYTES)) != self._record.chunk_crc32[index]:
                    raise damaged_part(self.path, index * CHUNK_BYTES, CHUNK_BYTES)
                self._is_verified[index] = True


@lru_cache(maxsize=MAX_MAPPED_FILES)
def _map_array(file: MappedArray) -> tuple[NDArray[np.unsignedinteger], int]:
    """A file's array, and the byte at which it begins; few are mapped at a time.

    A map holds a file descriptor, and there are usually no more than a thousand.
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


def write_array(path: Path, array: NDArray[np.unsignedinteger]) -> FileRecord:
    """Write a `.npy` file durably."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return write_file(path, buffer.getbuffer())
