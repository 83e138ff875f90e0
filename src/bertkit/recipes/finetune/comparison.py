"""The runs of a search, and their comparison by grid cell."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from bertkit.base.errors import SettingsError
from bertkit.base.files import with_nulls
from bertkit.base.settings import validate
from bertkit.recipes.finetune.settings import FEATURE_RATE, FineTuneSettings, GridSearchSettings
from bertkit.reports.report import Bar, Bars, Section, Table
from bertkit.reports.text import Cell as TableCell
from bertkit.reports.text import MetricCell, format_metric

# Source: Devlin et al. 2018, appendix A.3.
LEARNING_RATES = (5e-5, 3e-5, 2e-5)
BATCH_SIZES = (16, 32)
# The paper has no grid for heads on a frozen encoder; these are around the default.
FEATURE_LEARNING_RATES = (3e-3, 1e-3, 3e-4)
EPOCHS = (2.0, 3.0, 4.0)  # separate runs, because the learning rate decays to 0 in each
CHOSEN_BY_SEARCH = ("learning_rate", "batch_size", "epochs")


@dataclass(frozen=True)
class Cell:
    """A grid cell: one combination of hyperparameters, without the seed."""

    learning_rate: float | None  # the peak; None for the recipe's default
    batch_size: int
    epochs: float | None  # None for the recipe's default

    @property
    def name(self) -> str:
        """The name of the cell's folder."""
        epochs = "" if self.epochs is None else f"-epochs{self.epochs:g}"
        rate = "" if self.learning_rate is None else f"lr{self.learning_rate:g}-"
        return f"{rate}batch{self.batch_size}{epochs}"

    def describe(self) -> str:
        """Describe the hyperparameters in words."""
        rate = "" if self.learning_rate is None else f"learning rate {self.learning_rate:g}, "
        words = f"{rate}batch {self.batch_size}"
        return words if self.epochs is None else f"{words}, epochs {self.epochs:g}"


@dataclass(frozen=True)
class Trial:
    """One run of a search: a cell and a seed."""

    cell: Cell
    seed: int

    @property
    def folder(self) -> str:
        """The run's folder, relative to the search's folder."""
        return f"{self.cell.name}/seed{self.seed}"

    def choose(self, settings: FineTuneSettings) -> FineTuneSettings:
        """Return the run's settings; all runs share the held-out split of the first seed."""
        values = {
            **settings.model_dump(),
            "batch_size": self.cell.batch_size,
            "epochs": self.cell.epochs,
            "seed": self.seed,
            "split_seed": settings.seed if settings.split_seed is None else settings.split_seed,
        }
        del values["learning_rate"]
        if self.cell.learning_rate is not None:
            values["learning_rate"] = self.cell.learning_rate
        return validate(FineTuneSettings, values, self.cell.describe())


def list_trials(search: GridSearchSettings, settings: FineTuneSettings) -> list[Trial]:
    """List all runs: cell by cell, with ascending seeds in each."""
    given = [name for name in CHOSEN_BY_SEARCH if name in settings.model_fields_set]
    is_bilstm = settings.features == "bilstm"
    if search.search is not None and settings.features == "linear":
        raise SettingsError(
            f"--search {search.search} chooses {', '.join(CHOSEN_BY_SEARCH)}, and --features linear"
            " has none of them: leave out one of both"
        )
    if is_bilstm and settings.learning_rate == FEATURE_RATE:
        given = [name for name in given if name != "learning_rate"]  # set by default, not by a user
    if search.search is not None and given:
        flags = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise SettingsError(
            f"--search {search.search} chooses {', '.join(CHOSEN_BY_SEARCH)} itself; leave out"
            f" {flags}, or the search"
        )
    if search.search is None:
        has_rate = "learning_rate" in settings.model_fields_set
        rate = settings.learning_rate if has_rate else None
        cells = [Cell(rate, settings.batch_size, settings.epochs)]
    else:
        rates = FEATURE_LEARNING_RATES if is_bilstm else LEARNING_RATES
        cells = [Cell(*choice) for choice in product(rates, BATCH_SIZES, EPOCHS)]
    seeds = range(settings.seed, settings.seed + search.seeds)
    return [Trial(cell, seed) for cell in cells for seed in seeds]


SELECTION_BIAS = (
    "The best of several runs looks better on the examples by which it was chosen than on others:"
    " take its figure from a test set"
)


@dataclass(frozen=True)
class CellOutcome:
    """The results of the runs of one cell."""

    cell: Cell
    values: Mapping[int, float]  # by seed; NaN if a run failed or its metric isn't defined

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
    """A comparison of all cells of a search."""

    metric: str  # higher is better
    outcomes: Sequence[CellOutcome]  # in the order of the search; at least one

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
            lines.append(f"{words} {show_spread(self.metric, outcome)}")
        return [*lines, f"{self.summarize()}. {SELECTION_BIAS}."]

    def summarize(self) -> str:
        """Describe the selected run in a sentence, without its period."""
        best, num_cells = self.best, len(self.outcomes)
        seeds = "one seed" if len(best.values) == 1 else f"{len(best.values)} seeds"
        among = f", the best median of {num_cells:,} choices" if num_cells > 1 else ""
        return (
            f"Best of {self.num_runs:,} runs: {best.cell.describe()}, seed {best.best_seed}{among}"
            f" ({self.metric} {show_spread(self.metric, best)} over {seeds})"
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Return the cells as JSON values; undefined numbers are null."""
        found: list[dict[str, Any]] = [
            {
                "learning_rate": outcome.cell.learning_rate,
                "batch_size": outcome.cell.batch_size,
                "epochs": outcome.cell.epochs,
                "median": outcome.median,
                "lowest": outcome.spread[0],
                "highest": outcome.spread[1],
                "values": {str(n): each for n, each in outcome.values.items()},
                "is_best": outcome is self.best,
            }
            for outcome in self.outcomes
        ]
        return list(with_nulls(found))

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
                    MetricCell.of(self.metric, outcome.median, spread),
                    ", ".join(
                        format_metric(self.metric, value) for value in outcome.values.values()
                    ),
                ]
            )
            bars.append(
                Bar(
                    cell.describe(),
                    outcome.median,
                    show_spread(self.metric, outcome),
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


def show_spread(metric: str, outcome: CellOutcome) -> str:
    """Format the median, with the range if there are several seeds."""
    spread = outcome.spread if len(outcome.values) > 1 else None
    return format_metric(metric, outcome.median, spread)


def _rank(value: float) -> float:
    """Return the value for ranking; undefined values are the worst."""
    return value if math.isfinite(value) else -math.inf
