"""One side of `bench_quality.py`: a model that is pre-trained for a while when told to.

    python benchmarks/quality_side.py {bertkit,transformers} MODEL MINUTES FOLDER DATA FOREIGN

Each line of standard input is a number of seconds; it trains for that long by a clock of its own,
which runs during steps only, evaluates, and answers with a line of JSON.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench_step import pad_batch
from bertkit.data.shards import ShardSet
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.recipes.pretrain.job import build_job, held_out_batches, prepare_context
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tasks.objectives.bert import PreTrainingBatch, score
from bertkit.training.optimizer import build_optimizer
from bertkit.training.settings import learning_rate_at
from bertkit.training.step import derive_seed, evaluate_batches

CPU = torch.device("cpu")
SCHEDULE_STEPS = 100_000  # the schedule follows the share of the time that is spent
LEARNING_RATE, BATCH_SIZE = 1e-3, 32
LossOf = Callable[[Any, Any], Tensor]


@dataclass(frozen=True)
class Side:
    """How one side's model is loaded, what it is given of a batch, and its loss on that."""

    load: Callable[[Path], nn.Module]
    give: Callable[[PreTrainingBatch], Any]
    loss_of: LossOf


def main() -> None:
    """Build the side, then train and evaluate as told."""
    name, model_name, minutes, *paths = sys.argv[1:]
    folder, data, foreign = map(Path, paths)
    settings = build_settings(model_name)
    context = prepare_context(data, settings)
    batches_at = build_job(context, settings, BertForPreTraining(context.config)).batches_at
    tests = {
        "held_out": held_out_batches(context.shards, context.tokenizer, settings),
        "foreign": held_out_batches(ShardSet.open(foreign), context.tokenizer, settings),
    }
    side = SIDES[name]
    model = side.load(folder)
    optimizer = build_optimizer(model, settings)
    budget, spent, step, num_tokens = 60.0 * float(minutes), 0.0, 0, 0
    batches_at(0)  # plans the first examples, which isn't part of any step
    for line in sys.stdin:
        until = min(budget, spent + float(line))
        model.train()
        while spent < until:
            rate = learning_rate_at(
                min(SCHEDULE_STEPS - 1, int(spent / budget * SCHEDULE_STEPS)),
                num_steps=SCHEDULE_STEPS,
                peak=settings.learning_rate,
                warmup=settings.warmup,
                schedule=settings.schedule,
            )
            (batch,) = batches_at(step)
            assert isinstance(batch, PreTrainingBatch), "the objective is bert"
            given = side.give(batch)
            torch.manual_seed(derive_seed(settings.seed, step, 0))
            started = time.perf_counter()
            take_step(model, side.loss_of, given, optimizer, rate, settings.clip_norm)
            spent += time.perf_counter() - started
            num_tokens += batch.num_tokens
            step += 1
        row = {"seconds": spent, "steps": step, "tokens": num_tokens}
        print(json.dumps({**row, **evaluate(model, tests)}), flush=True)


def build_settings(model: str) -> PretrainSettings:
    """The paper's recipe, for both sides."""
    return PretrainSettings(
        model=model,
        recipe="paper",
        objective="bert",
        learning_rate=LEARNING_RATE,
        batch_size=BATCH_SIZE,
        device="cpu",
        precision="fp32",
    )


def take_step(
    model: nn.Module,
    loss_of: LossOf,
    given: Any,
    optimizer: torch.optim.Optimizer,
    rate: float,
    clip_norm: float,
) -> None:
    """Forward, backward and AdamW, the same for both sides."""
    optimizer.zero_grad()
    loss_of(model, given).backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()


def evaluate(
    model: nn.Module, tests: dict[str, list[PreTrainingBatch]]
) -> dict[str, dict[str, float]]:
    """Losses and accuracies; transformers' weights are read into our model, which scores faster."""
    with tempfile.TemporaryDirectory() as folder:
        if not isinstance(model, BertForPreTraining):
            model.save_pretrained(folder)  # type: ignore[operator]
            model = BertForPreTraining.from_pretrained(folder)
    return {name: evaluate_batches(model, part, score, CPU) for name, part in tests.items()}


def our_loss(model: BertForPreTraining, batch: PreTrainingBatch) -> Tensor:
    """The loss of a training step."""
    losses, counts = score(model, batch).losses, batch.target_counts
    return torch.stack([losses[name] / count for name, count in counts.items()]).sum()


def their_model(folder: Path) -> nn.Module:
    """The peer, with SDPA attention."""
    from transformers import BertForPreTraining as TheirModel
    from transformers import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    model: nn.Module = TheirModel.from_pretrained(folder, attn_implementation="sdpa")
    return model


def their_loss(model: Any, padded: dict[str, Tensor]) -> Tensor:
    """The loss of a training step, on the padded batch."""
    loss: Tensor = model(**padded).loss
    return loss


SIDES = {
    "bertkit": Side(BertForPreTraining.from_pretrained, lambda batch: batch, our_loss),
    "transformers": Side(their_model, pad_batch, their_loss),
}

if __name__ == "__main__":
    main()
