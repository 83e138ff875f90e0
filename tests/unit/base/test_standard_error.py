"""Whatever becomes of standard error, work that tells of itself goes on."""

import errno
import io
import sys

import pytest

from bertkit.base.progress import announce, open_console, show_progress
from bertkit.base.standard_error import StandardError


class Broken(io.StringIO):
    """A stream of which nothing can be written."""

    def __init__(self, error: Exception, *, is_terminal: bool) -> None:
        super().__init__()
        self._error, self._is_terminal = error, is_terminal

    def write(self, text: str) -> int:
        raise self._error

    def flush(self) -> None:
        raise self._error

    def isatty(self) -> bool:
        return self._is_terminal


ERRORS = [
    BrokenPipeError(errno.EPIPE, "Broken pipe"),
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EIO, "Input/output error"),
    UnicodeEncodeError("ascii", "é", 0, 1, "ordinal not in range(128)"),
]


@pytest.fixture(
    params=[*((error, is_terminal) for error in ERRORS for is_terminal in (0, 1)), None]
)
def broken(request, monkeypatch):
    """Standard error of each kind; None is what `2>&-` leaves."""
    stream = None
    if request.param is not None:
        error, is_terminal = request.param
        stream = Broken(error, is_terminal=bool(is_terminal))
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


@pytest.mark.usefixtures("broken")
def test_lines_bars_and_drawings_never_fail(monkeypatch):
    monkeypatch.setattr("bertkit.base.progress.LINE_INTERVAL_SECONDS", -1.0)
    announce("a line")
    with show_progress("reading", 3) as bar:
        bar.advance(3)
        announce("a line beside a bar")
    open_console().print("a drawing")


@pytest.mark.usefixtures("broken")
def test_a_bar_without_standard_output(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with show_progress("reading", 3) as bar:
        bar.advance(3)


def test_a_closed_stream_takes_everything():
    stream = io.StringIO()
    stream.close()
    shown = StandardError(stream)
    assert shown.write("a line\n") == 7
    shown.flush()
    assert not shown.isatty()
