"""SIGTERM and Ctrl-C ask training to stop after the step; a second one stops it at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class StopRequest:
    """Set by a signal, read between steps."""

    is_set: bool = False


@contextmanager
def catch_stop_signals() -> Iterator[StopRequest]:
    """Turn the first signal into a request, and let the second one end the process.

    In a thread other than the main one signals can't be caught, and nothing is.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def ask(number: int, frame: FrameType | None) -> None:
        request.is_set = True
        for each in STOP_SIGNALS:
            signal.signal(each, before[each])

    before = {each: signal.signal(each, ask) for each in STOP_SIGNALS}
    try:
        yield request
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
