"""Functions of the caller that are told of steps and evaluations while a run trains."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

OnEvent = Callable[[int, Mapping[str, float]], object]


@dataclass(frozen=True)
class Observers:
    """What is called while a run trains.

    Attributes:
        on_step: called after each step that was applied, with its number and its metrics.
        on_evaluation: called after each evaluation, with the number of steps so far and the
            held-out metrics.
    """

    on_step: OnEvent | None = None
    on_evaluation: OnEvent | None = None

    def step(self, step: int, values: Mapping[str, float]) -> None:
        """Tell of a step."""
        if self.on_step is not None:
            self.on_step(step, values)

    def evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Tell of an evaluation."""
        if self.on_evaluation is not None:
            self.on_evaluation(step, metrics)


_CURRENT: ContextVar[Observers | None] = ContextVar("observers", default=None)


def current_observers() -> Observers:
    """Return the observers of the block that is running."""
    return _CURRENT.get() or Observers()


@contextmanager
def observe(on_step: OnEvent | None, on_evaluation: OnEvent | None) -> Iterator[None]:
    """Have every run in the block call these functions."""
    token = _CURRENT.set(Observers(on_step, on_evaluation))
    try:
        yield
    finally:
        _CURRENT.reset(token)
