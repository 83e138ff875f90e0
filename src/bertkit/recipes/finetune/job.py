"""Builds the training loop's job for a task."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import SettingsError, pluralize
from bertkit.base.progress import announce
from bertkit.data.order import EpochOrder
from bertkit.inference.engines.torch_engine import compute_scores
from bertkit.models.bert.feature_based import BertFeatureBased
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.recipes.finetune.data import FineTuningData
from bertkit.recipes.finetune.row_files import RowFiles
from bertkit.recipes.finetune.settings import (
    DEFAULT_EPOCHS,
    ENOUGH_STEPS,
    LORA_FACTOR,
    MOST_EPOCHS,
    SENTENCE_RATE,
    TOO_FEW_STEPS,
    FineTuneSettings,
)
from bertkit.recipes.solved_head import TOKENS_PER_BATCH, FrozenModel
from bertkit.tasks.batch import Encoded, Logits, compute_logits, cut_by_scores
from bertkit.tasks.ranking import ComparedScoring
from bertkit.tasks.saved import save_task
from bertkit.tasks.task import AnyTask, TaskExample, TaskPrediction
from bertkit.tasks.task_batch import TaskBatch
from bertkit.training.job import Job, Machine, Scores, Watched

LAYERS = "encoder.layers."
EMBEDDINGS = "encoder.embeddings."


def freeze_parameters(model: nn.Module, what: str, num_layers: int) -> int:
    """Freeze none, embeddings, a number of lowest layers, or encoder; return how many weights."""
    named = {"none": -1, "embeddings": 0, "encoder": num_layers}
    highest = named[what] if what in named else int(what)
    if highest > num_layers:
        raise SettingsError(
            f"freeze is {what}, and the encoder has {pluralize(num_layers, 'layer')}"
        )
    num_frozen = 0
    for name, parameter in model.named_parameters():
        if _height(name, num_layers) <= highest:
            parameter.requires_grad_(False)
            num_frozen += parameter.numel()
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise SettingsError(f"freeze is {what}, and the model has nothing else to train; lower it")
    return num_frozen


def _height(name: str, num_layers: int) -> int:
    """Return 0 for embeddings, 1 for the lowest layer, `num_layers + 1` for pooler and head."""
    if name.startswith(EMBEDDINGS):
        return 0
    if name.startswith(LAYERS):
        return 1 + int(name.removeprefix(LAYERS).partition(".")[0])
    return num_layers + 1


def decide_steps(
    settings: FineTuneSettings, steps_per_epoch: int, *, has_start: bool = False
) -> int:
    """Return the number of steps of the run; announce if they differ from the paper or are few.

    By default there are more epochs for few examples and a random head.
    """
    if settings.features is not None:
        return 0
    epochs = DEFAULT_EPOCHS if settings.epochs is None else settings.epochs
    if settings.epochs is None and not has_start:
        needed = float(-(-ENOUGH_STEPS // steps_per_epoch))
        epochs = min(MOST_EPOCHS, max(DEFAULT_EPOCHS, needed))
    num_steps = max(1, round(steps_per_epoch * epochs))
    if settings.epochs is None and epochs > DEFAULT_EPOCHS:
        announce(
            f"training for {pluralize(epochs, 'epoch')}, since {DEFAULT_EPOCHS:g} would be"
            f" {pluralize(round(steps_per_epoch * DEFAULT_EPOCHS), 'step')}; --epochs changes that"
        )
    elif settings.epochs is not None and num_steps < TOO_FEW_STEPS and not has_start:
        announce(
            f"training for {pluralize(epochs, 'epoch')}, {pluralize(num_steps, 'step')}; with under"
            f" {TOO_FEW_STEPS} fine-tuning often learns nothing: ask for more epochs, or for"
            " smaller batches"
        )
    return num_steps


EXAMPLES_PER_LOSS = 64


class FineTuningJob(Job[TaskBatch]):
    """Training all weights that aren't frozen."""

    settings: FineTuneSettings

    def __init__(
        self,
        data: FineTuningData,
        model: FineTunedBert,
        machine: Machine,
        settings: FineTuneSettings,
        *,
        has_solved_head: bool = False,
    ) -> None:
        assert data.tokenizer is not None, "the examples are encoded"
        self.data, self.task, self.tokenizer = data, data.task, data.tokenizer
        self.train, self.dev = data.train.encoded, data.dev.encoded
        self.model, self.machine, self.has_solved_head = model, machine, has_solved_head
        self.has_start = has_solved_head or self.task.has_start
        self.source, self.rows = {}, RowFiles()
        self.keep_evaluation = self.rows.keep
        self.order = EpochOrder(len(self.train), settings.batch_size, settings.seed)
        self.num_epoch_steps = self.order.steps_per_epoch
        interval = settings.eval_every or self.num_epoch_steps
        changes: dict[str, float] = {"eval_every": interval}
        if "learning_rate" not in settings.model_fields_set:
            # one of passages on a sentence encoder has a new head on its pooling
            is_pooled = not self.task.has_solvable_head and isinstance(model, BertFeatureBased)
            is_sentence = has_solved_head or is_pooled
            rate = SENTENCE_RATE if is_sentence else settings.learning_rate
            changes["learning_rate"] = rate * (LORA_FACTOR if settings.lora is not None else 1.0)
        self.settings = settings.model_copy(update=changes)
        self.num_micro_batches = settings.accumulate
        num_layers = model.config.num_hidden_layers
        self.learning_rate_scales = {  # 1 for the head, times `layer_decay` for each lower layer
            name: settings.layer_decay ** (num_layers + 1 - _height(name, num_layers))
            for name, _ in model.named_parameters()
        }
        self.progress_metrics = {self.task.metric: self.task.metric}
        is_by_loss = self.task.settings.metric == "loss"
        self.watched = Watched(
            "loss" if is_by_loss else self.task.metric,
            is_higher_better=not is_by_loss,
            patience=settings.patience,
            may_be_first=self.has_start,
            stays_on_tie=self.task.has_start,
        )

    @property
    def frozen(self) -> FrozenModel:
        """The model and the training examples, to solve its last layer."""
        return FrozenModel(self.model, self.task, self.train, self.machine, self.settings.seed)

    def examples_at(self, step: int) -> list[int]:
        """Return the numbers of a step's examples."""
        numbers: list[int] = self.order.examples(step).tolist()
        return numbers

    def collate(self, examples: Sequence[int]) -> TaskBatch:
        """Build the batch of the examples with these numbers."""
        return TaskBatch.collate([self.train[number] for number in examples], examples)

    def loss(self, model: FineTunedBert, batch: TaskBatch) -> Scores:
        """Return the task's loss."""
        return self.task.loss(model.scores(batch.packed), batch)

    def cut_held_out(self) -> list[range]:
        """Split held-out examples into parts whose logits fit in memory; see `cut_by_scores`."""
        return cut_by_scores(self.dev, len(self.task.labels), scored=self.task.scored)

    def take_held_out(self, part: range) -> tuple[list[TaskExample], list[Encoded]]:
        """Return some held-out examples, and their token ids."""
        examples = self.data.dev.examples
        return [examples[number] for number in part], [self.dev[number] for number in part]

    def held_out_logits(self, part: range) -> list[Logits]:
        """Compute logits of some held-out examples."""
        return self.compute_logits(self.take_held_out(part)[1])

    def compute_logits(self, encoded: Sequence[Encoded]) -> list[Logits]:
        """Compute logits of examples, without dropout."""
        model, device = self.model.eval(), self.machine.device
        return compute_logits(
            lambda ids: compute_scores(model, ids, device),
            encoded,
            scored=self.task.scored,
            tokens_per_batch=TOKENS_PER_BATCH[device.type],
        )

    def evaluate(self) -> dict[str, float]:
        """Measure held-out loss and metrics; only the loss if it isn't finite."""
        loss, predictions = self.predict_held_out()
        if not math.isfinite(loss):
            return {"loss": loss}
        scoring = self.task.score(self.data.dev.examples, predictions)
        if isinstance(scoring, ComparedScoring) and scoring.examples:
            self.rows.latest = scoring.row_values
        return {"loss": loss, **scoring.metrics}

    def predict_held_out(self) -> tuple[float, list[TaskPrediction]]:
        """Return the held-out loss and predictions, part by part; none if it isn't finite."""
        task, total, count, predictions = self.task, 0.0, 0, list[TaskPrediction]()
        for part in self.cut_held_out():
            examples, encoded = self.take_held_out(part)
            logits = self.held_out_logits(part)
            loss, num_targets = sum_loss(task, encoded, logits)
            total, count = total + loss, count + num_targets
            if not math.isfinite(total):
                return total, []
            predictions += decode_all(task, examples, encoded, logits)
        return total / max(1, count), predictions

    def answer_held_out(
        self, fitted: Mapping[str, float] | None
    ) -> tuple[AnyTask, list[TaskPrediction], list[TaskPrediction]]:
        """Return the task with fitted numbers, its predictions, and those without its temperature.

        `fitted` are the numbers of a model that is calibrated already; by default they are fitted.
        """
        plain, parts = self.task, self.cut_held_out()
        # On every n-th example, where the logits of all of them don't fit in memory.
        chosen = range(0, len(self.dev), len(parts))
        examples, encoded = self.take_held_out(chosen)
        known = self.held_out_logits(chosen)
        if fitted is None:
            task = plain.fit_numbers(examples, encoded, known)
        else:
            task = replace(plain, numbers=fitted)
        answers, unscaled = list[TaskPrediction](), list[TaskPrediction]()
        for part in parts:
            logits = known if len(parts) == 1 else self.held_out_logits(part)
            examples, encoded = self.take_held_out(part)
            answers += decode_all(task, examples, encoded, logits)
            if task.temperature != plain.temperature:
                unscaled += decode_all(plain, examples, encoded, logits)
        return task, answers, unscaled

    def count_operations(self, batch: TaskBatch) -> float:
        """Return the operations of encoder and head."""
        return float(self.model.count_operations(batch.packed))

    def save_tokenizer(self, folder: Path) -> dict[str, FileRecord]:
        """Write the tokenizer's files, with the maximum length at which transformers truncates."""
        return self.tokenizer.save(folder, max_length=self.task.settings.max_length)

    def save_rest(self, folder: Path) -> dict[str, FileRecord]:
        """Write tokenizer and task."""
        return {**self.save_tokenizer(folder), **save_task(folder, self.task)}


def decode_all(
    task: AnyTask,
    examples: Sequence[TaskExample],
    encoded: Sequence[Encoded],
    logits: Iterable[Logits],
) -> list[TaskPrediction]:
    """Decode the prediction for each example, in the compact form that evaluations keep."""
    decode = task.for_evaluation(len(examples)).decode
    return [decode(*row) for row in zip(examples, encoded, logits, strict=True)]


def sum_loss(
    task: AnyTask, encoded: Sequence[Encoded], logits: Sequence[Logits]
) -> tuple[float, int]:
    """Compute the loss summed over labels, and the number of labels, from known logits."""
    total, count = 0.0, 0
    for start in range(0, len(encoded), EXAMPLES_PER_LOSS):
        chosen = range(start, min(start + EXAMPLES_PER_LOSS, len(encoded)))
        batch = TaskBatch.collate([encoded[index] for index in chosen], list(chosen))
        rows = torch.from_numpy(np.concatenate([logits[index] for index in chosen]))
        total += math.fsum(float(loss) for loss in task.loss(rows, batch).losses.values())
        count += batch.target_counts["task"]
    return total, count
