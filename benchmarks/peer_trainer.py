"""transformers' `Trainer` with the hyper-parameters that `bertkit finetune` has by default.

    python benchmarks/peer_trainer.py DATA SET FOLDER PRECISION EPOCHS

trains once and prints the metrics as JSON; FOLDER is for files that have to be written.
"""

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import Trainer, TrainingArguments, set_seed

from finetune_peers import PeerTask, build_collator, build_peer_task, inputs_of, load_peer_model
from minilm import find_minilm
from program import be_quiet
from task_metrics import measure
from task_sets import Part, TaskSet, list_gold, prepare_set, read_part

EVALUATION_BATCH_SIZE = 64


@dataclass(frozen=True)
class Recipe:
    """Hyper-parameters that a benchmark may choose; the others are the paper's.

    Attributes:
        epochs: how often every example is seen.
        batch_size: examples of a step.
        learning_rate: at its peak, after which it falls in a line.
        seed: decides the head's first weights, the order and dropout.
        is_bf16: whether matrices are multiplied in bfloat16; weights stay float32.
    """

    epochs: float = 3.0
    batch_size: int = 32
    learning_rate: float = 3e-5
    seed: int = 0
    is_bf16: bool = False


def build_arguments(
    recipe: Recipe, folder: Path, kind: type[TrainingArguments] = TrainingArguments, **changes: Any
) -> TrainingArguments:
    """The trainer's arguments; on a GPU, where there is one, mixed with bf16 as bertkit's runs."""
    has_gpu = torch.cuda.is_available()
    values: dict[str, Any] = {
        "output_dir": str(folder),
        "num_train_epochs": recipe.epochs,
        "per_device_train_batch_size": recipe.batch_size,
        "per_device_eval_batch_size": EVALUATION_BATCH_SIZE,
        "learning_rate": recipe.learning_rate,
        "warmup_steps": 0.1,  # below 1 a share of all steps
        "weight_decay": 0.01,
        "adam_epsilon": 1e-6,
        "seed": recipe.seed,
        "use_cpu": not has_gpu,
        "bf16": has_gpu or recipe.is_bf16,
        "dataloader_pin_memory": has_gpu,
        "remove_unused_columns": False,
        "report_to": "none",
        "disable_tqdm": True,
        "save_strategy": "no",
    }
    return kind(**{**values, **changes})


class Judge:
    """Measures padded scores of one part of a set."""

    def __init__(self, task_set: TaskSet, task: PeerTask, part: Part) -> None:
        self.task_set, self.task = task_set, task
        self.examples = read_part(task_set, part)
        self.features = task.build_features(self.examples)
        self.inputs = inputs_of(self.features)

    def __call__(self, found: Any) -> dict[str, float]:
        """Metrics of what a trainer predicts."""
        scores = found.predictions
        if not isinstance(scores, tuple):
            scores = np.asarray(scores)
        answers = self.task.decode(self.examples, self.features, scores)
        return measure(self.task_set.task, list_gold(self.task_set, self.examples), answers)


def finetune_peer(task_set: TaskSet, model_folder: Path, recipe: Recipe) -> dict[str, float]:
    """Train, keep the best epoch on dev, and measure the part that is told."""
    be_quiet()
    set_seed(recipe.seed)  # of the head's weights
    task = build_peer_task(task_set, model_folder)
    dev, told = (Judge(task_set, task, part) for part in ("dev", task_set.reported))
    with tempfile.TemporaryDirectory() as scratch:
        arguments = build_arguments(
            recipe,
            Path(scratch),
            eval_strategy="epoch",
            save_strategy="epoch",
            save_only_model=True,
            save_total_limit=1,
            load_best_model_at_end=True,
            metric_for_best_model=task_set.epoch_metric,
            greater_is_better=True,
        )
        trainer = Trainer(
            load_peer_model(task, model_folder),
            arguments,
            build_collator(task),
            train_dataset=inputs_of(task.build_features(read_part(task_set, "train"))),
            eval_dataset=dev.inputs,
            compute_metrics=dev,
        )
        trainer.train()
        trainer.compute_metrics = None  # which is dev's
        return told(trainer.predict(told.inputs))


def main() -> None:
    data, name, folder, precision, epochs = sys.argv[1:]
    task_set = prepare_set(Path(data), name, Path(folder))
    recipe = Recipe(epochs=float(epochs), is_bf16=precision == "bf16")
    print(json.dumps(finetune_peer(task_set, find_minilm(), recipe)))


if __name__ == "__main__":
    main()
