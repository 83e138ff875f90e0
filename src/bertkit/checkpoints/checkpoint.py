"""The common form of every checkpoint format: a config dict and lazily read tensors.

Tensors have the names of Hugging Face's `BertForPreTraining` and related classes
(`bert.encoder.layer.0.…`); each format has its own table that maps its names to these.

Weight files are memory-mapped: pages are read on first use and are private to this process.
Writing to a tensor over the mapping never changes the file. If another program changes the file
in place, the change is visible, and the system ends a process whose file was cut off; bertkit's own
writers replace files and leave the old bytes alone. Whoever uses a model for long copies the files.
"""

import math
import mmap
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from bertkit.base.errors import DamagedFileError, MissingFileError, UnsafeFileError, storage_errors
from bertkit.checkpoints.elements import Array, ElementType, widen

# Files often found in place of weights, by their first bytes.
STRANGERS = {
    b"version https://git-lfs": "it is a pointer of git-lfs; `git lfs pull` fetches the file",
    b"<!DOCTYPE": "it is a web page",
    b"<!doctype": "it is a web page",
    b"{": "it is JSON",
    b"<html": "it is a web page",
    b"PK\x03\x04": "it begins like a zip archive, as pytorch_model.bin does",
    b"\x80": "it begins like a pickle, as an old pytorch_model.bin does",
    b"\x89HDF": "it is an HDF5 file, of Keras",
}

MAX_TENSORS = 20_000  # BERT-Large has 400
MAX_DIMENSIONS = 8
ROWS_AT_A_TIME = 16  # of a matrix that is transposed
MAX_EMPTY_ELEMENTS = 1 << 40  # limit for empty tensors, counting sizes of 0 as 1


@dataclass(frozen=True)
class LazyTensor:
    """A tensor that is still on disk; its header was read and validated.

    Attributes:
        read_stored: returns the elements as they are stored, contiguous; it may be a view of the
            file.
        release: frees the memory of a view, which is read from the file again when next used; the
            view must not have been written to.
    """

    shape: tuple[int, ...]
    dtype: ElementType
    read_stored: Callable[[], Array]
    release: Callable[[], None] = lambda: None

    def read(self) -> Array:
        """Return the numbers, bfloat16 as float32; of other types, it may be a view of the file."""
        return widen(self.read_stored(), self.dtype)

    def read_float32(self) -> NDArray[np.float32]:
        """Return the numbers as float32; those that it can't hold are infinite."""
        with np.errstate(over="ignore", invalid="ignore"):  # the latter of a signaling NaN
            return self.read().astype(np.float32, copy=False)

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def transposed(self) -> "LazyTensor":
        """Return the transposed matrix."""
        read = self.read_stored
        return replace(self, shape=self.shape[::-1], read_stored=lambda: transpose(read()))

    def reshaped(self, shape: tuple[int, ...]) -> "LazyTensor":
        """Return the tensor in another shape of as many elements."""
        read = self.read_stored
        return replace(self, shape=shape, read_stored=lambda: read().reshape(shape))


def transpose(matrix: Array) -> Array:
    """Return the transposed matrix, contiguous.

    A few rows at a time, which fill whole cache lines, take a third of the time of all at once.
    """
    turned = np.empty(matrix.shape[::-1], matrix.dtype)
    for start in range(0, len(matrix), ROWS_AT_A_TIME):
        rows = slice(start, start + ROWS_AT_A_TIME)
        turned[:, rows] = matrix[rows].T
    return turned


@dataclass(frozen=True)
class Checkpoint:
    """A model read from a folder, independent of any model class."""

    format: str  # a key of `FORMATS`
    folder: Path
    config: dict[
        str, JsonValue
    ]  # the content of `config.json`, or its equivalent with the same keys
    # by current Hugging Face name, always with the `bert.` prefix
    tensors: Mapping[str, LazyTensor]
    files: tuple[Path, ...]  # the config and weight files
    base: Path | None = None  # of an adapter, the folder of the model that it adapts


def release_pages(memory: mmap.mmap, start: int, num_bytes: int) -> None:
    """Free the pages of a mapped file that weren't written to, as far as the system can."""
    begin = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (start + num_bytes) // mmap.PAGESIZE * mmap.PAGESIZE - begin
    if length > 0 and sys.platform == "linux":  # elsewhere madvise is weaker or missing
        memory.madvise(mmap.MADV_DONTNEED, begin, length)


_copies: ContextVar[bool] = ContextVar("_copies", default=False)


@contextmanager
def copied_files() -> Iterator[None]:
    """Copy files that are opened in the block to memory, so that no later change is visible."""
    token = _copies.set(True)
    try:
        yield
    finally:
        _copies.reset(token)


class CopiedMemory(mmap.mmap):
    """Memory whose pages can't be read again."""

    def madvise(self, *_: int) -> None:
        """Keep all pages."""


@dataclass(frozen=True)
class MappedFile:
    """A memory-mapped file of known size."""

    path: Path
    size_bytes: int  # when it was opened
    memory: mmap.mmap  # its bytes, copy-on-write

    @classmethod
    def open(cls, path: Path) -> "MappedFile":
        """Map a file."""
        if not path.is_file():
            raise MissingFileError(f"{path} doesn't exist; a model folder has one")
        with storage_errors(path, "read"), path.open("rb") as stream:
            if not (size := stream.seek(0, os.SEEK_END)):
                raise DamagedFileError(f"{path} is empty; fetch it again")
            if not _copies.get():
                memory = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
            else:
                stream.seek(0)
                memory = CopiedMemory(-1, size)
                if stream.readinto(memory) != size:
                    raise DamagedFileError(f"{path} was cut off while it was read; try again")
        return cls(path, len(memory), memory)

    def read(self, start: int, num_bytes: int) -> bytes:
        """Return a copy of some bytes; the caller has checked that the range is valid."""
        return bytes(self.memory[start : start + num_bytes])

    def tensor(self, start: int, shape: tuple[int, ...], dtype: ElementType) -> LazyTensor:
        """Return a lazy tensor whose elements begin at byte `start`; nothing is read yet."""
        num_elements = math.prod(shape)
        num_bytes = num_elements * dtype.itemsize

        def read() -> Array:
            if not num_elements:
                if math.prod(max(size, 1) for size in shape) > MAX_EMPTY_ELEMENTS:
                    raise UnsafeFileError(f"{self.path} has an empty tensor of sizes beyond use")
                return np.empty(shape, dtype.stored)
            if start % dtype.itemsize:  # unaligned, which some processors don't support
                piece = bytearray(self.memory[start : start + num_bytes])
                return np.frombuffer(piece, dtype.stored).reshape(shape)
            flat = np.frombuffer(self.memory, dtype.stored, count=num_elements, offset=start)
            return flat.reshape(shape)

        return LazyTensor(shape, dtype, read, partial(release_pages, self.memory, start, num_bytes))

    def describe_start(self) -> str:
        """Describe what the file seems to be, from its first bytes."""
        start = self.read(0, min(32, self.size_bytes))
        for beginning, meaning in STRANGERS.items():
            if start.startswith(beginning):
                return meaning
        return f"it begins with {start[:8]!r}"
