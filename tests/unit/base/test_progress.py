"""Whatever becomes of standard error, work that tells of itself goes on."""

import errno
import io
import sys
from types import SimpleNamespace

import pytest

from bertkit.base import progress
from bertkit.base.progress import StandardError, announce, open_console, show_progress


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


def test_a_closed_stream_takes_everything():
    stream = io.StringIO()
    stream.close()
    shown = StandardError(stream)
    assert shown.write("a line\n") == 7
    shown.flush()
    assert not shown.isatty()


INTERVAL_SECONDS = progress.LINE_INTERVAL_SECONDS  # before `conftest` changes it


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(progress, "LINE_INTERVAL_SECONDS", INTERVAL_SECONDS)
    times = [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: times[0]))
    return times


def test_without_a_terminal_there_is_a_line_every_ten_seconds(monkeypatch, capsys, clock):
    with show_progress("reading", 50_000_000, is_bytes=True) as bar:
        bar.advance(1_000_000)
        clock[0] += 9.9
        bar.advance(1_000_000)
        assert capsys.readouterr().err == ""
        clock[0] += 0.1
        bar.advance(8_000_000)
        bar.advance(1)
    captured = capsys.readouterr()
    assert captured.err == "reading: 10 MB, 1.0 MB/s, 40 s left\n"
    assert captured.out == ""


def test_an_unknown_total_has_no_time_left(capsys, clock):
    with show_progress("counting", None) as bar:
        clock[0] += 20
        bar.advance(400)
    assert capsys.readouterr().err == "counting: 400, 20.0/s\n"


@pytest.mark.parametrize("is_bytes", [False, True])
@pytest.mark.parametrize("total", [None, 0, 5])
def test_a_terminal_gets_a_bar(monkeypatch, capsys, total, is_bytes):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with show_progress("reading [a/b]", total, is_bytes=is_bytes) as bar:
        bar.advance(7)
    assert "reading [a/b]" in terminal.getvalue()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("is_terminal", [True, False])
def test_results_go_where_they_are_sent_while_a_bar_is_shown(monkeypatch, is_terminal):
    errors, results = Terminal(), Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setattr(sys, "stdout", results)
    with show_progress("reading", 3):
        sys.stdout.write("a result\n")
    assert ("a result" in errors.getvalue()) == is_terminal  # both are the same screen
    assert ("a result" in results.getvalue()) != is_terminal
