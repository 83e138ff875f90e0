"""What the loop is handed: everything that knows a model, a task or a machine."""

from collections.abc import Callable, Mapping, Sequence
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


@dataclass(frozen=True)
class Job(Generic[AnyBatch]):
    """Everything that knows a model or a task.

    Attributes:
        model: what is trained; on its device.
        batches_at: step → its micro-batches; a pure function.
        score: model and micro-batch → sums of losses; differentiable.
        evaluate: held-out metrics; `loss` among them. It changes nothing, and a signal may end it.
        count_operations: floating-point operations of a training step on a micro-batch.
        save_model: writes the model's files into a folder; what was written, by file name.
        save_architecture: the same for all of the model's files but its weights.
        batch_tensors: a micro-batch as named tensors, from which it can be made again.
        shares: metrics from 0 to 1 that are worth watching, and what to call each.
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


@dataclass(frozen=True)
class Machine:
    """Where it runs.

    Attributes:
        device: the model's.
        precision: of matrix products.
        peak_operations: floating-point operations a second of a large matrix product.
    """

    device: torch.device
    precision: Literal["fp32", "bf16"]
    peak_operations: float
