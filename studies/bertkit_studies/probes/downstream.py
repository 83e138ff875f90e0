"""Evaluate pre-trained models by fine-tuning them on labeled tasks."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.base.settings import validate
from bertkit.recipes.finetune.data import FineTuningData
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.recipes.finetune.saved import SavedFineTuning
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.table import TASKS

MAX_LENGTH = 128  # maximum tokens of an example, for every model
SPLIT_SEED = 0  # of the held-out split, the same in every run of a study


@dataclass(frozen=True)
class TaskTuning:
    """Fine-tuning settings that all arms share.

    Attributes:
        num_train: training examples of a task that is built from the shards.
        num_dev: held-out examples of such a task.
        learning_rate: peak learning rate.
        epochs: number of epochs.
        batch_size: examples per step.
    """

    num_train: int
    num_dev: int
    learning_rate: float
    epochs: float = 3.0
    batch_size: int = 16

    def choose(self, seed: int, device: str, changes: Mapping[str, Any]) -> FineTuneSettings:
        """Return the settings of a fine-tuning run.

        Args:
            seed: seed of the head, the order of examples and dropout.
            device: the device to train on.
            changes: settings that override the shared ones.
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
        return validate(FineTuneSettings, values, "fine-tuning")


@dataclass(frozen=True)
class LabeledTask:
    """Labeled examples on which every arm is fine-tuned.

    Attributes:
        kind: a key of `bertkit.tasks.table.TASKS`.
        train: file of the training examples.
        dev: file of the held-out examples; None holds out a share of the training examples.
    """

    kind: str
    train: Path
    dev: Path | None = None

    def open(self, settings: FineTuneSettings) -> FineTuningData:
        """Return the examples, which are read when they are first asked for.

        Args:
            settings: they decide the held-out share if there is no `dev` file.
        """
        dev = None if self.dev is None else str(self.dev)
        task_settings = TASKS[self.kind].settings(max_length=MAX_LENGTH)
        return FineTuningData(self.kind, str(self.train), dev, task_settings, settings)

    def score(self, model: Path, output: Path, settings: FineTuneSettings) -> float:
        """Fine-tune a model, or load its result; return the task's held-out metric."""
        dev = None if self.dev is None else str(self.dev)
        sources = Sources(self.kind, str(model), str(self.train), dev)
        task_settings = TASKS[self.kind].settings(max_length=MAX_LENGTH)
        finetune(sources, output, task_settings, settings)
        saved = SavedFineTuning.read(output)
        return saved.metrics[saved.metric]
