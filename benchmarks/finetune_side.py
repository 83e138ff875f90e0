"""One side of `bench_finetune.py`: fine-tuning in a process of its own, some steps when told to.

    python benchmarks/finetune_side.py SIDE SET DATA FOLDER DEVICE PRECISION

FOLDER has `model/`, from which all sides begin, and `batches.json`, the numbers of the features of
each batch. Each line of standard input is a number of steps; the answer is a line of JSON. Whole
programs run: bertkit's loop with its log, and transformers' `Trainer`; both are held between steps.
"""

import json
import sys
import time
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, set_seed

from bertkit.recipes.finetune.job import FineTuningJob
from bertkit.recipes.finetune.run import FineTuning, Sources
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.table import TASKS
from bertkit.tasks.task_batch import TaskBatch
from bertkit.training.device import prepare_memory
from bertkit.training.job import Machine
from bertkit.training.loop import fit
from bertkit.training.record import RunState
from bertkit.training.run import Run
from devices import Place
from finetune_peers import build_collator, build_peer_task, inputs_of, load_peer_model
from peer_trainer import Recipe, build_arguments
from program import answer, be_quiet
from task_sets import TaskSet, prepare_set, read_part

MANY_EPOCHS = 1000
NEVER = 1 << 40


class Pace:
    """Lets so many steps go by as standard input says, and answers how long they took."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.steps_left = 0
        self.started, self.cpu_started = 0.0, 0.0
        self.done: dict[str, int | Tensor] = {"sequences": 0, "tokens": 0, "places": 0}

    def wait(self) -> None:
        """Answer, when the steps are done, and wait for more."""
        if self.steps_left:
            return
        self.place.synchronize()
        if self.started:
            answer(
                {
                    "seconds": time.perf_counter() - self.started,
                    "cpu_seconds": time.process_time() - self.cpu_started,
                    **{name: int(number) for name, number in self.done.items()},
                    "peak_memory_bytes": self.place.peak_memory_bytes(),
                }
            )
        line = sys.stdin.readline()
        if not line:
            sys.exit()
        self.steps_left = int(line)
        self.done = dict.fromkeys(self.done, 0)
        self.cpu_started = time.process_time()
        self.started = time.perf_counter()

    def count(self, sequences: int, tokens: int | Tensor, places: int) -> None:
        """Note a step; a number on the device is read when the steps are done, not waited for."""
        self.steps_left -= 1
        for name, number in zip(self.done, (sequences, tokens, places), strict=True):
            self.done[name] += number


def main() -> None:
    """Build the side, tell the loss of the first batch without dropout, then obey."""
    side, name, data, folder, device, precision = sys.argv[1:]
    place = Place.of(device, precision)
    be_quiet()
    task_set = prepare_set(Path(data), name, Path(folder))
    if side == "bertkit":
        train_bertkit(task_set, Path(folder), place)
        return
    if side == "kept":
        prepare_memory(torch.device("cpu"))
    train_transformers(task_set, Path(folder), place, is_grouped=side == "grouped")


def train_bertkit(task_set: TaskSet, folder: Path, place: Place) -> None:
    """Ours: the job of `bertkit finetune`, whose batches are handed out at the pace."""
    settings = FineTuneSettings(
        epochs=MANY_EPOCHS,
        batch_size=Recipe.batch_size,
        learning_rate=Recipe.learning_rate,
        eval_every=NEVER,
        checkpoint_every=NEVER,
        device=str(place.device),
        precision=place.precision,
    )
    job, pace = open_job(task_set, folder / "model", settings), Pace(place)

    def collate(examples: Sequence[int]) -> TaskBatch:
        pace.wait()
        batch = job.collate(examples)
        pace.count(
            sequences=len(batch.packed.lengths), tokens=batch.num_tokens, places=batch.num_tokens
        )
        return batch

    (first,) = job.batches_at(0)
    with torch.no_grad(), place.mixed_precision():
        scores = job.loss(job.model.eval(), first.to(place.device))
        answer({"loss": float(scores.losses["task"]) / first.target_counts["task"]})
    paced = copy(job)
    paced.collate, paced.watched = collate, None  # type: ignore[method-assign]
    paced.evaluate = lambda: {"loss": 0.0}  # type: ignore[method-assign]
    run = Run(folder / "run")
    run.folder.mkdir()
    fit(paced, run, RunState(), NEVER)


def open_job(task_set: TaskSet, model: Path, settings: FineTuneSettings) -> FineTuningJob:
    """What `bertkit finetune` would train on."""
    sources = Sources(
        task_set.task, str(model), str(task_set.parts["train"]), str(task_set.parts["dev"])
    )
    task_settings = TASKS[task_set.task].settings(**task_set.columns)
    return FineTuning(sources, task_settings, settings).open(None, Machine.choose(settings))


class PacedTrainer(Trainer):  # type: ignore[misc]
    """A trainer that counts, and may be given its batches."""

    pace: Pace
    batches: list[list[int]] | None = None

    def training_step(self, model: Any, inputs: dict[str, Tensor], *rest: Any) -> Tensor:
        mask = inputs["attention_mask"]
        self.pace.count(len(mask), mask.sum(), mask.numel())
        loss: Tensor = super().training_step(model, inputs, *rest)
        return loss

    def get_train_dataloader(self) -> DataLoader[Any]:
        if self.batches is None:
            loader: DataLoader[Any] = super().get_train_dataloader()
            return loader
        return DataLoader(
            self.train_dataset, batch_sampler=self.batches, collate_fn=self.data_collator
        )


class Hold(TrainerCallback):  # type: ignore[misc]
    """Holds a trainer between steps."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.pace.wait()


def train_transformers(task_set: TaskSet, folder: Path, place: Place, *, is_grouped: bool) -> None:
    """Theirs, with the parent's batches or with batches grouped by length."""
    set_seed(0)
    task = build_peer_task(task_set, folder / "model")
    features = task.build_features(read_part(task_set, "train"))
    batches = json.loads((folder / "batches.json").read_text())
    model, inputs = load_peer_model(task, folder / "model").to(place.device), inputs_of(features)
    collate = build_collator(task)
    first = [collate([inputs[number]]) for number in batches[0]]
    with place.mixed_precision():
        answer({"loss": find_loss(model, first, place)})
    strategy = "group_by_length" if is_grouped else "random"
    arguments = build_arguments(
        Recipe(epochs=MANY_EPOCHS),
        folder / "output",
        train_sampling_strategy=strategy,
        use_cpu=not place.is_gpu,
        dataloader_pin_memory=place.is_gpu,
        bf16=place.precision == "bf16",
    )
    trainer = PacedTrainer(model, arguments, collate, train_dataset=inputs)
    trainer.pace = Pace(place)
    trainer.batches = None if is_grouped else batches
    trainer.add_callback(Hold(trainer.pace))
    trainer.train()


@torch.no_grad()
def find_loss(model: Any, sequences: list[dict[str, Tensor]], place: Place) -> float:
    """The loss without dropout, of each sequence by itself.

    In a padded batch padding is among the places where transformers' loss looks for answers.
    """
    model.eval()
    weights = [int((one["labels"] >= 0).sum()) if "labels" in one else 1 for one in sequences]
    moved = [{name: each.to(place.device) for name, each in one.items()} for one in sequences]
    losses = [float(model(**one).loss) for one in moved]
    pairs = zip(losses, weights, strict=True)
    return sum(loss * weight for loss, weight in pairs) / sum(weights)


if __name__ == "__main__":
    main()
