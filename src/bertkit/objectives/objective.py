"""What a pre-training objective is: it plans examples, makes batches of them, and scores those.

Everything is a pure function: the plan of (seed, epoch, shard), a batch of (seed, its examples),
the losses of the batch and the weights.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from bertkit.data.order import ExampleKey, PlannedExample
from bertkit.data.shards import Shard
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.pretrained import PretrainedBert
from bertkit.nn.packing import PackedBatch
from bertkit.objectives.settings import ObjectiveSettings
from bertkit.tokenization.tokenizer import Tokenizer

# Which draws a generator is for; part of its key, so that no two uses share their numbers. The
# order of examples has its own, in `data/order.py`.
PLANNING, MASKING = 1, 2

Examples = NDArray[np.int64]


@dataclass(frozen=True)
class WordBatch:
    """Sequences with the words that have to be predicted.

    Attributes:
        packed: the sequences, end to end.
        positions: places in the packed batch to predict from.
        labels: the words that are right there.
        keys: the examples' names.
    """

    word_loss: ClassVar[str]  # what the loss on the words is called
    # Fields that only this kind has, a label a sequence, and how many labels each tells apart.
    label_limits: ClassVar[Mapping[str, int]] = MappingProxyType({})

    packed: PackedBatch
    positions: Int[Tensor, " words"]
    labels: Int[Tensor, " words"]
    keys: tuple[ExampleKey, ...]

    @property
    def num_tokens(self) -> int:
        """Real tokens; nothing here is padding."""
        return self.packed.num_tokens

    @property
    def target_counts(self) -> dict[str, int]:
        """How many targets each loss is summed over."""
        return {self.word_loss: len(self.labels)}

    def describe(self) -> str:
        """The examples' names, for messages."""
        return ", ".join(f"{key.epoch}/{key.shard}/{key.index}" for key in self.keys)

    def to(self, device: torch.device) -> Self:
        """The same batch on another device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=True)
            for name, value in values.items()
            if isinstance(value, Tensor)
        }
        return replace(self, packed=self.packed.to(device), **moved)


@dataclass(frozen=True)
class PreTrainingLosses:
    """Sums over a batch's targets, on the model's device.

    Attributes:
        losses: cross-entropies, by the names of `target_counts`.
        hits: how often the likeliest answer was right.
    """

    losses: dict[str, Tensor]
    hits: dict[str, Tensor]


Batch = TypeVar("Batch", bound=WordBatch)


@dataclass(frozen=True)
class Objective(ABC, Generic[Batch]):
    """Plans, makes batches and scores them.

    Args:
        shards: where the examples' tokens are.
        seed: decides plans, and whatever is drawn for a batch.
        max_length: tokens of an example.
        short_rate: share of examples that are cut to a random shorter length.
        cls_id: id of [CLS].
        sep_id: id of [SEP].
    """

    model_kind: ClassVar[type[PretrainedBert]]
    batch_kind: ClassVar[type[WordBatch]]
    shares: ClassVar[Mapping[str, str]]  # metrics that are worth watching, and names for people
    num_segments: ClassVar[int]  # that the model must know
    num_evaluated: ClassVar[int]  # sequences that an evaluation scores at a time
    is_causal: ClassVar[bool] = False

    shards: Sequence[Shard]
    seed: int
    max_length: int
    short_rate: float
    cls_id: int
    sep_id: int

    @classmethod
    def build(
        cls,
        shards: Sequence[Shard],
        tokenizer: Tokenizer,
        settings: ObjectiveSettings,
        seed: int,
        token_counts: NDArray[np.integer],
    ) -> Self:
        """The objective as settings say.

        Args:
            shards: where the examples' tokens are.
            tokenizer: of the shards.
            settings: what can be chosen.
            seed: as the class has it.
            token_counts: `[vocabulary]`, how often the text that is learned from has each token.

        Raises:
            SettingsError: the settings contradict each other or the text.
        """
        return cls(
            shards=shards,
            seed=seed,
            max_length=settings.max_length,
            short_rate=settings.short_rate,
            cls_id=tokenizer.cls_id,
            sep_id=tokenizer.sep_id,
            **cls.build_parts(tokenizer, settings, token_counts),
        )

    @classmethod
    def build_parts(
        cls, tokenizer: Tokenizer, settings: ObjectiveSettings, token_counts: NDArray[np.integer]
    ) -> dict[str, Any]:
        """The fields that only this kind has; arguments and errors as those of `build`."""
        return {}

    @abstractmethod
    def plan(self, epoch: int, shard: int) -> Examples:
        """The examples of one shard for one epoch, a row each."""

    @abstractmethod
    def batch(self, examples: Sequence[PlannedExample]) -> Batch:
        """Lay examples end to end, with what has to be predicted."""

    @staticmethod
    @abstractmethod
    def score(model: Any, batch: Batch) -> PreTrainingLosses:
        """All losses of a batch, in float32 whatever the model computes in."""

    @staticmethod
    def count_operations(config: BertConfig, batch: Batch) -> float:
        """Floating-point operations of the matrix products of one training step on a batch.

        A multiplication and an addition are two operations; the way back costs twice the way
        forth. Embedding look-ups, norms and activations are left out; attention left to right is
        counted as if every token saw all others.
        """
        return 6.0 * count_products(config, batch)


def count_products(config: BertConfig, batch: WordBatch) -> int:
    """Multiplications of one way forth through the encoder, and to the words."""
    hidden, inner = config.hidden_size, config.intermediate_size
    linear = batch.num_tokens * (4 * hidden * hidden + 2 * hidden * inner)
    attention = 2 * hidden * sum(length * length for length in batch.packed.lengths)
    words = len(batch.labels) * (hidden * hidden + hidden * config.vocab_size)
    return config.num_hidden_layers * (linear + attention) + words


def number_positions(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each token in its sequence, for sequences laid end to end."""
    starts = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) - np.repeat(starts, lengths)
