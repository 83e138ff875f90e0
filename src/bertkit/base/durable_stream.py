"""An adapter from `DurableFile` to a Python file object, for libraries that write to one."""

import io
from typing import Any

from bertkit.base.files import DurableFile


class DurableStream(io.RawIOBase):
    """A writable stream over a `DurableFile`; the owner opens, finishes or discards the file."""

    def __init__(self, file: DurableFile) -> None:
        self._file = file

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any, /) -> int:
        """Append all of the bytes and return their number.

        Raises:
            StorageError: writing failed.
        """
        view = memoryview(data)
        self._file.write(view)
        return view.nbytes
