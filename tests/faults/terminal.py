"""Where the messages of a real command go: a terminal that is closed, or what can't be written."""

import os
import pty
import select
import signal
import sys

from tests.faults.watch import Errand, Fault, Watch, run_watched

READ_BYTES = 1 << 16
PANEL = b"left"  # a word of it


class TerminalWatch(Watch):
    """Lets the terminal be closed where a signal is due; the system sends that one then.

    Args:
        errand: what to do.
        reached: descriptor to close where the place is reached.
        closed: descriptor whose other end is closed after the terminal.
    """

    def __init__(self, errand: Errand, reached: int, closed: int) -> None:
        super().__init__(errand)
        self._reached, self._closed = reached, closed

    def send(self, number: Fault) -> None:
        assert number is signal.SIGHUP
        os.close(self._reached)
        os.read(self._closed, 1)


def run_in_terminal(errand: Errand) -> None:
    """Run the command in a terminal that is closed where SIGHUP is due, and end as it ends."""
    os.environ["TERM"] = "xterm"
    when_reached, reached = os.pipe()
    when_closed, closed = os.pipe()
    child, terminal = pty.fork()
    if child == 0:
        os.close(when_reached)
        os.close(closed)
        assert sys.stderr.isatty()
        os._exit(run_watched(errand, TerminalWatch(errand, reached, when_closed)))
    os.close(reached)
    os.close(when_closed)
    shown = b""
    while PANEL not in shown:  # it is drawn when training begins, and then now and then
        shown += os.read(terminal, READ_BYTES)
    while when_reached not in (ready := select.select([terminal, when_reached], [], [])[0]):
        assert ready
        shown += os.read(terminal, READ_BYTES)
    errand.messages.write_bytes(shown)
    os.close(terminal)
    os.close(closed)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
