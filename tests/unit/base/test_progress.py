import io
import sys

import pytest

from bertkit.base import progress
from bertkit.base.progress import show_progress

INTERVAL_SECONDS = progress.LINE_INTERVAL_SECONDS  # before `conftest` changes it


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(progress, "LINE_INTERVAL_SECONDS", INTERVAL_SECONDS)
    times = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: times[0])
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


def test_slow_work_is_told_in_smaller_units(capsys, clock):
    with show_progress("reading", 1_000_000, is_bytes=True) as bar:
        clock[0] += 10
        bar.advance(500_000)
    assert capsys.readouterr().err == "reading: 500 kB, 50.0 kB/s, 10 s left\n"


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
