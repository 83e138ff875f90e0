"""What runs in a child process: the real command, with an eye on every place that it passes.

A place is a named point, the step under way and which visit of the point in that step it is. Points
are the operations of `base/storage.py` on files by their roles, each write half-way too, and what
the loop asks of its job. The library has no hooks for this: module attributes are replaced, here,
in a process that ends with its command.
"""

import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from bertkit.base import storage
from bertkit.base.files import TEMPORARY_SUFFIX
from bertkit.cli.main import main
from bertkit.recipes.pretrain import run as recipe
from bertkit.training import job as job_module
from bertkit.training import replica
from bertkit.training import step as step_module
from bertkit.training.run import Run

NUM_THREADS = 1
PEAK_OPERATIONS = 1e11
# Operations on a path; those on a descriptor are told by the path that it was opened with.
OPENING_OPERATIONS = ("open_new", "open_end")
PATH_OPERATIONS = ("rename", "remove", "make_folder", "remove_empty_folder")


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
        run: the run's folder.
        trace: the file to which it writes each place that it reaches, as it reaches it.
        messages: the file for its standard error.
        signals: what it sends itself where.
        bugs: which of `BUGS` it has.
    """

    words: Sequence[str]
    run: Path
    trace: Path
    messages: Path
    signals: Mapping[Place, Sequence[signal.Signals]]
    bugs: Sequence[str] = ()


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

    def send(self, number: signal.Signals) -> None:
        """Send this process a signal."""
        os.kill(os.getpid(), number)

    def reach_file(self, operation: str, path: Path) -> None:
        """Come to an operation on a file of the run."""
        if path.is_relative_to(self._errand.run):
            role = describe_role(path.relative_to(self._errand.run.parent))
            self.reach(f"{operation} {role}")


def describe_role(path: Path) -> str:
    """The part that a file or folder of a run has: its path without step, and files that are alike
    by one name.
    """
    *folders, name = ("run", *(re.sub(r"step-\d+", "step", part) for part in path.parts[1:]))
    if len(folders) > 2 and not name.startswith("manifest"):
        name = "file" + TEMPORARY_SUFFIX * name.endswith(TEMPORARY_SUFFIX)
    return "/".join([*folders, name])


def carry_out(errand: Errand) -> None:
    """Run the command and end as it ends."""
    put_messages(os.open(errand.messages, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
    for bug in errand.bugs:
        BUGS[bug]()
    sys.exit(run_watched(errand, Watch(errand)))


def put_messages(descriptor: int) -> None:
    """Let both standard streams go somewhere."""
    os.dup2(descriptor, sys.stderr.fileno())
    os.dup2(descriptor, sys.stdout.fileno())


def run_watched(errand: Errand, watch: Watch) -> int:
    """Run the command; its exit code."""
    torch.set_num_threads(NUM_THREADS)
    watch_storage(watch)
    watch_training(watch)
    return main(errand.words)


def watch_storage(watch: Watch) -> None:
    """Let every operation on a file of the run be a place.

    Syncing is a place without effect: what a killed process has written stays with the system, and
    a test that waited for the disk would do nothing else.
    """
    paths: dict[int, Path] = {}

    def opening(name: str) -> Callable[[Path], int]:
        original = getattr(storage, name)

        def open_watched(path: Path) -> int:
            watch.reach_file(name, path)
            descriptor: int = original(path)
            paths[descriptor] = path
            return descriptor

        return open_watched

    def on_path(name: str) -> Callable[..., None]:
        original = getattr(storage, name)

        def operate(path: Path, *rest: Path) -> None:
            watch.reach_file(name, path)
            original(path, *rest)

        return operate

    close, write = storage.close, storage.write

    def close_watched(descriptor: int) -> None:
        watch.reach_file("close", paths[descriptor])
        close(descriptor)

    def write_in_halves(descriptor: int, data: bytes | memoryview) -> int:
        watch.reach_file("write", paths[descriptor])
        half = len(data) // 2
        taken = write(descriptor, data[:half])
        watch.reach_file("half-way in write", paths[descriptor])
        return taken + write(descriptor, data[half:]) if taken == half else taken

    for name in OPENING_OPERATIONS:
        setattr(storage, name, opening(name))
    for name in PATH_OPERATIONS:
        setattr(storage, name, on_path(name))
    storage.close, storage.write = close_watched, write_in_halves
    storage.sync = lambda descriptor: watch.reach_file("sync", paths[descriptor])
    storage.sync_folder = lambda path: watch.reach_file("sync_folder", path)


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

        def score(self, model: Any, batch: Any) -> Any:
            watch.reach("before a micro-batch")
            return super().score(model, batch)

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


def forget_optimizer_state() -> None:
    """Bug: a resumed run begins with a new optimizer."""
    Run.load = lambda *_: None  # type: ignore[method-assign]


def reuse_seeds() -> None:
    """Bug: a process counts its own steps, and a resumed one has the first one's dropout."""
    derive_seed, first_steps = step_module.derive_seed, list[int]()

    def derive_from_start(seed: int, step: int, micro_batch: int) -> int:
        first_steps.append(step)
        return derive_seed(seed, step - first_steps[0], micro_batch)

    step_module.derive_seed = derive_from_start


BUGS: dict[str, Callable[[], None]] = {
    "optimizer state dropped": forget_optimizer_state,
    "seeds reused": reuse_seeds,
}
