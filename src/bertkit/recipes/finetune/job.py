"""What the training loop is handed for a task."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertkit.base.checksums import FileRecord
from bertkit.base.files import write_json
from bertkit.checkpoints.file_names import CONFIG_FILE
from bertkit.data.epochs import EpochOrder
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.batch import Encoded, TaskBatch, batch_tensors
from bertkit.tasks.logits import Logits, compute_logits
from bertkit.tasks.task import Task, TaskScores
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Job, Machine, Watched

TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65536}  # of an evaluation
EXAMPLES_PER_LOSS = 64


@dataclass(frozen=True)
class Materials:
    """Everything a run is made of.

    Attributes:
        task: with its labels.
        model: to be trained; on its device.
        tokenizer: the model's.
        train: examples as token ids.
        dev_examples: held-out examples.
        dev: the same as token ids.
        machine: where it computes.
    """

    task: Task[Any, Any]
    model: FineTunedBert
    tokenizer: Tokenizer
    train: Sequence[Encoded]
    dev_examples: Sequence[Any]
    dev: Sequence[Encoded]
    machine: Machine


def build_job(materials: Materials, settings: FineTuneSettings) -> Job[TaskBatch]:
    """What the loop is handed."""
    task, model, tokenizer = materials.task, materials.model, materials.tokenizer
    order = EpochOrder(len(materials.train), settings.batch_size, settings.seed)

    def batches_at(step: int) -> list[TaskBatch]:
        numbers = order.examples(step).tolist()
        size = -(-len(numbers) // settings.accumulate)
        return [
            TaskBatch.collate([materials.train[number] for number in part], part)
            for part in (numbers[start : start + size] for start in range(0, len(numbers), size))
        ]

    def score(model: FineTunedBert, batch: TaskBatch) -> TaskScores:
        return task.loss(model.scores(batch.packed), batch)

    def evaluate() -> dict[str, float]:
        logits = held_out_logits(materials)
        predictions = decode_all(task, materials.dev_examples, materials.dev, logits)
        return {
            "loss": mean_loss(task, materials.dev, logits),
            **task.measure(materials.dev_examples, predictions),
        }

    def save_model(folder: Path) -> dict[str, FileRecord]:
        return {**model.save_pretrained(folder), **tokenizer.save(folder)}

    def save_architecture(folder: Path) -> dict[str, FileRecord]:
        config = write_json(folder / CONFIG_FILE, model.config.to_dict())
        return {CONFIG_FILE: config, **tokenizer.save(folder)}

    return Job(
        model=model,
        batches_at=batches_at,
        score=score,
        evaluate=evaluate,
        count_operations=lambda batch: count_operations(model.config, batch),
        save_model=save_model,
        save_architecture=save_architecture,
        batch_tensors=batch_tensors,
        shares={task.metric: task.metric},
        watched=Watched(task.metric, is_higher_better=True, patience=settings.patience),
    )


def held_out_logits(materials: Materials) -> list[Logits]:
    """Logits of the held-out examples, without dropout."""
    model, device = materials.model.eval(), materials.machine.device
    return compute_logits(
        lambda batch: model.scores(batch.to(device)),
        materials.dev,
        row=materials.task.row,
        tokens_per_batch=TOKENS_PER_BATCH[device.type],
    )


def decode_all(
    task: Task[Any, Any],
    examples: Sequence[Any],
    encoded: Sequence[Encoded],
    logits: Sequence[Logits],
) -> list[Any]:
    """The answer to each example."""
    rows = zip(examples, encoded, logits, strict=True)
    return [task.decode(example, one, scores) for example, one, scores in rows]


def mean_loss(task: Task[Any, Any], encoded: Sequence[Encoded], logits: Sequence[Logits]) -> float:
    """The loss of examples whose logits are known, by label."""
    total, count = 0.0, 0
    for start in range(0, len(encoded), EXAMPLES_PER_LOSS):
        chosen = range(start, min(start + EXAMPLES_PER_LOSS, len(encoded)))
        batch = TaskBatch.collate([encoded[index] for index in chosen], list(chosen))
        rows = torch.from_numpy(np.concatenate([logits[index] for index in chosen]))
        total += math.fsum(float(loss) for loss in task.loss(rows, batch).losses.values())
        count += batch.target_counts["task"]
    return total / max(1, count)


def count_operations(config: BertConfig, batch: TaskBatch) -> float:
    """Floating-point operations of the encoder's matrix products in one training step."""
    hidden, inner = config.hidden_size, config.intermediate_size
    linear = batch.num_tokens * (4 * hidden * hidden + 2 * hidden * inner)
    attention = 2 * hidden * sum(length * length for length in batch.packed.lengths)
    return 6.0 * config.num_hidden_layers * (linear + attention)
