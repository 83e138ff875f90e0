"""Finds loss spikes: losses far above the recent ones.

Reports depend only on the losses and earlier reports in the log, so a resumed run reports the
same spikes.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any, Self

WINDOW = 100  # recent losses to compare with
FEWEST = 30
NUM_DEVIATIONS = 8.0
LEAST_RISE = 0.1  # relative to the median, even if the losses hardly vary
PAUSE = 50  # steps after a report without another one
NORMAL_DEVIATION = 1.4826  # standard deviation of a normal over its median absolute deviation


@dataclass(frozen=True)
class Spike:
    """A loss far above the recent ones.

    Attributes:
        loss: the step's loss.
        expected: the median of the losses before it.
        deviation: their robust standard deviation.
    """

    loss: float
    expected: float
    deviation: float


class SpikeFinder:
    """Detects spikes in a run's loss, compared with a moving median, which resists outliers."""

    def __init__(self) -> None:
        self._losses: deque[float] = deque(maxlen=WINDOW)
        self._quiet_until = 0

    @classmethod
    def from_log(cls, rows: Iterable[dict[str, Any]]) -> Self:
        """Restore the state at the end of a log."""
        finder = cls()
        for row in rows:
            if row["event"] == "train":
                finder._losses.append(row["loss"])
            elif row["event"] == "spike":
                finder._quiet_until = row["step"] + PAUSE
        return finder

    def see(self, step: int, loss: float) -> Spike | None:
        """Add the next loss and return a spike if it is one to report, else None."""
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
