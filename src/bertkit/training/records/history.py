"""A run's course: the numbers of its log, column by column, from which curves are drawn."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

MAX_COLUMNS = 64  # of an event: a log may come from anyone
MAX_INCIDENTS = 200
LARGEST = 1e150  # beyond it a number can't be drawn

Row = Mapping[str, Any]
Point = tuple[float, float]


class Columns:
    """Numbers by name, one for each row; NaN where a row has none.

    Attributes:
        num_rows: rows that were added.
    """

    def __init__(self) -> None:
        self.num_rows = 0
        self._values: dict[str, array[float]] = {}

    @property
    def names(self) -> list[str]:
        """What there are numbers of."""
        return list(self._values)

    def add(self, row: Row) -> None:
        """Take the numbers of a row in; of other things it may hold, none."""
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
        """All numbers of a name, in the order of the rows; none of a name that isn't there."""
        return self._values.get(name, ())

    def points(self, across: str, name: str) -> list[Point]:
        """The rows that have both numbers, as points of a line."""
        pairs = zip(self[across], self[name], strict=False)  # both whole, or one empty
        return [(x, y) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]

    def last(self, name: str) -> float | None:
        """The newest number of a name; None where there is none."""
        return next((value for value in reversed(self[name]) if math.isfinite(value)), None)


@dataclass
class TrainingHistory:
    """What a log tells, in as little memory as a long run needs.

    Attributes:
        num_steps: steps done, those that weren't applied among them.
        train: of the steps that were applied.
        held_out: of the evaluations; `elapsed_seconds` is that of the step before.
        incidents: the first rows of every other event: `spike` and `not-finite`.
        num_incidents: how many of each such event there are.
        has_ended_early: whether the run did, because nothing had become better for long enough.
    """

    num_steps: int = 0
    train: Columns = field(default_factory=Columns)
    held_out: Columns = field(default_factory=Columns)
    incidents: list[Row] = field(default_factory=list)
    num_incidents: Counter[str] = field(default_factory=Counter)
    has_ended_early: bool = False

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> Self:
        """Read a log, such as `read_log` gives it, row by row."""
        course, elapsed_seconds = cls(), 0.0
        for row in rows:
            course.num_steps = max(course.num_steps, int(_read_number(row["step"]) or 0))
            if row["event"] == "train":
                course.train.add(row)
                elapsed_seconds = row.get("elapsed_seconds", elapsed_seconds)
            elif row["event"] == "eval":
                course.held_out.add({"elapsed_seconds": elapsed_seconds, **row})
            elif row["event"] == "ended-early":
                course.has_ended_early = True
            else:
                course.num_incidents[row["event"]] += 1
                if len(course.incidents) < MAX_INCIDENTS:
                    course.incidents.append(row)
        return course

    @property
    def is_empty(self) -> bool:
        """Whether nothing was logged yet."""
        return not (self.train.num_rows or self.held_out.num_rows or self.num_incidents)


def average(points: Sequence[Point], num_points: int = 100) -> list[Point]:
    """Means over equally many neighbors, each at the place of the last of them."""
    size = max(1, -(-len(points) // num_points))
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(group[-1][0], sum(y for _, y in group) / len(group)) for group in groups]


def _read_number(value: Any) -> float | None:
    """A number that can be drawn; NaN for null, which stands for what wasn't finite."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > LARGEST:
        return None
    return float(value)
