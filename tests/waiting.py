"""How long tests wait for what comes at once if nothing is wrong, and let compute what is quick.

Computing is measured by the processor's time, which other work on the machine hardly changes.
"""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

TIMEOUT_SECONDS = 300  # only a bug takes as long, on the slowest machine and beside other work
MAX_SECONDS = 15.0  # of computing for a foreign file: what is promised, three times


@contextmanager
def end_when_stuck() -> Iterator[None]:
    """End this process by a signal if the block waits or computes for too long."""
    signal.alarm(TIMEOUT_SECONDS)
    signal.setitimer(signal.ITIMER_PROF, 2 * MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


@contextmanager
def little_computing() -> Iterator[None]:
    """Fail if the block computes for over 5 s; it takes a tenth of that, or with a bug a minute."""
    started = time.process_time()
    yield
    assert time.process_time() - started < 5.0
