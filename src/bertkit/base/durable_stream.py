"""A durable file as libraries take one that write into a Python file."""

import io
from typing import Any

from bertkit.base.files import DurableFile


class DurableStream(io.RawIOBase):
    """Passes on what is written; opening, finishing and discarding stay with the file's owner."""

    def __init__(self, file: DurableFile) -> None:
        self._file = file
        self._num_bytes = 0

    def writable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Bytes so far."""
        return self._num_bytes

    def write(self, data: Any, /) -> int:
        """Append bytes, all of them.

        Raises:
            StorageError: the disk refused.
        """
        view = memoryview(data)
        self._file.write(view)
        self._num_bytes += view.nbytes
        return view.nbytes
