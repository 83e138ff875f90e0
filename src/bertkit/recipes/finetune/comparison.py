"""The comparison of runs that differ only in their seed."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from bertkit.base.json_files import with_nulls
from bertkit.reports.report import Bar, Bars
from bertkit.reports.text import MetricCell, format_metric, format_number, is_share


def describe_spread(metric: str, values: Sequence[float]) -> str:
    """Describe a metric over runs of several seeds: mean, standard deviation and range.

    Runs without a value are counted; of a single value, that is all there is to say.
    """
    found = [value for value in values if math.isfinite(value)]
    if len(found) < 2:
        return format_metric(metric, found[0] if found else None)
    deviation = statistics.stdev(found)
    shown = f"{100 * deviation:.1f} points" if is_share(metric) else format_number(deviation)
    mean, extent = statistics.fmean(found), (min(found), max(found))
    ranged = MetricCell.of(metric, mean, extent).show_interval()
    failed = f"; {len(values) - len(found):,} without a value" * (len(found) < len(values))
    return f"mean {format_metric(metric, mean)} (standard deviation {shown}; {ranged}{failed})"


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
    def finite(self) -> list[float]:
        """The values of the runs that have one."""
        return list(filter(math.isfinite, self.values.values()))

    @property
    def finite_seeds(self) -> list[int]:
        """The seeds of these runs."""
        return [seed for seed, value in self.values.items() if math.isfinite(value)]

    @property
    def median(self) -> float:
        """Median over all seeds; seeds without a value rank last. NaN if the median is one."""
        median = statistics.median(map(_rank, self.values.values()))
        return median if math.isfinite(median) else math.nan

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest value; NaN if there is none."""
        return (min(self.finite), max(self.finite)) if self.finite else (math.nan, math.nan)

    @property
    def best_seed(self) -> int:
        """The seed with the highest value; ties go to the lowest seed."""
        return max(self.values, key=lambda seed: (_rank(self.values[seed]), -seed))

    def describe(self) -> str:
        """Describe the spread of all runs and the selected one."""
        best = format_metric(self.metric, self.values[self.best_seed])
        spread = describe_spread(self.metric, list(self.values.values()))
        return (
            f"{self.metric} over {len(self.values):,} seeds: {spread}. Kept: seed {self.best_seed},"
            f" the best ({best}). {SELECTION_BIAS}."
        )

    def to_json(self) -> dict[str, JsonValue]:
        """Return the comparison as JSON values; undefined numbers are null."""
        found: dict[str, JsonValue] = with_nulls(
            {
                "best": self.best_seed,
                "mean": statistics.fmean(self.finite) if self.finite else math.nan,
                "deviation": statistics.stdev(self.finite) if len(self.finite) > 1 else math.nan,
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
