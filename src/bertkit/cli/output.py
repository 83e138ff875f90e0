"""Standard output, where results go, and how both standard streams end with the process.

`main` puts `StandardOutput` in the place of `sys.stdout`, so that whatever is printed comes through
it: an error there ends the command in one line.
"""

import codecs
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, cast

from bertkit.base.errors import StorageError

ESCAPES = "bertkit.json_escapes"  # our error handler, as `str.encode` knows it


class ReaderGoneError(Exception):
    """The reader of standard output went away, as in `| head`; nobody wants the rest."""


class StandardOutput:
    r"""Standard output while a command runs.

    Characters that its encoding lacks become the escapes of JSON, \uXXXX, so that JSON stays JSON.

    Args:
        stream: `sys.stdout`, which is None where standard output is closed.

    Attributes:
        encoding: of the stream.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    @property
    def closed(self) -> bool:
        """Whether nothing can be written."""
        return self._stream is None or self._stream.closed

    def write(self, text: str) -> int:
        """Write text.

        Raises:
            StorageError: it can't be written.
            ReaderGoneError: nobody reads it.
        """
        shown = text.encode(self.encoding, ESCAPES).decode(self.encoding)
        with self._errors() as stream:
            stream.write(shown)
        return len(text)

    def flush(self) -> None:
        """Write what is in the buffer; errors as in `write`."""
        if not self.closed:
            with self._errors() as stream:
                stream.flush()

    def isatty(self) -> bool:
        """Whether a person may be watching."""
        return self._stream is not None and not self.closed and self._stream.isatty()

    @contextmanager
    def _errors(self) -> Iterator[TextIO]:
        if self._stream is None or self._stream.closed:
            raise StorageError("standard output can't be written: it is closed")
        try:
            yield self._stream
        except BrokenPipeError:
            discard(self._stream)
            raise ReaderGoneError from None
        except OSError as error:
            discard(self._stream)
            raise StorageError(
                f"standard output can't be written: {error.strerror or error}"
            ) from None


@contextmanager
def hold_standard_output() -> Iterator[None]:
    """Let everything that the block prints go through `StandardOutput`, and write all of it.

    Raises:
        StorageError: it can't be written.
        ReaderGoneError: nobody reads it.
    """
    before = sys.stdout
    output = StandardOutput(before)
    sys.stdout = cast("TextIO", output)
    try:
        yield
        output.flush()
    finally:
        sys.stdout = before
        with suppress(StorageError, ReaderGoneError):  # an error of the block goes first
            output.flush()


def check_standard_output() -> None:
    """Refuse a closed standard output before work whose result goes there and nowhere else.

    Raises:
        StorageError: it is closed.
    """
    if sys.stdout is None or sys.stdout.closed:
        raise StorageError("standard output is closed; redirect it to a file")


def settle_standard_error() -> None:
    """Write what is in the buffer of standard error, or throw it away.

    Python would try again when the process ends, and make the exit code 120.
    """
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except (OSError, ValueError):
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Let what is in a stream's buffer, and all that is written from now on, go nowhere."""
    with suppress(OSError, ValueError):  # a stream of a host program needn't have a descriptor
        descriptor = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def fill_closed_descriptors() -> None:
    """Take the places of standard streams that are closed.

    Else the next file that is opened gets such a place, and with it what C libraries and child
    processes write to standard output and standard error.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest free one


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error(ESCAPES, _escape)
