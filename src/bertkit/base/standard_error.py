"""Writing to standard error: output that can't be written is dropped, and the work continues."""

from contextlib import suppress
from typing import TextIO


class StandardError:
    """A stream wrapper that ignores write errors.

    A pipe's reader may exit, a log's disk may be full, the terminal may be closed. Later lines are
    tried again, since the disk may have space by then.

    Args:
        stream: `sys.stderr`, which is None if standard error is closed.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write text if possible."""
        with suppress(OSError, ValueError):  # ValueError: closed, or the text can't be encoded
            if self._stream is not None:
                self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the buffer if possible."""
        with suppress(OSError, ValueError):
            if self._stream is not None:
                self._stream.flush()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        with suppress(OSError, ValueError):
            return self._stream is not None and self._stream.isatty()
        return False
