"""A durable file as libraries take one that write into a Python file."""

import io
from typing import Any

from bertkit.base.files import DurableFile


class DurableStream(io.RawIOBase):
    """Passes on what is written; opening, finishing and discarding stay with the file's owner."""

    def __init__(self, file: DurableFile) -> None:
        self._file = file

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any, /) -> int:
        """Append bytes, all of them.

        Raises:
            StorageError: writing failed.
        """
        view = memoryview(data)
        self._file.write(view)
        return view.nbytes
