"""The comparison of runs that differ only in their seed."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from bertkit.base.json_files import with_nulls
from bertkit.reports.report import Bar, Bars
from bertkit.reports.text import format_metric

SELECTION_BIAS = (
    "The best of several runs looks better on the examples by which it was chosen than on others:"
    " take its figure from a test set"
)


@dataclass(frozen=True)
class SeedComparison:
    """The results of all seeds."""

    metric: str  # higher is better
    values: Mapping[int, float]  # by seed; NaN if a run failed or its metric isn't defined

    @property
    def median(self) -> float:
        """Median over all seeds; seeds without a value rank last. NaN if the median is one."""
        median = statistics.median(map(_rank, self.values.values()))
        return median if math.isfinite(median) else math.nan

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest value; NaN if there is none."""
        found = [value for value in self.values.values() if math.isfinite(value)]
        return (min(found), max(found)) if found else (math.nan, math.nan)

    @property
    def best_seed(self) -> int:
        """The seed with the highest value; ties go to the lowest seed."""
        return max(self.values, key=lambda seed: (_rank(self.values[seed]), -seed))

    def describe(self) -> str:
        """Describe the selected run and the spread of all runs."""
        best = format_metric(self.metric, self.values[self.best_seed])
        spread = format_metric(self.metric, self.median, self.spread)
        return (
            f"Best of {len(self.values):,} runs: seed {self.best_seed} ({self.metric} {best};"
            f" median {spread}). {SELECTION_BIAS}."
        )

    def to_json(self) -> dict[str, JsonValue]:
        """Return the comparison as JSON values; undefined numbers are null."""
        found: dict[str, JsonValue] = with_nulls(
            {
                "best": self.best_seed,
                "median": self.median,
                "lowest": self.spread[0],
                "highest": self.spread[1],
                "values": {str(seed): value for seed, value in self.values.items()},
            }
        )
        return found

    def draw(self) -> Bars:
        """Draw a bar for each run."""
        bars = [
            Bar(
                f"seed {seed}",
                value,
                format_metric(self.metric, value),
                is_highlighted=seed == self.best_seed,
            )
            for seed, value in self.values.items()
        ]
        return Bars(bars, title=f"{self.metric} of the runs", note=self.describe())


def _rank(value: float) -> float:
    """Return the value for ranking; undefined values are the worst."""
    return value if math.isfinite(value) else -math.inf
