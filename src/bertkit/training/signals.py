"""SIGTERM, SIGHUP and Ctrl-C: work that can be resumed stops in order, and says how to go on.

A first signal asks training to stop after the step, a second one stops it at once. Work that has
nothing to save stops where the first one finds it. A terminal that is closed often sends SIGHUP
twice, so a SIGHUP behind another signal is ignored; so is each one under `nohup`.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
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
    """Leaves work that a stop request ends; nothing but its beginning catches it."""


@dataclass
class StopRequest:
    """Set by a signal, read between steps."""

    is_set: bool = False
    interrupts: bool = False

    def run(self, work: Callable[[], Result]) -> Result | None:
        """Do work that changes nothing; None where a stop is asked for before it is done."""
        self.interrupts = True
        try:
            return None if self.is_set else work()
        except _Interruption:
            return None
        finally:
            self.interrupts = False

    def ask(self) -> None:
        """Ask for a stop."""
        self.is_set = True
        if self.interrupts:
            raise _Interruption


@contextmanager
def catch_stop_signals() -> Iterator[StopRequest]:
    """Turn the first signal into a request, and leave the second one to who was there before.

    In a thread other than the main one signals can't be caught, and nothing is.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def ask(number: int, frame: FrameType | None) -> None:
        _put_back(before)
        _ignore_hangups(before)
        request.ask()

    before = _find_handlers()
    with _handled_by(ask, before):
        yield request


@contextmanager
def stop_at_once(describe: Callable[[], str]) -> Iterator[None]:
    """Let a stop signal end the block where it is.

    In a thread other than the main one neither arrives.

    Args:
        describe: says what was reached and how to go on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    try:
        with _interrupted_by(_find_handlers()):
            yield
    except KeyboardInterrupt:
        raise StoppedError(describe()) from None


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the block as a KeyboardInterrupt, whatever a library makes of that.

    In a thread other than the main one it doesn't arrive, and where a host program ignores it or
    has a handler of its own that stays.
    """
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    if not is_main or handler is not signal.default_int_handler:
        yield
        return
    with _interrupted_by({signal.SIGINT: handler}):
        yield


@contextmanager
def _interrupted_by(before: Handlers) -> Iterator[None]:
    """Raise KeyboardInterrupt where a signal comes, and again where something else came of it.

    A library that is interrupted while it is being imported, torch among them, may swallow the
    interruption and fail with an error of its own, half imported.
    """
    has_come = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal has_come
        has_come = True
        _ignore_hangups(before)
        raise KeyboardInterrupt

    try:
        with _handled_by(interrupt, before):
            yield
    except Exception:
        if has_come:
            raise KeyboardInterrupt from None
        raise


@contextmanager
def delay_stop_signals() -> Iterator[None]:
    """Let stop signals be heard when the block is over, and not within it.

    Any thread may be the one that takes a signal, so holding it back from this one isn't enough:
    Python hears it in the main thread all the same.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    try:
        with _handled_by(lambda number, _: arrived.append(number), _find_handlers()):
            yield
    finally:
        for number in arrived[:1]:
            signal.raise_signal(number)


def _find_handlers() -> Handlers:
    """Who hears the signals now, but for those that are left alone.

    A handler that a host program set, not Python, couldn't be put back; its signal stays with it.
    """
    handlers = {each: signal.getsignal(each) for each in STOP_SIGNALS}
    ignored = {each for each in HANGUPS if handlers[each] is signal.SIG_IGN}
    return {
        each: handler
        for each, handler in handlers.items()
        if handler is not None and each not in ignored
    }


@contextmanager
def _handled_by(handler: Callable[..., Any], before: Handlers) -> Iterator[None]:
    """Another handler for the block; a signal may come between any two lines of this."""
    try:
        for each in before:
            signal.signal(each, handler)
        yield
    finally:
        _put_back(before)


def _ignore_hangups(before: Handlers) -> None:
    """Ignore SIGHUP until handlers are put back; a signal of a host program stays with it."""
    for each in filter(before.__contains__, HANGUPS):
        signal.signal(each, signal.SIG_IGN)


def _put_back(handlers: Handlers) -> None:
    for each, handler in handlers.items():
        signal.signal(each, handler)
