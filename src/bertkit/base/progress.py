"""Progress on standard error: a bar with rate and ETA in a terminal, plain lines elsewhere.

Standard output stays machine-readable. Output that can't be written is dropped, and the work
continues. Of the processes that a launcher such as torchrun started, the first one speaks for all.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Self, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


@dataclass(frozen=True)
class Launch:
    """The place of this process; alone if no launcher started several.

    Source: "Environment Variables" of torchrun's documentation.
    """

    rank: int = 0  # among all processes
    num_ranks: int = 1
    local_rank: int = 0  # among those of this machine: the number of its GPU

    @classmethod
    def read(cls) -> Self:
        """Read the environment variables that torchrun sets."""
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        if not {*names, "MASTER_ADDR"} <= os.environ.keys() or os.environ["WORLD_SIZE"] == "1":
            return cls()
        return cls(*(int(os.environ[name]) for name in names))

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and messages for all."""
        return self.rank == 0


class StandardError:
    """A stream wrapper that ignores write errors.

    A pipe's reader may exit, a log's disk may be full, the terminal may be closed. Later lines are
    tried again, since the disk may have space by then. The stream is None if standard error is
    closed.
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


LINE_INTERVAL_SECONDS = 10.0


class ProgressBar:
    """A progress display; this one shows nothing."""

    def advance(self, amount: int) -> None:
        """Add finished work, in the display's unit."""


class _Bar(ProgressBar):
    def __init__(self, progress: "Progress", description: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(description, total=total)

    def advance(self, amount: int) -> None:
        self._progress.advance(self._task, amount)


class _Lines(ProgressBar):
    def __init__(self, description: str, total: int | None, is_bytes: bool) -> None:
        self._description, self._total, self._is_bytes = description, total, is_bytes
        self._done = 0
        self._started = self._last = time.monotonic()

    def advance(self, amount: int) -> None:
        self._done += amount
        now = time.monotonic()
        if now - self._last < LINE_INTERVAL_SECONDS:
            return
        self._last = now
        seconds = now - self._started
        rate = self._done / seconds
        scale, unit = 1.0, ""
        if self._is_bytes:
            scale, unit = (1e6, " MB") if rate >= 1e6 else (1e3, " kB")
        text = f"{self._description}: {self._done / scale:,.0f}{unit}, {rate / scale:,.1f}{unit}/s"
        if self._total and rate:
            left = max(0, self._total - self._done)
            text += f", {estimate_seconds_left(seconds, self._done, left):,.0f} s left"
        announce(text)


def estimate_seconds_left(seconds: float, done: float, left: float) -> float:
    """Estimate the time for the rest of some work from the time that its first part took."""
    return seconds / done * left


def announce(text: str, *, by_first_rank: bool = True) -> None:
    """Write a line to standard error; of several ranks that say the same, only the first does."""
    if by_first_rank and not Launch.read().is_first:
        return
    stream = StandardError(sys.stderr)
    stream.write(f"{text}\n")
    stream.flush()


def open_console() -> "Console":
    """Return a Rich console that draws on standard error."""
    from rich.console import Console

    # Inside another Rich display, `sys.stderr` is a proxy; draw on the stream beneath it.
    stream = StandardError(getattr(sys.stderr, "rich_proxied_file", sys.stderr))
    return Console(file=cast("IO[str]", stream), highlight=False)


_IS_HIDDEN = ContextVar("_IS_HIDDEN", default=False)


@contextmanager
def hidden_progress() -> Iterator[None]:
    """Show no progress in the block, which is a part of work whose progress is shown."""
    before = _IS_HIDDEN.set(True)
    try:
        yield
    finally:
        _IS_HIDDEN.reset(before)


@contextmanager
def show_progress(
    description: str, total: int | None, *, is_bytes: bool = False, is_hidden: bool = False
) -> Iterator[ProgressBar]:
    """Show the progress of some work, with its rate and the time left.

    Args:
        is_hidden: show nothing, because printed results show the progress.
    """
    if is_hidden or _IS_HIDDEN.get() or not Launch.read().is_first:
        yield ProgressBar()
        return
    console = open_console()
    if not console.is_terminal:
        yield _Lines(description, total, is_bytes)
        return
    with draw_bar(console, is_bytes=is_bytes) as progress:
        yield _Bar(progress, description, total)


def draw_bar(console: "Console", *, is_bytes: bool) -> "Progress":
    """Return Rich's display of a bar with a rate and the time left."""
    from rich import progress

    columns: list[progress.ProgressColumn] = (
        [progress.DownloadColumn(), progress.TransferSpeedColumn()]
        if is_bytes
        else [progress.MofNCompleteColumn()]
    )
    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        *columns,
        progress.TimeRemainingColumn(),
        console=console,
        transient=True,
        # Only if both are terminals: otherwise results would go to standard error, with the bar.
        redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
    )
