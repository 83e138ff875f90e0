"""What runs in a child process: `bertkit prepare`, and an eye on every operation on its output.

A place is the number of an operation of `base/storage.py`, counted from the start, and for a write
whether it was done half. The library has no hooks for this: module attributes are replaced, here,
in a process that ends with its command.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.disk import OPENING_OPERATIONS, OPERATIONS

from bertkit.base import files, storage
from bertkit.cli.main import main
from bertkit.recipes.prepare import plan, work_unit

UNIT_BYTES = 3000  # two files of the tests' corpus
SHARD_TOKENS = 600


class Place(NamedTuple):
    """An operation: how many came before it, its name, and the file's path in the output."""

    number: int
    operation: str
    path: str


@dataclass(frozen=True)
class Errand:
    """What a child is to do.

    Attributes:
        words: the command line.
        output: the folder that is watched.
        trace: the file to which it writes each place that it reaches, as it reaches it.
        number: of the operation at which it is to be stopped.
        sent: the signal that stops it.
        is_written_in_place: a bug: files are written under their final names.
    """

    words: Sequence[str]
    output: Path
    trace: Path
    number: int | None = None
    sent: signal.Signals = signal.SIGKILL
    is_written_in_place: bool = False


def carry_out(errand: Errand) -> None:
    """Run the command and end as it ends."""
    descriptor = os.open(errand.trace.with_suffix(".messages"), os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, sys.stderr.fileno())
    os.dup2(descriptor, sys.stdout.fileno())
    plan.UNIT_BYTES, work_unit.SHARD_TOKENS = UNIT_BYTES, SHARD_TOKENS
    if errand.is_written_in_place:
        write_in_place()
    watch_storage(errand)
    sys.exit(main(errand.words))


def watch_storage(errand: Errand) -> None:
    """Let every operation be a place; none waits for the disk, which a kill doesn't harm."""
    paths: dict[int, Path] = {}
    trace = os.open(errand.trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    num_reached = 0

    def reach(operation: str, subject: Path | int) -> None:
        nonlocal num_reached
        path = subject if isinstance(subject, Path) else paths[subject]
        os.write(
            trace, f"{num_reached}\t{operation}\t{os.path.relpath(path, errand.output)}\n".encode()
        )
        num_reached += 1
        if num_reached - 1 == errand.number:
            os.kill(os.getpid(), errand.sent)

    def watched(name: str) -> Callable[..., Any]:
        original = getattr(storage, name)

        def operate(subject: Path | int, *rest: Any) -> Any:
            reach(name, subject)
            if name in {"sync", "sync_folder"}:
                return None
            result = original(subject, *rest)
            if name in OPENING_OPERATIONS:
                paths[result] = subject
            return result

        return operate

    write = storage.write

    def write_in_halves(descriptor: int, data: bytes | memoryview) -> int:
        reach("write", descriptor)
        taken = write(descriptor, data[: len(data) // 2])
        reach("half-way in write", descriptor)
        return taken + write(descriptor, data[taken:])

    for name in OPERATIONS:
        if name != "write":
            setattr(storage, name, watched(name))
    storage.write = write_in_halves


def write_in_place() -> None:
    """Bug: a file has its final name before it is whole."""
    begin = files.DurableFile.__init__

    def begin_in_place(self: files.DurableFile, path: Path) -> None:
        begin(self, path)
        self._temporary = path

    files.DurableFile.__init__ = begin_in_place  # type: ignore[method-assign]
