"""The base of the pre-training objectives: plan examples, build batches and compute losses.

Each is a pure function: a plan of (seed, epoch, shard), a batch of (seed, its examples), and losses
of the batch and the weights.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from bertkit.data.order import ExampleKey, PlannedExample
from bertkit.data.shards import Shard
from bertkit.models.bert.heads import WordScoringBert
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.objectives.settings import ObjectiveSettings
from bertkit.tokenization.encoding import Template
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Scores

# The use of a random generator; part of its key, so that no two uses share random numbers. The
# order of examples has its own generator, in `data/order.py`.
PLANNING, MASKING = 1, 2

Examples = NDArray[np.int64]


@dataclass(frozen=True)
class WordBatch:
    """Sequences with the words to predict."""

    word_loss: ClassVar[str]  # the name of the loss on the words

    packed: PackedBatch
    positions: Int[Tensor, " words"]  # in the packed batch to predict from
    labels: Int[Tensor, " words"]  # the correct words there
    keys: tuple[ExampleKey, ...]  # identify the examples

    @property
    def num_tokens(self) -> int:
        """Number of tokens; there is no padding."""
        return self.packed.num_tokens

    @property
    def target_counts(self) -> dict[str, int]:
        """Number of targets that each loss is summed over."""
        return {self.word_loss: len(self.labels)}

    def describe(self) -> str:
        """Return the examples' keys, for messages."""
        return ", ".join(f"{key.epoch}/{key.shard}/{key.index}" for key in self.keys)

    def to(self, device: torch.device) -> Self:
        """Return the batch on another device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=True)
            for name, value in values.items()
            if isinstance(value, Tensor)
        }
        return replace(self, packed=self.packed.to(device), **moved)


Batch = TypeVar("Batch", bound=WordBatch)


@dataclass(frozen=True)
class Objective(ABC, Generic[Batch]):
    """Plans examples, builds batches and computes losses."""

    model_kind: ClassVar[type[WordScoringBert]]
    batch_kind: ClassVar[type[WordBatch]]
    # accuracies to show during training, with column headings
    progress_metrics: ClassVar[Mapping[str, str]]
    num_texts: ClassVar[int]  # of an example
    num_evaluated: ClassVar[int]  # sequences that an evaluation computes at a time
    # whether the model reads as many tokens as in this training, whatever it read before
    sets_length: ClassVar[bool] = False

    shards: Sequence[Shard]
    seed: int  # determines plans and all random choices of a batch
    max_length: int  # tokens of an example, special tokens included
    short_rate: float  # share of examples that are cut to a random shorter length
    template: Template

    @classmethod
    def build(
        cls,
        shards: Sequence[Shard],
        tokenizer: Tokenizer,
        settings: ObjectiveSettings,
        seed: int,
    ) -> Self:
        """Build the objective."""
        return cls(
            shards=shards,
            seed=seed,
            max_length=settings.max_length,
            short_rate=settings.short_rate,
            template=tokenizer.template,
            **cls.build_parts(tokenizer, settings),
        )

    @classmethod
    def build_parts(cls, tokenizer: Tokenizer, settings: ObjectiveSettings) -> dict[str, Any]:
        """Build the fields that only a subclass has; arguments and errors as in `build`."""
        return {}

    @abstractmethod
    def plan(self, epoch: int, shard: int) -> Examples:
        """Plan the examples of one shard for one epoch, one row each."""

    @abstractmethod
    def batch(self, examples: Sequence[PlannedExample]) -> Batch:
        """Concatenate examples and add their targets."""

    @staticmethod
    @abstractmethod
    def loss(model: Any, batch: Batch) -> Scores:
        """Compute all losses of a batch, in float32 whatever the model's precision."""


AnyObjective: TypeAlias = Objective[Any]
