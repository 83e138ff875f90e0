"""One side of `bench_contrastive.py`: an encoder of texts trained by a program of its own.

    python benchmarks/contrastive_side.py '{"side": "bertkit", "folder": "…", …}'

The argument is a `Plan` as JSON. `folder` has `train.csv` and `dev.csv`. The side trains so many
steps and one more, which isn't timed, then prints a line of JSON; with `saved` it writes the model
there. The loop of `bertkit finetune embed` runs with its log, and sentence-transformers' trainer.
"""

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from bertkit.recipes.finetune.run import FineTuning, Sources
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.embed import EmbeddingSettings
from bertkit.tasks.task_batch import TaskBatch
from bertkit.training.device import prepare_memory
from bertkit.training.job import Machine
from bertkit.training.loop import fit
from bertkit.training.record import RunState
from bertkit.training.run import Run
from devices import Place
from peaks import read_status
from program import answer

NEVER = 1 << 40
MANY_EPOCHS = 1000.0
LEARNING_RATE = 2e-5
SCALE = 20.0  # of cosines, and 1 / 0.05


@dataclass(frozen=True)
class Plan:
    """What a side trains.

    Attributes:
        side: bertkit; sentence-transformers; or kept, the latter with freed memory kept as bertkit
            keeps it.
        folder: of the tables.
        model: its folder.
        is_scored: whether rows are pairs with a score.
        num_steps: that are timed.
        batch_size: pairs of a step.
        num_parts: of a batch, whose gradients are cached if there are several.
        seed: of the order and of dropout.
        device: cpu or cuda.
        precision: fp32 or bf16.
        saved: the folder for the trained model; empty for none.
    """

    side: str
    folder: str
    model: str
    is_scored: bool
    num_steps: int
    batch_size: int
    num_parts: int = 1
    seed: int = 0
    device: str = "cpu"
    precision: str = "fp32"
    saved: str = ""


class Clock:
    """Times the steps between the first and the last, and counts the tokens of these."""

    def __init__(self, plan: Plan, place: Place) -> None:
        self.borders, self.place, self.step = (1, plan.num_steps + 1), place, -1
        self.read: list[tuple[float, float]] = []  # at the borders
        self.tokens: int | Tensor = 0
        self.places = 0

    def begin_step(self) -> None:
        self.step += 1
        if self.step in self.borders:
            self.place.synchronize()
            self.read.append((time.perf_counter(), time.process_time()))

    def count(self, tokens: int | Tensor, places: int) -> None:
        """Note what a step trains on; places are tokens with padding."""
        if len(self.read) == 1:
            self.tokens += tokens
            self.places += places

    def answer(self, loss: float) -> None:
        """Tell what was measured, and the loss of the first batch without dropout."""
        started, ended = self.read
        memory = self.place.peak_memory_bytes()
        answer(
            {
                "loss": loss,
                "seconds": ended[0] - started[0],
                "cpu_seconds": ended[1] - started[1],
                "tokens": int(self.tokens),
                "places": self.places,
                "peak_memory_bytes": read_status("VmHWM") if memory is None else memory,
            }
        )


def main() -> None:
    plan = Plan(**json.loads(sys.argv[1]))
    if plan.side == "bertkit":
        train_ours(plan)
        return
    from contrastive_peer import train_theirs  # only there, since libraries take memory

    if plan.side == "kept":
        prepare_memory(torch.device("cpu"))
    train_theirs(plan)


def train_ours(plan: Plan) -> None:
    """The job of `bertkit finetune embed`; nothing is held out while it is timed."""
    place, folder = Place.of(plan.device, plan.precision), Path(plan.folder)
    settings = FineTuneSettings(
        epochs=MANY_EPOCHS,
        batch_size=plan.batch_size,
        learning_rate=LEARNING_RATE,
        seed=plan.seed,
        accumulate=plan.num_parts,
        eval_every=NEVER,
        checkpoint_every=NEVER,
        device=plan.device,
        precision=place.precision,
    )
    sources = Sources("embed", plan.model, str(folder / "train.csv"), str(folder / "dev.csv"))
    job = FineTuning(sources, EmbeddingSettings(loss_temperature=1 / SCALE), settings).open(
        None, Machine.choose(settings)
    )
    first = job.collate(range(plan.batch_size)).to(place.device)
    with torch.no_grad(), place.mixed_precision():
        loss = job.loss(job.model.eval(), first).losses["task"] / plan.batch_size
    clock, paced = Clock(plan, place), copy(job)

    def collate(examples: Sequence[int]) -> TaskBatch:
        clock.begin_step()
        batch = job.collate(examples)
        clock.count(batch.num_tokens, batch.num_tokens)
        return batch

    paced.collate, paced.watched = collate, None  # type: ignore[method-assign]
    paced.evaluate = lambda: {"loss": 0.0}  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as scratch:
        fit(paced, Run(Path(scratch)), RunState(), plan.num_steps + 2)
    clock.answer(float(loss))
    if plan.saved:
        job.save_model(Path(plan.saved))


if __name__ == "__main__":
    main()
