"""The runs of a search: its grid cells, each with one or more seeds."""

from dataclasses import dataclass
from itertools import product

from bertkit.base.errors import SettingsError
from bertkit.base.settings import validate
from bertkit.recipes.finetune.settings import FEATURE_RATE, FineTuneSettings, SearchSettings

# Source: Devlin et al. 2018, appendix A.3.
LEARNING_RATES = (5e-5, 3e-5, 2e-5)
BATCH_SIZES = (16, 32)
# The paper has no grid for heads on a frozen encoder; these are around the default.
FEATURE_LEARNING_RATES = (3e-3, 1e-3, 3e-4)
EPOCHS = (2.0, 3.0, 4.0)  # separate runs, because the learning rate decays to 0 in each
CHOSEN_BY_SEARCH = ("learning_rate", "batch_size", "epochs")


@dataclass(frozen=True)
class Cell:
    """A grid cell: one combination of hyperparameters, without the seed.

    Attributes:
        learning_rate: the peak learning rate; None for the recipe's default.
        batch_size: examples per step.
        epochs: number of epochs; None for the recipe's default.
    """

    learning_rate: float | None
    batch_size: int
    epochs: float | None

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
    def place(self) -> str:
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


def list_trials(search: SearchSettings, settings: FineTuneSettings) -> list[Trial]:
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
