"""The objective of BERT: masked language model and next sentence, jointly.

Everything is a pure function: the plan of (seed, epoch, shard), the mask of (seed, epoch, example),
the losses of the batch and the weights.

Source: Devlin et al. 2018, section 3.1 and appendix A.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from bertkit.data.order import ExampleKey, PlannedExample
from bertkit.data.shards import Shard
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import IS_NEXT, NOT_NEXT, BertForPreTraining
from bertkit.nn.packing import PackedBatch
from bertkit.objectives.masking import Masker
from bertkit.objectives.sentence_pairs import (
    A_START,
    A_STOP,
    B_START,
    B_STOP,
    IS_RANDOM,
    Examples,
    PairPlanner,
)

# Which draws a generator is for; part of its key, so that no two uses share their numbers. The
# order of examples has its own, in `data/order.py`.
PLANNING, MASKING = 1, 2


@dataclass(frozen=True)
class PreTrainingBatch:
    """A corrupted batch with what has to be predicted.

    Attributes:
        packed: the sequences, end to end.
        positions: places in the packed batch to predict.
        labels: the words that stood there.
        next_sentence_labels: 0 where B follows A, 1 where it doesn't.
        keys: the examples' names.
    """

    packed: PackedBatch
    positions: Int[Tensor, " masked"]
    labels: Int[Tensor, " masked"]
    next_sentence_labels: Int[Tensor, " sequences"]
    keys: tuple[ExampleKey, ...]

    @property
    def num_tokens(self) -> int:
        """Real tokens; nothing here is padding."""
        return self.packed.num_tokens

    @property
    def target_counts(self) -> dict[str, int]:
        """How many targets each loss is summed over."""
        return {"mlm": len(self.labels), "nsp": len(self.next_sentence_labels)}

    def describe(self) -> str:
        """The examples' names, for messages."""
        return ", ".join(f"{key.epoch}/{key.shard}/{key.index}" for key in self.keys)

    def to(self, device: torch.device) -> Self:
        """The same batch on another device."""
        return replace(
            self,
            packed=self.packed.to(device),
            positions=self.positions.to(device, non_blocking=True),
            labels=self.labels.to(device, non_blocking=True),
            next_sentence_labels=self.next_sentence_labels.to(device, non_blocking=True),
        )


@dataclass(frozen=True)
class BertObjective:
    """Plans, corrupts and scores.

    Args:
        shards: where the examples' tokens are.
        masker: chooses and replaces tokens.
        seed: decides plans and masks.
        max_length: tokens of an example.
        short_rate: share of examples that are cut to a random shorter length.
        cls_id: id of [CLS].
        sep_id: id of [SEP].
    """

    shards: Sequence[Shard]
    masker: Masker
    seed: int
    max_length: int
    short_rate: float
    cls_id: int
    sep_id: int

    def plan(self, epoch: int, shard: int) -> Examples:
        """The examples of one shard for one epoch."""
        source = self.shards[shard]
        return PairPlanner(
            sentence_offsets=source.sentence_offsets,
            document_offsets=source.document_offsets,
            max_length=self.max_length,
            short_rate=self.short_rate,
            generator=np.random.default_rng((self.seed, PLANNING, epoch, shard)),
        ).plan()

    def batch(self, examples: Sequence[PlannedExample]) -> PreTrainingBatch:
        """Lay examples end to end, `[CLS] A [SEP] B [SEP]`, and mask them."""
        cls, sep = np.array([self.cls_id]), np.array([self.sep_id])
        pieces: list[NDArray[np.integer]] = []
        for example in examples:
            shard, row = self.shards[example.key.shard], example.row
            first = shard.tokens(int(row[A_START]), int(row[A_STOP]))
            second = shard.tokens(int(row[B_START]), int(row[B_STOP]))
            pieces += [cls, first, sep, second, sep]
        rows = np.stack([example.row for example in examples])
        lengths_a = rows[:, A_STOP] - rows[:, A_START] + 2
        lengths_b = rows[:, B_STOP] - rows[:, B_START] + 1
        lengths = lengths_a + lengths_b
        masked = self.masker.mask(
            np.concatenate(pieces).astype(np.int64),
            lengths,
            [self._mask_generator(example.key) for example in examples],
        )
        segments = np.repeat(
            np.tile([0, 1], len(rows)), np.stack([lengths_a, lengths_b], axis=1).ravel()
        )
        starts = np.cumsum(lengths) - lengths
        labels = np.where(rows[:, IS_RANDOM] == 1, NOT_NEXT, IS_NEXT)
        return PreTrainingBatch(
            packed=PackedBatch(
                input_ids=torch.from_numpy(masked.input_ids),
                token_type_ids=torch.from_numpy(segments),
                position_ids=torch.from_numpy(
                    np.arange(len(segments)) - np.repeat(starts, lengths)
                ),
                lengths=tuple(lengths.tolist()),
            ),
            positions=torch.from_numpy(masked.positions),
            labels=torch.from_numpy(masked.labels),
            next_sentence_labels=torch.from_numpy(labels),
            keys=tuple(example.key for example in examples),
        )

    def _mask_generator(self, key: ExampleKey) -> np.random.Generator:
        """The generator of one example's mask, by its name alone."""
        words = ((self.seed << 32) + (key.epoch << 8) + MASKING, (key.shard << 40) + key.index)
        return np.random.Generator(np.random.Philox(key=np.array(words, dtype=np.uint64)))


@dataclass(frozen=True)
class PreTrainingLosses:
    """Sums over a batch's targets, on the model's device.

    Attributes:
        losses: cross-entropies, by the names of `target_counts`.
        hits: how often the likeliest answer was right.
    """

    losses: dict[str, Tensor]
    hits: dict[str, Tensor]


def score(model: BertForPreTraining, batch: PreTrainingBatch) -> PreTrainingLosses:
    """Both losses of a batch, in float32 whatever the model computes in."""
    loss, num_hits, relations = model.masked_loss(batch.packed, batch.positions, batch.labels)
    is_next = batch.next_sentence_labels
    return PreTrainingLosses(
        losses={
            "mlm": loss,
            "nsp": F.cross_entropy(relations.float(), is_next, reduction="sum"),
        },
        hits={"mlm": num_hits, "nsp": (relations.detach().argmax(dim=-1) == is_next).sum()},
    )


def count_operations(config: BertConfig, batch: PreTrainingBatch) -> float:
    """Floating-point operations of the matrix products of one training step on a batch.

    A multiplication and an addition are two operations; the way back costs twice the way forth.
    Embedding look-ups, norms and activations are left out.
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    linear = batch.num_tokens * (4 * hidden * hidden + 2 * hidden * inner)
    attention = 2 * hidden * sum(length * length for length in batch.packed.lengths)
    words = len(batch.labels) * (hidden * hidden + hidden * config.vocab_size)
    pooler = len(batch.keys) * hidden * (hidden + 2)
    return 6.0 * (config.num_hidden_layers * (linear + attention) + words + pooler)
