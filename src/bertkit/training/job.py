"""What the loop is handed: everything that knows a model, a task or a machine."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from bertkit.base.checksums import FileRecord


class Batch(Protocol):
    """What the loop has to know of a batch."""

    @property
    def num_tokens(self) -> int:
        """Real tokens, padding not counted."""

    @property
    def target_counts(self) -> dict[str, int]:
        """How many targets each loss is summed over."""

    def describe(self) -> str:
        """The examples' names, for messages."""

    def to(self, device: torch.device) -> Self:
        """The same batch on another device."""


class Scores(Protocol):
    """Sums over a batch's targets."""

    @property
    def losses(self) -> dict[str, Tensor]:
        """Loss sums, by the names of `target_counts`."""

    @property
    def hits(self) -> dict[str, Tensor]:
        """How often the likeliest answer was right."""


AnyBatch = TypeVar("AnyBatch", bound=Batch)
Score = Callable[[Any, AnyBatch], Scores]
SaveFiles = Callable[[Path], dict[str, FileRecord]]


def keep_learning_rate(name: str) -> float:
    """A factor of 1 for every parameter."""
    del name
    return 1.0


def need_no_steps(step: int) -> Collection[int]:
    """None."""
    del step
    return ()


@dataclass(frozen=True)
class Watched:
    """The held-out metric that tells the best checkpoint.

    Attributes:
        metric: its name among those that `evaluate` gives.
        is_higher_better: False where the lowest value is best.
        patience: evaluations in a row without a better value after which the run ends; None to
            train to the last step.
        is_tie_by_loss: whether of two equal values that with the lower held-out loss is better;
            otherwise the earlier one is.
    """

    metric: str
    is_higher_better: bool
    patience: int | None = None
    is_tie_by_loss: bool = False


@dataclass(frozen=True)
class Job(Generic[AnyBatch]):
    """Everything that knows a model or a task.

    Attributes:
        model: what is trained; on its device.
        batches_at: step → its micro-batches; a pure function.
        score: model and micro-batch → sums of losses; differentiable.
        evaluate: held-out metrics; `loss` among them, which must be finite. It changes nothing, and
            a signal may end it.
        count_operations: floating-point operations of a training step on a micro-batch.
        save_model: writes the model's files into a folder; what was written, by file name.
        save_architecture: the same for all of the model's files but its weights.
        batch_tensors: a micro-batch as named tensors, from which it can be made again.
        shares: metrics from 0 to 1 that are worth watching, and what to call each.
        learning_rate_scale: name of a parameter → factor of its learning rate. A parameter that
            needs no gradient stays as it is.
        watched: by what the best checkpoint is known; None where the last one counts.
        needed_steps: the newest step → steps whose checkpoints are made and stay, such as those
            whose weights will be averaged.
        example_names: what a batch's names of examples are, for messages.
        can_replay: whether `bertkit replay` reads the job's dumps.
    """

    model: nn.Module
    batches_at: Callable[[int], Sequence[AnyBatch]]
    score: Score[AnyBatch]
    evaluate: Callable[[], dict[str, float]]
    count_operations: Callable[[AnyBatch], float]
    save_model: SaveFiles
    save_architecture: SaveFiles
    batch_tensors: Callable[[AnyBatch], dict[str, Tensor]]
    shares: Mapping[str, str]
    learning_rate_scale: Callable[[str], float] = keep_learning_rate
    watched: Watched | None = None
    needed_steps: Callable[[int], Collection[int]] = need_no_steps
    example_names: str = "examples"
    can_replay: bool = False


@dataclass(frozen=True)
class Machine:
    """Where it runs.

    Attributes:
        device: the model's.
        precision: of matrix products.
        peak_operations: floating-point operations a second of matrix products, measured at the
            start.
    """

    device: torch.device
    precision: Literal["fp32", "bf16"]
    peak_operations: float

    def share_of_peak(self, operations_per_second: float) -> float | None:
        """How much of the peak a rate is; None above it.

        Then the peak is too low: other work slowed its measurement.
        """
        share = operations_per_second / self.peak_operations
        return share if share <= 1.0 else None
