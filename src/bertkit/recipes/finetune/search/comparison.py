"""Compares the runs of a search: median and range of each cell, and the best run."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertkit.recipes.finetune.search.cells import Cell, Trial
from bertkit.reports.cells import Cell as TableCell
from bertkit.reports.cells import Interval
from bertkit.reports.report import Bar, Bars, Section, Table

SELECTION_BIAS = (
    "The best of several runs looks better on the examples by which it was chosen than on others:"
    " take its figure from a test set"
)


@dataclass(frozen=True)
class CellOutcome:
    """The results of the runs of one cell.

    Attributes:
        cell: the cell.
        values: the metric by seed; NaN if a run failed or its metric isn't defined.
    """

    cell: Cell
    values: Mapping[int, float]

    @property
    def median(self) -> float:
        """Median over all seeds; seeds without a value rank last. NaN if the median is one."""
        median = statistics.median(_rank(value) for value in self.values.values())
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


@dataclass(frozen=True)
class Comparison:
    """A comparison of all cells of a search.

    Attributes:
        metric: the metric to compare by; higher is better.
        outcomes: the results of each cell, in the order of the search; at least one.
    """

    metric: str
    outcomes: Sequence[CellOutcome]

    @classmethod
    def build(cls, metric: str, values: Mapping[Trial, float]) -> "Comparison":
        """Group runs by cell."""
        by_cell: dict[Cell, dict[int, float]] = {}
        for trial, value in values.items():
            by_cell.setdefault(trial.cell, {})[trial.seed] = value
        return cls(metric, [CellOutcome(cell, seeds) for cell, seeds in by_cell.items()])

    @property
    def best(self) -> CellOutcome:
        """The cell with the highest median; ties go to the first cell."""
        return max(self.outcomes, key=lambda outcome: _rank(outcome.median))

    @property
    def best_trial(self) -> Trial:
        """The best run of the best cell."""
        return Trial(self.best.cell, self.best.best_seed)

    @property
    def num_runs(self) -> int:
        """Number of runs over all cells."""
        return sum(len(outcome.values) for outcome in self.outcomes)

    def describe(self) -> list[str]:
        """Describe each cell in a line, with the best one marked, and then the selected run."""
        width = max(len(outcome.cell.describe()) for outcome in self.outcomes)
        lines = []
        for outcome in self.outcomes:
            mark = "*" if outcome is self.best else " "
            words = f"{mark} {outcome.cell.describe():<{width}}  {self.metric}"
            lines.append(f"{words} {show_spread(outcome)}")
        return [*lines, f"{self.summarize()}. {SELECTION_BIAS}."]

    def summarize(self) -> str:
        """Describe the selected run in a sentence, without its period."""
        best, num_cells = self.best, len(self.outcomes)
        among = f", the best median of {num_cells:,} choices" if num_cells > 1 else ""
        return (
            f"Best of {self.num_runs:,} runs: {best.cell.describe()}, seed {best.best_seed}{among}"
            f" ({self.metric} {show_spread(best)} over {_count_seeds(best)})"
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Return the cells as JSON values; undefined numbers are null."""
        return [
            {
                "learning_rate": outcome.cell.learning_rate,
                "batch_size": outcome.cell.batch_size,
                "epochs": outcome.cell.epochs,
                "median": _defined(outcome.median),
                "lowest": _defined(outcome.spread[0]),
                "highest": _defined(outcome.spread[1]),
                "values": {str(seed): _defined(value) for seed, value in outcome.values.items()},
                "is_best": outcome is self.best,
            }
            for outcome in self.outcomes
        ]

    def sections(self) -> list[Section]:
        """Return the comparison as sections of a report."""
        rows: list[list[TableCell]] = []
        bars = []
        for outcome in self.outcomes:
            cell, spread = outcome.cell, outcome.spread
            rows.append(
                [
                    "as decided" if cell.learning_rate is None else f"{cell.learning_rate:g}",
                    cell.batch_size,
                    "as decided" if cell.epochs is None else f"{cell.epochs:g}",
                    Interval(outcome.median, *spread),
                    ", ".join(f"{value:.4f}" for value in outcome.values.values()),
                ]
            )
            bars.append(
                Bar(
                    cell.describe(),
                    outcome.median,
                    show_spread(outcome),
                    is_highlighted=outcome is self.best,
                    extent=spread if math.isfinite(spread[0]) else None,
                )
            )
        columns = ["Learning rate", "Batch", "Epochs", "Median (lowest–highest)", "By seed"]
        note = f"{self.summarize()}. {SELECTION_BIAS}."
        return [
            Bars(bars, title=f"{self.metric} of the runs", note=note),
            Table(columns, rows, title="Runs"),
        ]


def show_spread(outcome: CellOutcome) -> str:
    """Format the median, with the range if there are several seeds."""
    if not math.isfinite(outcome.median):
        return "not defined"
    if len(outcome.values) == 1:
        return f"{outcome.median:.4f}"
    low, high = outcome.spread
    return f"{outcome.median:.4f} ({low:.4f}–{high:.4f})"


def _count_seeds(outcome: CellOutcome) -> str:
    number = len(outcome.values)
    return "one seed" if number == 1 else f"{number} seeds"


def _rank(value: float) -> float:
    """Return the value for ranking; undefined values are the worst."""
    return value if math.isfinite(value) else -math.inf


def _defined(value: float) -> float | None:
    return value if math.isfinite(value) else None
