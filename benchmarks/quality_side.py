"""One side of `bench_quality.py`: a model that is pre-trained for a while when told to.

    python benchmarks/quality_side.py {bertkit,transformers} MODEL MINUTES FOLDER DATA FOREIGN

Each line of standard input is a number of seconds; it trains for that long by a clock of its own,
which runs during steps only, evaluates, and answers with a line of JSON.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bertkit.data.shards import ShardSet
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.recipes.pretrain.job import held_out_batches
from bertkit.recipes.pretrain.run import Pretraining
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tasks.objectives.bert import BertObjective, PreTrainingBatch
from bertkit.training.job import Machine
from bertkit.training.optimizer import build_optimizer
from bertkit.training.step import derive_seed, evaluate_batches
from devices import Place
from pretraining_sides import import_side
from program import answer, obey
from sides import Stepper

CPU = torch.device("cpu")
SCHEDULE_STEPS = 100_000  # the schedule follows the share of the time that is spent
LEARNING_RATE, BATCH_SIZE = 1e-3, 32


def main() -> None:
    name, model_name, minutes, *paths = sys.argv[1:]
    folder, data, foreign = map(Path, paths)
    settings = build_settings(model_name)
    recipe = Pretraining(data, settings)
    recipe.open_data()
    job = recipe.open(None, Machine.choose(settings))
    batches_at = job.batches_at
    tests = {
        "held_out": job.held_out,
        "foreign": held_out_batches(ShardSet.open(foreign), recipe.tokenizer, settings),
    }
    side = import_side(name)
    model = side.load(folder)
    stepper = Stepper(model, Place.of("cpu"), build_optimizer(model, settings))
    assert settings.clip_norm == 1.0, "a step of sides.py clips at 1"
    budget, spent, step, num_tokens = 60.0 * float(minutes), 0.0, 0, 0
    batches_at(0)  # plans the first examples, which isn't part of any step

    def train(line: str) -> dict[str, Any]:
        nonlocal spent, step, num_tokens
        until = min(budget, spent + float(line))
        model.train()
        while spent < until:
            place = min(SCHEDULE_STEPS - 1, int(spent / budget * SCHEDULE_STEPS))
            rate = settings.learning_rate_at(place, SCHEDULE_STEPS)
            (batch,) = batches_at(step)
            assert isinstance(batch, PreTrainingBatch), "the objective is bert"
            given = side.give(batch)
            for group in stepper.optimizer.param_groups:
                group["lr"] = rate
            torch.manual_seed(derive_seed(settings.seed, step, 0))
            spent += stepper.take(partial(side.loss_of, model, given))["seconds"]
            num_tokens += batch.num_tokens
            step += 1
        row = {"seconds": spent, "steps": step, "tokens": num_tokens}
        return {**row, **evaluate(model, tests)}

    answer({})
    obey(train)


def build_settings(model: str) -> PretrainSettings:
    """The paper's recipe, for both sides."""
    return PretrainSettings(
        size=model,
        recipe="paper",
        objective="bert",
        learning_rate=LEARNING_RATE,
        batch_size=BATCH_SIZE,
        device="cpu",
        precision="fp32",
    )


def evaluate(
    model: nn.Module, tests: dict[str, list[PreTrainingBatch]]
) -> dict[str, dict[str, float]]:
    """Losses and accuracies; transformers' weights are read into our model, which scores faster."""
    with tempfile.TemporaryDirectory() as folder:
        if not isinstance(model, BertForPreTraining):
            model.save_pretrained(folder)  # type: ignore[operator]
            model = BertForPreTraining.from_pretrained(folder)
    return {
        name: evaluate_batches(model, part, BertObjective.loss, CPU) for name, part in tests.items()
    }


if __name__ == "__main__":
    main()
