"""The interface between a recipe and the training loop: the job to train and the machine."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

import torch
from torch import Tensor

from bertkit.base.checksums import FileRecord
from bertkit.training.device import (
    choose_device,
    choose_precision,
    measure_peak,
    mixed_precision,
    prepare_memory,
)
from bertkit.training.settings import OptimizationSettings


class Batch(Protocol):
    """The interface of a micro-batch."""

    @property
    def num_tokens(self) -> int:
        """Number of tokens, without padding."""

    @property
    def target_counts(self) -> dict[str, int]:
        """Number of targets that each loss is summed over."""

    def describe(self) -> str:
        """Return the examples' names, for messages."""

    def to(self, device: torch.device) -> Self:
        """Return the batch on another device."""


@dataclass(frozen=True)
class Scores:
    """Sums over a batch's targets, by the names of `target_counts`, on the model's device."""

    losses: dict[str, Tensor]
    correct: dict[str, Tensor]  # numbers of correct predictions; empty if none is right or wrong
    counts: dict[str, Tensor] = field(
        default_factory=dict
    )  # other numbers for the log, by their names


AnyBatch = TypeVar("AnyBatch", bound=Batch)
Result = TypeVar("Result")
Score = Callable[[Any, AnyBatch], Scores]
SaveFiles = Callable[[Path], dict[str, FileRecord]]


@dataclass(frozen=True)
class Watched:
    """The held-out metric that selects the best checkpoint and triggers early stopping.

    Attributes:
        metric: its key in the metrics that `evaluate` returns.
        is_higher_better: False if the lowest value is best.
        patience: number of consecutive evaluations without improvement after which the run ends;
            None to train to the last step.
        is_tie_by_loss: whether the lower held-out loss breaks a tie; otherwise the earlier
            checkpoint wins.
        may_be_first: whether the weights before the first step may be the best, because their head
            isn't random.
        stays_on_tie: whether these weights remain the best if a later value is equal, also if its
            loss is lower.
    """

    metric: str
    is_higher_better: bool
    patience: int | None = None
    is_tie_by_loss: bool = False
    may_be_first: bool = False
    stays_on_tie: bool = False


class Lookahead:
    """Calls a function of a step in one thread, one step ahead, while a GPU computes.

    Everything is called in that thread, so the function needs no lock. An error is raised to the
    caller that asks for the step.
    """

    def __init__(self, thread: ThreadPoolExecutor) -> None:
        self._thread = thread
        self._next: tuple[tuple[int, ...], Future[Any]] | None = None

    def forget(self) -> None:
        """Drop what was made ahead, because another example is to follow."""
        self._next = None

    def call(self, function: Callable[..., Result], step: int, *others: int) -> Result:
        """Return what the function returns; if this step was expected, begin with the next one."""
        wanted, expected = (step, *others), self._next
        if expected is not None and expected[0] != wanted:  # such as an earlier step, for a message
            return self._thread.submit(function, *wanted).result()
        made = self._thread.submit(function, *wanted) if expected is None else expected[1]
        self._next = None
        result: Result = made.result()
        following = (step + 1, *others)
        self._next = following, self._thread.submit(function, *following)
        return result


@contextmanager
def open_lookahead(device: torch.device) -> Iterator[Lookahead | None]:
    """Yield a lookahead whose thread ends with the block; None on a CPU.

    There it would take its time from the cores that compute.
    """
    if device.type == "cpu":
        yield None
        return
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as thread:
        yield Lookahead(thread)


