"""Handling of SIGTERM, SIGHUP and Ctrl-C: resumable work stops cleanly and says how to resume.

The first signal asks training to stop after the current step, the second one stops it at once.
Work that has nothing to save stops at the first one. A terminal that closes often sends SIGHUP
twice, so a SIGHUP after another signal is ignored, as is any SIGHUP under `nohup`.
"""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeVar

from bertkit.base.errors import StoppedError

HANGUPS = (signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()  # Windows has none
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, *HANGUPS)

Handlers = Mapping[signal.Signals, Any]
Result = TypeVar("Result")


class _Interruption(BaseException):
    """Raised inside interruptible work on a stop request; only `StopRequest.run` catches it."""


@dataclass
class StopRequest:
    """A request to stop, set by a signal and checked between steps."""

    is_set: bool = False
    interrupts: bool = False

    def run(self, work: Callable[[], Result]) -> Result | None:
        """Run work without side effects; return None if a stop is requested before it is done."""
        self.interrupts = True
        try:
            return None if self.is_set else work()
        except _Interruption:
            return None
        finally:
            self.interrupts = False

    def ask(self) -> None:
        """Request a stop."""
        self.is_set = True
        if self.interrupts:
            raise _Interruption


@contextmanager
def catch_stop_signals() -> Iterator[StopRequest]:
    """Turn the first signal into a stop request; the second one goes to the previous handlers.

    Outside the main thread signals can't be caught, so nothing happens.
    """
    request, before = StopRequest(), find_handlers()

    def ask(number: int, frame: FrameType | None) -> None:
        _put_back(before)
        _ignore_hangups(before)
        request.ask()

    with handled_by(dict.fromkeys(before, ask), before):
        yield request


@contextmanager
def stop_at_once(describe: Callable[[], str]) -> Iterator[None]:
    """End the block with a `StoppedError` as soon as a stop signal arrives.

    Outside the main thread this does nothing. `describe` returns the message: what is done, and how
    to resume.
    """
    try:
        with _interrupted_by(find_handlers()):
            yield
    except KeyboardInterrupt:
        raise StoppedError(describe()) from None


@contextmanager
def interruptible() -> Iterator[None]:
    """Ensure that Ctrl-C ends the block with KeyboardInterrupt, even if a library swallows it.

    Outside the main thread, or if a host program ignores SIGINT or handles it itself, this does
    nothing.
    """
    before = find_handlers([signal.SIGINT])
    is_usual = before.get(signal.SIGINT) is signal.default_int_handler
    with _interrupted_by(before if is_usual else {}):
        yield


@contextmanager
def _interrupted_by(before: Handlers) -> Iterator[None]:
    """Raise KeyboardInterrupt on a signal, and again if the block then raises another exception.

    A library such as torch that is interrupted during its import may swallow the interrupt and
    fail with an error of its own, half imported.
    """
    has_come = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal has_come
        has_come = True
        _ignore_hangups(before)
        raise KeyboardInterrupt

    try:
        with handled_by(dict.fromkeys(before, interrupt), before):
            yield
    except Exception:
        if has_come:
            raise KeyboardInterrupt from None
        raise


@contextmanager
def delay_stop_signals() -> Iterator[None]:
    """Delay stop signals until the block is over.

    Masking them in this thread isn't enough: another thread may receive the signal, and Python
    then runs the handler in the main thread anyway.
    """
    arrived: list[int] = []
    before = find_handlers()
    try:
        with handled_by(dict.fromkeys(before, lambda number, _: arrived.append(number)), before):
            yield
    finally:
        for number in arrived[:1]:
            signal.raise_signal(number)


def find_handlers(numbers: Iterable[signal.Signals] = STOP_SIGNALS) -> Handlers:
    """Return the current handlers of the signals that may be replaced, in the main thread.

    A handler that wasn't installed from Python couldn't be restored, so its signal is left out;
    so is an ignored SIGHUP. Outside the main thread signals can't be caught.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    handlers = {each: signal.getsignal(each) for each in numbers}
    return {
        each: handler
        for each, handler in handlers.items()
        if handler is not None and not (each in HANGUPS and handler is signal.SIG_IGN)
    }


@contextmanager
def handled_by(handlers: Handlers, before: Handlers) -> Iterator[None]:
    """Replace the handlers of `before` for the block; a signal may arrive between any two lines."""
    try:
        for each in before:
            signal.signal(each, handlers[each])
        yield
    finally:
        _put_back(before)


def _ignore_hangups(before: Handlers) -> None:
    """Ignore SIGHUP until handlers are restored, unless a host program's handler owns it."""
    for each in filter(before.__contains__, HANGUPS):
        signal.signal(each, signal.SIG_IGN)


def _put_back(handlers: Handlers) -> None:
    for each, handler in handlers.items():
        signal.signal(each, handler)
