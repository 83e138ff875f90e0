"""The one way to standard error. What can't be shown there is dropped, and the work goes on."""

from contextlib import suppress
from typing import TextIO


class StandardError:
    """A stream that never fails, whatever becomes of the one below it.

    The reader of a pipe may go away, the disk under a log may be full, the terminal may be closed.
    A later line is tried again, since a disk may have room by then.

    Args:
        stream: `sys.stderr`, which is None where standard error is closed.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Show text if that is possible."""
        with suppress(OSError, ValueError):  # ValueError: closed, or not in its encoding
            if self._stream is not None:
                self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Show what is in the buffer if that is possible."""
        with suppress(OSError, ValueError):
            if self._stream is not None:
                self._stream.flush()

    def isatty(self) -> bool:
        """Whether a person may be watching."""
        with suppress(OSError, ValueError):
            return self._stream is not None and self._stream.isatty()
        return False
