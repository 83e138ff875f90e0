"""Fine-tuning as a measure: how good a model is that begins with a pre-trained one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.base.settings import parse_settings
from bertkit.recipes.finetune.examples import Data, open_tables
from bertkit.recipes.finetune.prepared import read_task
from bertkit.recipes.finetune.result import SavedResult
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.table import TASKS
from bertkit.tasks.task import Task
from bertkit.training.finished import undefine_number

MAX_LENGTH = 128  # tokens of an example, whatever reads it
SPLIT_SEED = 0  # decides what is held out, in every run of a study


@dataclass(frozen=True)
class FineTuning:
    """How arms are fine-tuned, all of them the same way.

    Attributes:
        num_train: examples of a task that is made from the shards.
        num_dev: held-out ones.
        learning_rate: the peak.
        epochs: how often every example is seen.
        batch_size: examples of a step.
    """

    num_train: int
    num_dev: int
    learning_rate: float
    epochs: float = 3.0
    batch_size: int = 16

    def choose(self, seed: int, device: str, changes: Mapping[str, Any]) -> FineTuneSettings:
        """The settings of a run.

        Args:
            seed: of the head, the order of examples and dropout.
            device: where it computes.
            changes: what an arm does otherwise.
        """
        values = {
            "learning_rate": self.learning_rate,
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "seed": seed,
            "split_seed": SPLIT_SEED,
            "device": device,
            **changes,
        }
        return parse_settings(FineTuneSettings, values, "fine-tuning")


@dataclass(frozen=True)
class LabeledTask:
    """Labeled examples on which every arm is fine-tuned.

    Attributes:
        kind: a key of `bertkit.tasks.table.TASKS`.
        train: the examples.
        dev: held-out ones; None holds out a share of the examples.
    """

    kind: str
    train: Path
    dev: Path | None = None

    def read(self, settings: FineTuneSettings) -> tuple[Task[Any, Any], Data]:
        """The task, and its examples.

        Args:
            settings: they decide what is held out, where that isn't said.
        """
        dev = None if self.dev is None else str(self.dev)
        tables, entry = open_tables(str(self.train), dev, settings), TASKS[self.kind]
        return read_task(entry.load(), tables, entry.settings(), settings)

    def score(self, model: Path, output: Path, settings: FineTuneSettings) -> float:
        """Fine-tune a model, or read what came of that; the task's metric on held-out examples."""
        dev = None if self.dev is None else str(self.dev)
        sources = Sources(self.kind, str(model), str(self.train), dev)
        task_settings = TASKS[self.kind].settings(max_length=MAX_LENGTH)
        finetune(sources, output, task_settings, settings)
        saved = SavedResult.read(output)
        return undefine_number(saved.metrics[saved.metric])
