"""The processes that train together: one, or those that torchrun started, called ranks.

Every rank runs the same code and takes its share of each step. What is decided, is decided alike in
all of them: by sums over the ranks, or by the first, which alone writes files and messages.

Gradients go through the default process group (NCCL between GPUs, gloo between CPUs). Everything
else is a few numbers, which go through a group of their own on CPUs. There the other ranks wait
while the first one evaluates or saves, for which there is no time limit. A rank that died ends the
wait: its connections are closed.
"""

import atexit
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TypeVar, cast
from uuid import uuid4

import torch
from torch import distributed
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from bertkit.base.errors import SettingsError, StoppedError
from bertkit.base.progress import Launch

LONGEST_WAIT = timedelta(days=7)
POLL_SECONDS = 0.02
LOST_RANK = ("gloo", "NCCL", "onnection", "Broken pipe", "process group")  # in torch's messages

Result = TypeVar("Result")


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes, evaluates and speaks for all."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait until all ranks are here."""
        if self.count > 1:
            distributed.barrier(group=_open_channel())

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums of numbers over all ranks, in float64."""
        return self._reduce(numbers, distributed.ReduceOp.SUM)

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Return for each flag whether it is set in any rank."""
        return tuple(map(bool, self._reduce(flags, distributed.ReduceOp.MAX)))

    def from_first(self, work: Callable[[], Result]) -> Result:
        """Return what `work` returns in the first rank; the others wait for it."""
        found = [work() if self.is_first else None]
        if self.count > 1:
            distributed.broadcast_object_list(
                found, src=0, group=_open_channel(), device=torch.device("cpu")
            )
        return cast("Result", found[0])

    def _reduce(
        self, numbers: Sequence[float], operation: "distributed.ReduceOp.RedOpType"
    ) -> list[float]:
        values = torch.tensor([float(number) for number in numbers], dtype=torch.float64)
        if self.count > 1:
            distributed.all_reduce(values, operation, group=_open_channel())
        found: list[float] = values.tolist()
        return found


ALONE = Ranks()


def current_ranks() -> Ranks:
    """Return the ranks that this process has joined; this process alone if it hasn't."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return ALONE
    return Ranks(distributed.get_rank(), distributed.get_world_size())


@contextmanager
def joined_ranks() -> Iterator[Ranks]:
    """Join the processes that a launcher started with this one, for good.

    Raises:
        StoppedError: another process ended in the middle of the work.
    """
    if Launch.read().num_ranks > 1 and current_ranks() == ALONE:
        store, rank, num_ranks = next(rendezvous("env://"))
        distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
            store=_agree_on_part(store, rank, num_ranks),
            rank=rank,
            world_size=num_ranks,
        )
        atexit.register(_leave)
    ranks = current_ranks()
    try:
        yield ranks
    except RuntimeError as error:
        if ranks.count == 1 or not any(word in str(error) for word in LOST_RANK):
            raise
        raise StoppedError(
            f"rank {ranks.rank} has lost another of the {ranks.count} processes of this run, whose"
            " own message says why; the same command resumes from the newest checkpoint"
        ) from error


def refuse_ranks(what: str) -> None:
    """Raise `SettingsError` if a launcher started several processes."""
    if (num_ranks := Launch.read().num_ranks) > 1:
        raise SettingsError(f"{what} runs in one process, and torchrun started {num_ranks}")


def _agree_on_part(store: Store, rank: int, num_ranks: int) -> Store:
    """Return the part of the launcher's store that belongs to this start of all ranks.

    torchrun starts ranks again with the store that has the addresses of those that died. Here each
    process has a new name, and the first one lists names until every process has seen the same
    list, with its own name in it.

    Source: issue 135712 of pytorch/pytorch.
    """
    own = uuid4().hex
    store.set(f"name/{rank}", own)
    while True:
        if rank == 0:
            named = [store.get(f"name/{n}").decode() for n in range(num_ranks)]
            store.set("names", " ".join(named))
        names = store.get("names").decode()
        part = hashlib.sha256(names.encode()).hexdigest()
        if own in names.split():
            store.set(f"seen/{part}/{rank}", "")
            if store.check([f"seen/{part}/{n}" for n in range(num_ranks)]):
                return PrefixStore(part, store)
        time.sleep(POLL_SECONDS)


@cache
def _open_channel() -> "distributed.ProcessGroup":
    """Return the group in which ranks exchange numbers; all of them open it at the same place."""
    group: distributed.ProcessGroup = distributed.new_group(backend="gloo", timeout=LONGEST_WAIT)
    return group


def _leave() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()
