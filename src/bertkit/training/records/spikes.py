"""Finds losses that stand far above their recent course.

What is reported follows from the losses and earlier reports that the log holds, so a resumed run
reports the same.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any, Self

WINDOW = 100  # losses that the course is told by
FEWEST = 30
NUM_DEVIATIONS = 8.0
LEAST_RISE = 0.1  # of the median, however steady the course was
PAUSE = 50  # steps without another report
NORMAL_DEVIATION = 1.4826  # standard deviation of a normal over its median absolute deviation


@dataclass(frozen=True)
class Spike:
    """A loss far above what it was.

    Attributes:
        loss: of the step.
        expected: the median of the losses before it.
        deviation: their robust standard deviation.
    """

    loss: float
    expected: float
    deviation: float


class SpikeFinder:
    """Follows the loss of a run; a spike lifts the median no more than any other loss does."""

    def __init__(self) -> None:
        self._losses: deque[float] = deque(maxlen=WINDOW)
        self._quiet_until = 0

    @classmethod
    def from_log(cls, rows: Iterable[dict[str, Any]]) -> Self:
        """Take up the course where a log ends."""
        finder = cls()
        for row in rows:
            if row["event"] == "train":
                finder._losses.append(row["loss"])
            elif row["event"] == "spike":
                finder._quiet_until = row["step"] + PAUSE
        return finder

    def see(self, step: int, loss: float) -> Spike | None:
        """Take the next loss in, and say whether it is a spike that is worth a report."""
        spike = self._find(loss) if step > self._quiet_until else None
        self._losses.append(loss)
        if spike is not None:
            self._quiet_until = step + PAUSE
        return spike

    def _find(self, loss: float) -> Spike | None:
        if len(self._losses) < FEWEST:
            return None
        expected = median(self._losses)
        deviation = NORMAL_DEVIATION * median(abs(value - expected) for value in self._losses)
        rise = max(NUM_DEVIATIONS * deviation, LEAST_RISE * abs(expected))
        return Spike(loss, expected, deviation) if loss > expected + rise else None
