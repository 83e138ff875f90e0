"""The history of a run from its log, and its loss spikes: losses far above the recent ones.

Spikes depend only on the losses and earlier spikes in the log, so a resumed run reports the same
ones.
"""

import math
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Self

from pydantic import JsonValue

from bertkit.training.log import LogRow

WINDOW = 100  # recent losses to compare with
FEWEST = 30
NUM_DEVIATIONS = 8.0
LEAST_RISE = 0.1  # relative to the median, even if the losses hardly vary
PAUSE = 50  # steps after a report without another one
NORMAL_DEVIATION = 1.4826  # standard deviation of a normal over its median absolute deviation


@dataclass(frozen=True)
class Spike:
    """A loss far above the recent ones."""

    loss: float
    expected: float  # the median of the losses before it
    deviation: float  # their robust standard deviation


class SpikeFinder:
    """Detects spikes in a run's loss, compared with a moving median, which resists outliers."""

    def __init__(self) -> None:
        self._losses: deque[float] = deque(maxlen=WINDOW)
        self._quiet_until = 0

    @classmethod
    def from_log(cls, rows: Iterable[LogRow]) -> Self:
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


MAX_COLUMNS = 64  # per event, because a log may come from an untrusted source
MAX_INCIDENTS = 200
FEWEST_AVERAGED = 5
LARGEST = 1e150  # larger numbers can't be plotted

Point = tuple[float, float]


class Columns:
    """Columns of numbers by name, with one number per row; NaN where a row has none."""

    def __init__(self) -> None:
        self.num_rows = 0
        self._values: dict[str, array[float]] = {}

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self._values)

    def add(self, row: LogRow) -> None:
        """Add a row's numbers; other values are ignored."""
        for name, value in row.items():
            number = _read_number(value)
            if number is None or (name not in self._values and len(self._values) == MAX_COLUMNS):
                continue
            if name not in self._values:
                self._values[name] = array("d", [math.nan]) * self.num_rows
            self._values[name].append(number)
        self.num_rows += 1
        for column in self._values.values():
            if len(column) < self.num_rows:
                column.append(math.nan)

    def __getitem__(self, name: str) -> Sequence[float]:
        """Return a column, in row order; empty if there is no such column."""
        return self._values.get(name, ())

    def points(self, across: str, name: str) -> list[Point]:
        """Return the points (`across`, `name`) of the rows that have both numbers."""
        pairs = zip(self[across], self[name], strict=False)  # equally long, or one is empty
        return [(x, y) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]

    def last(self, name: str) -> float | None:
        """Return the last number in a column; None if there is none."""
        return next((value for value in reversed(self[name]) if math.isfinite(value)), None)


@dataclass
class TrainingHistory:
    """The contents of a run's log, in compact columns so that a long run fits in memory.

    Attributes:
        held_out: metrics of the evaluations; `elapsed_seconds` is that of the step before.
        incidents: the first rows of all other events: `spike` and `not-finite`.
    """

    num_steps: int = 0
    train: Columns = field(default_factory=Columns)
    held_out: Columns = field(default_factory=Columns)
    incidents: list[LogRow] = field(default_factory=list)
    num_incidents: Counter[str] = field(default_factory=Counter)
    has_ended_early: bool = False

    @classmethod
    def from_rows(cls, rows: Iterable[LogRow]) -> Self:
        """Build the history from a log's rows, such as `read_log` yields."""
        history, elapsed_seconds = cls(), 0.0
        for row in rows:
            history.num_steps = max(history.num_steps, int(_read_number(row["step"]) or 0))
            if row["event"] == "train":
                history.train.add(row)
                elapsed_seconds = row.get("elapsed_seconds", elapsed_seconds)
            elif row["event"] == "eval":
                history.held_out.add({"elapsed_seconds": elapsed_seconds, **row})
            elif row["event"] == "ended-early":
                history.has_ended_early = True
            else:
                history.num_incidents[row["event"]] += 1
                if len(history.incidents) < MAX_INCIDENTS:
                    history.incidents.append(row)
        return history

    @property
    def is_empty(self) -> bool:
        """Whether nothing was logged yet."""
        return not (self.train.num_rows or self.held_out.num_rows or self.num_incidents)


def average(points: Sequence[Point], num_points: int = 100) -> list[Point]:
    """Return about `num_points` means of consecutive points, each at the last x of its group.

    A group has `FEWEST_AVERAGED` points or more, except at the beginning, so that no point is the
    value of one batch: the last one of an epoch may hold a single example. Groups may overlap.
    """
    step = max(1, -(-len(points) // num_points))
    size = max(step, FEWEST_AVERAGED)
    ends = [*range(step, len(points), step), len(points)] if points else []
    groups = [points[max(0, end - size) : end] for end in ends]
    return [(group[-1][0], sum(y for _, y in group) / len(group)) for group in groups]


def _read_number(value: JsonValue) -> float | None:
    """Return a number that can be plotted, NaN for null (not finite), None for anything else."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > LARGEST:
        return None
    return float(value)
