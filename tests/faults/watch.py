"""What runs in a child process: the real command, with an eye on every place that it passes.

A place is a named point, the step under way and which visit of the point in that step it is. Points
are the operations of `base/storage.py` on files of the output by their roles, each write half-way
too, and what the training loop asks of its job. The library has no hooks for this: module
attributes are replaced, here, in a process that ends with its command.
"""

import errno
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from tests.faults.disk import OPENING_OPERATIONS, SYNCING_OPERATIONS, stand_in

from bertkit.base.files import TEMPORARY_SUFFIX
from bertkit.cli.main import main
from bertkit.inference import stream
from bertkit.recipes.prepare import plan, work_unit
from bertkit.recipes.pretrain import run as recipe
from bertkit.retrieval import unfinished_vectors
from bertkit.training import job as job_module
from bertkit.training import replica

FULL_DISK = "full disk"
Fault = signal.Signals | Literal["full disk"]

NUM_THREADS = 1
PEAK_OPERATIONS = 1e11
UNIT_BYTES = 3000  # two files of the tests' corpus
WINDOW_TEXTS = 8


class Place(NamedTuple):
    """Where a process was, or is to be met."""

    step: int
    point: str
    visit: int


@dataclass(frozen=True)
class Errand:
    """What a child is to do.

    Attributes:
        words: the command line.
        output: the folder that is watched, or one that has all outputs.
        signals: what it sends itself where, or what happens there.
        is_small: whether parts have few tokens, and studies take a moment.
    """

    words: Sequence[str]
    output: Path
    signals: Mapping[Place, Sequence[Fault]] = field(default_factory=dict)
    is_small: bool = False

    @property
    def trace(self) -> Path:
        """The file to which it writes each place that it reaches, as it reaches it."""
        return self.output.with_name(self.output.name + ".trace")

    @property
    def messages(self) -> Path:
        """The file for its standard output and standard error."""
        return self.output.with_name(self.output.name + ".messages")


class Watch:
    """Notes each place that is reached, and sends the signals that are due there."""

    def __init__(self, errand: Errand) -> None:
        self.step = 0
        self._errand = errand
        self._visits: Counter[tuple[int, str]] = Counter()
        self._trace = os.open(errand.trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def reach(self, point: str) -> None:
        """Come to a point."""
        place = Place(self.step, point, self._visits[self.step, point])
        self._visits[self.step, point] += 1
        os.write(self._trace, f"{place.step}\t{place.point}\t{place.visit}\n".encode())
        for number in self._errand.signals.get(place, ()):
            self.send(number)

    def send(self, number: Fault) -> None:
        """Send this process a signal, or let the operation under way find the disk full."""
        if number == FULL_DISK:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.kill(os.getpid(), number)

    def reach_file(self, operation: str, path: Path) -> None:
        """Come to an operation on a file of the output."""
        if path.is_relative_to(self._errand.output):
            role = describe_role(path.relative_to(self._errand.output.parent))
            self.reach(f"{operation} {role}")


def describe_role(path: Path) -> str:
    """The part of a file or folder: its path without step; files of a checkpoint have one name."""
    *folders, name = ("run", *(re.sub(r"step-\d+", "step", part) for part in path.parts[1:]))
    if len(folders) > 2 and not name.startswith("manifest"):
        name = "file" + TEMPORARY_SUFFIX * name.endswith(TEMPORARY_SUFFIX)
    return "/".join([*folders, name])


def carry_out(errand: Errand) -> None:
    """Run the command and end as it ends."""
    descriptor = os.open(errand.messages, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, sys.stderr.fileno())
    os.dup2(descriptor, sys.stdout.fileno())
    sys.exit(run_watched(errand, Watch(errand)))


def run_watched(errand: Errand, watch: Watch) -> int:
    """Run the command; its exit code."""
    torch.set_num_threads(NUM_THREADS)
    if errand.is_small:
        make_small()
        if errand.words[0] == "study":
            make_studies_small()
    watch_storage(watch)
    watch_training(watch)
    return main(errand.words)


def make_small() -> None:
    """Many parts of few tokens, and vectors made safe after a few texts."""
    plan.UNIT_BYTES, work_unit.SHARD_TOKENS = UNIT_BYTES, 600
    stream.WINDOW_TEXTS, unfinished_vectors.SAVE_SECONDS = WINDOW_TEXTS, 0.0


def make_studies_small() -> None:
    """Studies of a moment; they need all wings."""
    from bertkit_studies.experiments.steps import Steps
    from bertkit_studies.probes import pretrained_arms
    from bertkit_studies.probes.downstream import TaskTuning

    sizes = {"size": "tiny", "max_length": 32, "batch_size": 4, "eval_examples": 8}
    tuning = TaskTuning(num_train=24, num_dev=24, learning_rate=1e-3, epochs=1.0, batch_size=8)
    smallest = pretrained_arms.PretrainingScale(sizes, tokens=1_000, fine_tuning=tuning)
    pretrained_arms.SCALES["small"] = smallest
    Steps.scales = pretrained_arms.SCALES


def watch_storage(watch: Watch) -> None:
    """Let every operation on a file of the output be a place.

    Syncing is a place without effect: what a killed process has written stays with the system, and
    a test that waited for the disk would do nothing else.
    """
    paths: dict[int, Path] = {}

    def operate(name: str, original: Callable[..., Any], subject: Any, *rest: Any) -> Any:
        path = subject if isinstance(subject, Path) else paths[subject]
        watch.reach_file(name, path)
        if name in SYNCING_OPERATIONS:
            return None
        if name == "write":
            return write_in_halves(original, subject, rest[0])
        result = original(subject, *rest)
        if name in OPENING_OPERATIONS:
            paths[result] = path
        return result

    def write_in_halves(write: Callable[..., int], descriptor: int, data: bytes) -> int:
        half = len(data) // 2
        taken = write(descriptor, data[:half])
        watch.reach_file("half-way in write", paths[descriptor])
        return taken + write(descriptor, data[half:]) if taken == half else taken

    stand_in(setattr, operate)


def watch_training(watch: Watch) -> None:
    """Let what the loop asks of its job and its optimizer be places; leave measuring out."""
    build_optimizer = replica.build_optimizer

    class WatchedJob(recipe.PretrainingJob):
        last_epoch = 0

        def examples_at(self, step: int) -> range:
            watch.step = step + 1
            watch.reach("before a step")
            return super().examples_at(step)

        def collate(self, examples: Sequence[int]) -> Any:
            batch = super().collate(examples)
            epoch = max(key.epoch for key in batch.keys)
            if epoch > self.last_epoch:
                self.last_epoch = epoch
                watch.reach("first examples of another epoch")
            return batch

        def loss(self, model: Any, batch: Any) -> Any:
            watch.reach("before a micro-batch")
            return super().loss(model, batch)

        def evaluate(self) -> dict[str, float]:
            watch.reach("before an evaluation")
            return super().evaluate()

    def build_watched_optimizer(*arguments: Any) -> Any:
        optimizer = build_optimizer(*arguments)
        optimizer.register_step_pre_hook(lambda *_: watch.reach("before the update"))
        optimizer.register_step_post_hook(lambda *_: watch.reach("after the update"))
        return optimizer

    def measure_peak(*_: Any) -> float:
        watch.reach("measuring the machine")
        return PEAK_OPERATIONS

    recipe.PretrainingJob = WatchedJob  # type: ignore[misc]
    replica.build_optimizer = build_watched_optimizer
    job_module.measure_peak = measure_peak