def divide_step(size: int, num_micro_batches: int, num_ranks: int) -> list[int]:
    """Return where the micro-batches of a step of so many examples begin, and the last one's end.

    Every rank has as many, one after the other.
    """
    total = num_ranks * -(-min(num_micro_batches, size) // num_ranks)
    return [min(n, size) if size < total else size * n // total for n in range(total + 1)]


@cache
def find_peak(device: torch.device, precision: Literal["fp32", "bf16"]) -> float:
    """Return the peak operations per second of a device, measured once in a process."""
    return measure_peak(device, precision)


@dataclass(frozen=True)
class Machine:
    """The device to train on, and its speed."""

    device: torch.device
    precision: Literal["fp32", "bf16"]
    peak_operations: float  # floating-point operations per second in matrix products, measured

    @classmethod
    def choose(
        cls,
        settings: OptimizationSettings,
        find_hidden_size: Callable[[], int | None] = lambda: None,
    ) -> Self:
        """Choose device and precision, and measure the peak.

        With precision auto on a CPU, `find_hidden_size` is asked for the model's.
        On a CPU under Linux, this process keeps freed memory from then on, because training
        allocates blocks of the same sizes again and again.
        """
        device = choose_device(settings.device)
        if device.type == "cuda":
            torch.cuda.set_device(device)  # NCCL communicates from it
        is_open = settings.precision == "auto" and device.type == "cpu"
        hidden_size = find_hidden_size() if is_open else None
        precision = choose_precision(settings.precision, device, "training", hidden_size)
        prepare_memory(device)
        return cls(device, precision, find_peak(device, precision))

    def mixed_precision(self) -> AbstractContextManager[None]:
        """Compute in the precision within the block."""
        return mixed_precision(self.device, self.precision)

    def share_of_peak(self, operations_per_second: float) -> float | None:
        """Return a rate as a share of the peak; None if it exceeds the peak.

        In that case the peak is too low, because other work slowed its measurement.
        """
        share = operations_per_second / self.peak_operations
        return share if share <= 1.0 else None


class Job(ABC, Generic[AnyBatch]):
    """Everything specific to a model or a task that the training loop needs.

    Attributes:
        num_micro_batches: of a step.
        progress_metrics: metrics from 0 to 1 to display, each with its heading.
        muon_learning_rate: peak learning rate of Muon for the matrices of Transformer blocks; None
            if AdamW updates everything.
        learning_rate_scales: factors of the learning rate by parameter name; 1 for others.
            Parameters that don't require a gradient stay frozen.
        max_steps: the most steps that a plan may have; None for any number.
        lookahead: makes micro-batches ahead, while the loop runs on a GPU.
        last_share: share of the steps, the last ones, that are a phase with examples of its own.
        last_cost: how many times as long such a step takes.
        seconds_after: time to reserve for work after the last step, if the run has a deadline.
        source: what identifies the checkpoint of the first weights; empty if they are random, or
            the run's.
        keep_evaluation: called with the step after each evaluation, in the process that evaluates;
            it may write what the evaluation found beside the metrics.
    """

    model: Any
    machine: Machine
    settings: OptimizationSettings
    num_micro_batches: int = 1
    progress_metrics: Mapping[str, str]
    muon_learning_rate: float | None = None
    learning_rate_scales: Mapping[str, float] = MappingProxyType({})
    max_steps: int | None = None
    watched: Watched | None = None
    lookahead: Lookahead | None = None
    example_names: str = "examples"
    last_share: float = 0.0
    last_cost: float = 1.0
    seconds_after: float = 0.0
    source: dict[str, Any]
    keep_evaluation: Callable[[int], None] | None = None

    @abstractmethod
    def examples_at(self, step: int) -> Sequence[Any]:
        """Return a step's examples, in order; a pure function.

        They may be mere numbers, so that a process that trains on a few of them pays for no others.
        """

    @abstractmethod
    def collate(self, examples: Sequence[Any]) -> AnyBatch:
        """Return the micro-batch of some examples of a step; a pure function."""

    @abstractmethod
    def loss(self, model: Any, batch: AnyBatch) -> Scores:
        """Return the sums of losses of a micro-batch; differentiable."""

    @abstractmethod
    def evaluate(self) -> dict[str, float]:
        """Return held-out metrics, including `loss`, which must be finite.

        It has no side effects, and a signal may interrupt it.
        """

    @abstractmethod
    def count_operations(self, batch: AnyBatch) -> float:
        """Return the floating-point operations of a training step on a micro-batch."""

    @abstractmethod
    def save_rest(self, folder: Path) -> dict[str, FileRecord]:
        """Write the files beside weights and config, such as the tokenizer's."""

    def save_model(self, folder: Path) -> dict[str, FileRecord]:
        """Write the model's files; return their records by file name."""
        return {**self.model.save_pretrained(folder), **self.save_rest(folder)}

    def set_num_steps(self, num_steps: int, phase_step: int | None) -> None:
        """Prepare for so many steps, and for the last phase to begin at `phase_step`.

        It is called before the first step, and where a run with a deadline is planned again.
        `phase_step` is None if the run has no deadline; the phase then begins as `last_share` says.
        """

    def needed_steps(self, step: int) -> Collection[int]:
        """Return steps up to the newest, `step`, whose checkpoints are written and kept.

        Such as those whose weights will be averaged.
        """
        del step
        return ()

    def name_examples(self, step: int) -> str:
        """Return the names of all examples of a step, for messages and the log."""
        return ", ".join(batch.describe() for batch in self.batches_at(step))

    def batches_at(self, step: int) -> list[AnyBatch]:
        """Return all micro-batches of a step."""
        return [part.batch for part in self.share_at(step, rank=0, num_ranks=1)]

    def share_at(self, step: int, rank: int, num_ranks: int) -> list["MicroBatch[AnyBatch]"]:
        """Return the micro-batches of a step that one of several processes computes.

        Every process gets as many, because they communicate in each. The step's micro-batches are
        the same for all numbers of processes that divide their number. One that would have no
        example gets the step's first, which then doesn't count.
        """
        if self.lookahead is None:
            return self.cut(step, rank, num_ranks)
        return self.lookahead.call(self.cut, step, rank, num_ranks)

    def cut(self, step: int, rank: int, num_ranks: int) -> list["MicroBatch[AnyBatch]"]:
        """Make the micro-batches that `share_at` returns."""
        examples = self.examples_at(step)
        size = len(examples)
        borders = divide_step(size, self.num_micro_batches, num_ranks)
        own = (len(borders) - 1) // num_ranks
        return [
            MicroBatch(
                number=number,
                batch=self.collate(examples[borders[number] : borders[number + 1]] or examples[:1]),
                counts=borders[number] < borders[number + 1],
            )
            for number in range(rank * own, (rank + 1) * own)
        ]


@dataclass(frozen=True)
class MicroBatch(Generic[AnyBatch]):
    """A part of a step's examples."""

    number: int  # in the step
    batch: AnyBatch
    counts: bool = True  # False if its examples are another micro-batch's
