"""The standard streams of commands, which may break or be closed, and the log.

`main` replaces `sys.stdout` by `StandardOutput`, so that an error of writing ends the command with
one line.
"""

import codecs
import json
import logging
import os
import sys
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from typing import TextIO, cast

from bertkit.base.errors import StorageError
from bertkit.base.progress import Launch, announce

# Flags that lower memory use, most effective first.
FLAGS = (
    "batch-size",
    "tokens-per-batch",
    "max-length",
    "max-source-length",
    "max-tokens",
    "beams",
    "num-answers",
    "workers",
)


def describe_shortage(flags: AbstractSet[str]) -> str:
    """Describe what to do after running out of memory."""
    lower = [f"--{flag}" for flag in FLAGS if flag in flags]
    advice = f"lower {' or '.join(lower)}, or use" if lower else "use shorter texts,"
    return f"out of memory; {advice} a smaller model or a machine with more memory"


ESCAPES = "bertkit.json_escapes"  # our error handler, as `str.encode` knows it


class ReaderGoneError(Exception):
    """The reader of standard output closed it, as in `| head`."""


class StandardOutput:
    r"""Standard output while a command runs.

    Characters that its encoding lacks become JSON escapes, \uXXXX, so that JSON stays valid.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    @property
    def closed(self) -> bool:
        """Whether nothing can be written."""
        return self._stream is None or self._stream.closed

    def write(self, text: str) -> int:
        """Write text."""
        shown = text.encode(self.encoding, ESCAPES).decode(self.encoding)
        with self._errors() as stream:
            stream.write(shown)
        return len(text)

    def flush(self) -> None:
        """Flush the buffer; errors as in `write`."""
        if not self.closed:
            with self._errors() as stream:
                stream.flush()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
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


class _Silence(StandardOutput):
    """Drops what a command prints."""

    def write(self, text: str) -> int:
        """Drop text."""
        return len(text)


@contextmanager
def hold_standard_output() -> Iterator[None]:
    """Send everything that the block prints through `StandardOutput`, and flush it.

    Of several ranks, only the first prints.
    """
    before = sys.stdout
    output = StandardOutput(before) if Launch.read().is_first else _Silence(before)
    sys.stdout = cast("TextIO", output)
    try:
        yield
        output.flush()
    finally:
        sys.stdout = before
        with suppress(StorageError, ReaderGoneError):  # an error of the block takes precedence
            output.flush()


class Announcer(logging.Handler):
    """Announces what the library logs, each line once."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Announce a line that wasn't announced before."""
        line = self.format(record)
        if line not in self._said:
            self._said.add(line)
            announce(line)


@contextmanager
def announced_log() -> Iterator[None]:
    """Announce what the library logs inside the block, such as the precision it computes in."""
    logger, announcer = logging.getLogger("bertkit"), Announcer()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(announcer)
    try:
        yield
    finally:
        logger.removeHandler(announcer)
        logger.setLevel(level)


def settle_standard_error() -> None:
    """Flush standard error; if that fails at the end, Python makes the exit code 120."""
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except (OSError, ValueError):
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Redirect a stream to the null device, with what its buffer holds."""
    with suppress(OSError, ValueError):  # a stream of a host program needn't have a descriptor
        descriptor = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def fill_closed_descriptors() -> None:
    """Open the null device for standard streams that are closed.

    Otherwise the next opened file gets such a descriptor, and C libraries and child processes
    write their output into it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            lowest_free = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(lowest_free, True)


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error(ESCAPES, _escape)
