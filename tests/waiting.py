"""How long tests wait for what comes at once if nothing is wrong, and let compute what is quick.

Computing is measured by the processor's time, and compared with that of a loop, so that a slow
machine, or one that shares its cores with other work, has as much longer.
"""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

TIMEOUT_SECONDS = 300  # only a bug takes as long, on the slowest machine and beside other work
NUM_LOOPS, LOOP_SECONDS = 1_000_000, 0.02
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
    before, started = measure_slowness(), time.process_time()
    yield
    seconds = time.process_time() - started
    assert seconds < 5.0 * max(before, measure_slowness())


def measure_slowness() -> float:
    """How many times as long as usual a loop takes here and now, at least 1."""
    started = time.process_time()
    for _ in range(NUM_LOOPS):
        pass
    return max(1.0, (time.process_time() - started) / LOOP_SECONDS)
