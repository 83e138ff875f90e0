"""A job in independent parts, which local processes, Ray or the tasks of a scheduler run.

A job is a picklable function of one part. It writes the files of that part, whole or not at all,
and what it writes depends on the job and the part alone. So any engine runs it, a part may be run
twice, and a rerun needs only the parts that are missing.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import Field, PositiveInt, field_validator

from bertkit.base.settings import Settings, in_panel

PARALLEL = ("Parallel work", 6)  # a panel of the help
Advance = Callable[[int], None]  # called with the number of bytes read since the last call


Part_contra = TypeVar("Part_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)


class PartsJob(Protocol[Part_contra, Result_co]):
    """A function of one part, with what all parts share, which each worker unpickles once."""

    @property
    def witness(self) -> Path:
        """A file in the output that exists before the first part, for every worker to see."""

    @property
    def num_gpus(self) -> int:
        """GPUs that a worker uses where there are some: 0 or 1."""

    def __call__(self, part: Part_contra, advance: Advance, /) -> Result_co:
        """Write the files of a part, and return what the caller is to know."""


AnyJob = PartsJob[Any, Any]  # one that another process pickled


@in_panel(*PARALLEL)
class WorkersSettings(Settings):
    """What runs the parts of a job."""

    run_on: str = Field(
        default="local",
        pattern=r"^(local|ray|ray://.+)$",
        description="Where the parts run: local, processes of this machine; ray, the Ray cluster"
        " that it belongs to or that RAY_ADDRESS names; ray://HOST:PORT, another one, through its"
        " client server. All nodes must share the folders of inputs and output.",
    )
    workers: PositiveInt | None = Field(
        default=None,
        description="Number of processes that work at a time. By default prepare has one per core,"
        " other commands have one; on Ray as many as the cluster has cores for.",
    )
    threads: PositiveInt | None = Field(
        default=None,
        description="Threads of each worker. By default OMP_NUM_THREADS, or the cores of this"
        " machine divided among the workers; on Ray 1.",
    )


@in_panel(*PARALLEL)
class PartsSettings(WorkersSettings):
    """The same, and which of the parts this process runs."""

    shard: str | None = Field(
        default=None,
        description="Run a share of the parts: i/n are the parts i, i + n, i + 2n, …, counted from"
        " 0, as in a Slurm array of 0 to n - 1. Several processes then share the output.",
    )

    @field_validator("shard")
    @classmethod
    def _shard_is_one_of_n(cls, text: str | None) -> str | None:
        if text is not None:
            _parse_shard(text)
        return text

    @property
    def share(self) -> slice:
        """The parts that this process runs; all without `shard`."""
        return slice(None) if self.shard is None else slice(*_parse_shard(self.shard))


def _parse_shard(text: str) -> tuple[int, None, int]:
    """Return the arguments of the slice that a shard is."""
    index, _, count = text.partition("/")
    is_number = all(each.isascii() and each.isdigit() for each in (index, count))
    if not is_number or int(index) >= int(count):
        raise ValueError("must be i/n with i from 0 to n - 1, such as 0/4, 1/4, 2/4 and 3/4")
    return int(index), None, int(count)


def count_cores() -> int:
    """The number of cores that this process may use, as a scheduler has set it."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_parts(
    job: PartsJob[Part_contra, Result_co],
    parts: Sequence[Part_contra],
    settings: WorkersSettings,
    advance: Advance,
    *,
    default_workers: int = 1,
) -> Iterator[tuple[int, Result_co]]:
    """Run parts of a job; yield the number of each in `parts`, and its result, as it is done.

    The first error ends the work. A `StoppedError` says that a worker was killed.
    """
    if settings.run_on != "local":
        from bertkit.base.ray_workers import run_on_ray

        yield from run_on_ray(job, parts, settings, advance)
        return
    num_workers = min(settings.workers or default_workers, len(parts))
    if num_workers <= 1 and settings.threads is None:
        yield from ((number, job(part, advance)) for number, part in enumerate(parts))
    elif parts:
        from bertkit.base.local_workers import run_in_processes

        yield from run_in_processes(job, parts, num_workers, settings.threads, advance)


def thread_variables(num_threads: int) -> dict[str, str]:
    """Environment variables that limit the threads of PyTorch and of the tokenizers."""
    return dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS"), str(num_threads))
