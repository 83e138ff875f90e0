"""Batches of the next step, made in a thread while a GPU computes.

On a CPU the thread would take its time from the cores that compute.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch


class Lookahead:
    """Calls a function of a step in one thread, one step ahead.

    Everything is called in that thread, so the function needs no lock. An error is raised to the
    caller that asks for the step.
    """

    def __init__(self, thread: ThreadPoolExecutor) -> None:
        self._thread = thread
        self._next: tuple[tuple[int, ...], Future[Any]] | None = None

    def call(self, function: Callable[..., Any], step: int, *others: int) -> Any:
        """Return what the function returns; if this step was expected, begin with the next one."""
        wanted, expected = (step, *others), self._next
        if expected is not None and expected[0] != wanted:  # such as an earlier step, for a message
            return self._thread.submit(function, *wanted).result()
        made = self._thread.submit(function, *wanted) if expected is None else expected[1]
        self._next = None
        result = made.result()
        following = (step + 1, *others)
        self._next = following, self._thread.submit(function, *following)
        return result


@contextmanager
def open_lookahead(device: torch.device) -> Iterator[Lookahead | None]:
    """Yield a lookahead whose thread ends with the block; None where a thread doesn't pay."""
    if device.type == "cpu":
        yield None
        return
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as thread:
        yield Lookahead(thread)
