"""The side of sentence-transformers in `bench_contrastive.py`: its trainer, timed."""

import tempfile
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer import losses
from torch import Tensor
from transformers import TrainerCallback, set_seed

from contrastive_side import LEARNING_RATE, MANY_EPOCHS, SCALE, Clock, Plan
from devices import Place
from peer_trainer import Recipe, build_arguments
from program import be_quiet


class TimedTrainer(SentenceTransformerTrainer):
    """A trainer that counts."""

    clock: Clock

    def training_step(self, model: Any, inputs: dict[str, Tensor], *rest: Any) -> Tensor:
        masks = [each for name, each in inputs.items() if name.endswith("attention_mask")]
        tokens = torch.stack([mask.sum() for mask in masks]).sum()
        self.clock.count(tokens, sum(mask.numel() for mask in masks))
        loss: Tensor = super().training_step(model, inputs, *rest)
        return loss


class Watch(TrainerCallback):  # type: ignore[misc]
    """Tells a clock where steps begin."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.clock.begin_step()


def train_theirs(plan: Plan) -> None:
    """The trainer of sentence-transformers, with the loss that its guide names for such rows."""
    be_quiet()
    set_seed(plan.seed)
    place = Place.of(plan.device, plan.precision)
    recipe = Recipe(MANY_EPOCHS, plan.batch_size, LEARNING_RATE, plan.seed)
    model = SentenceTransformer(plan.model, device=plan.device)
    rows = Dataset.from_csv(str(Path(plan.folder) / "train.csv"))
    loss = choose_loss(plan, model)
    clock = Clock(plan, place)
    with tempfile.TemporaryDirectory() as scratch:
        arguments = build_arguments(
            recipe,
            Path(scratch),
            kind=SentenceTransformerTrainingArguments,
            max_steps=plan.num_steps + 2,
            use_cpu=not place.is_gpu,
            bf16=place.precision == "bf16",
        )
        trainer = TimedTrainer(model, arguments, train_dataset=rows, loss=loss)
        first = find_loss(trainer, [rows[number] for number in range(plan.batch_size)], place)
        trainer.clock = clock
        trainer.add_callback(Watch(clock))
        trainer.train()
    clock.answer(first)
    if plan.saved:
        model.save_pretrained(plan.saved)


def choose_loss(plan: Plan, model: Any) -> Any:
    if plan.is_scored:
        return losses.CoSENTLoss(model, scale=SCALE)
    if plan.num_parts == 1:
        return losses.MultipleNegativesRankingLoss(model, scale=SCALE)
    size = plan.batch_size // plan.num_parts
    return losses.CachedMultipleNegativesRankingLoss(model, scale=SCALE, mini_batch_size=size)


@torch.no_grad()
def find_loss(trainer: Any, rows: list[dict[str, Any]], place: Place) -> float:
    """The loss of some rows without dropout."""
    inputs = trainer._prepare_inputs(trainer.data_collator(rows))  # noqa: SLF001
    features, labels = trainer.collect_features(inputs)
    trainer.model.eval()
    with place.mixed_precision():
        return float(trainer.loss(features, labels))
