"""Encoded examples, and the packed batches that the training loop takes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Shaped
from torch import Tensor

from bertkit.nn.packing import PackedBatch

IGNORED_LABEL = -100


class TokenSequence(NamedTuple):
    """An encoded sequence, special tokens included.

    Attributes:
        ids: token ids.
        segments: 0 for segment A, 1 for segment B.
    """

    ids: list[int]
    segments: list[int]


@dataclass(frozen=True)
class Encoded:
    """An encoded example.

    Attributes:
        sequences: one; several for the windows of a long text, or for multiple choice.
        labels: targets of the loss, one row for each unit that the task scores (example, token or
            window); a batch concatenates them. -100 is ignored. None if there is no answer.
        num_flags: for multi-label tasks, the number of labels: `labels` then holds the ids of the
            example's own labels, and becomes a multi-hot row in a batch.
        is_cut: whether tokens were left out.
        alignment: task-specific data that maps tokens back to the text.
    """

    sequences: tuple[TokenSequence, ...]
    labels: npt.NDArray[Any] | None = None
    is_cut: bool = False
    alignment: Any = None
    num_flags: int | None = None

    @property
    def label_rows(self) -> npt.NDArray[Any]:
        """Targets of the loss; for multi-label tasks one multi-hot row."""
        assert self.labels is not None, "only examples with an answer have rows"
        if self.num_flags is None:
            return self.labels
        row = np.zeros((1, self.num_flags), dtype=np.float32)
        row[0, self.labels] = 1.0
        return row

    @property
    def num_tokens(self) -> int:
        """Number of tokens in all sequences."""
        return sum(len(sequence.ids) for sequence in self.sequences)


@dataclass(frozen=True)
class TaskBatch:
    """A packed batch of examples.

    Attributes:
        packed: the sequences of all examples, concatenated.
        labels: as in `Encoded`, concatenated over the examples.
        num_sequences: number of sequences of each example.
        numbers: row numbers of the examples in their table, from 0; for messages.
    """

    packed: PackedBatch
    labels: Shaped[Tensor, "rows *rest"]
    num_sequences: tuple[int, ...]
    numbers: tuple[int, ...]

    @classmethod
    def collate(cls, encoded: Sequence[Encoded], numbers: Sequence[int]) -> Self:
        """Pack examples that have labels."""
        return cls(
            packed=pack_sequences(list(chain.from_iterable(one.sequences for one in encoded))),
            labels=torch.from_numpy(np.concatenate([one.label_rows for one in encoded])),
            num_sequences=tuple(len(one.sequences) for one in encoded),
            numbers=tuple(numbers),
        )

    @property
    def num_tokens(self) -> int:
        """Number of tokens; a packed batch has no padding."""
        return self.packed.num_tokens

    @property
    def target_counts(self) -> dict[str, int]:
        """Number of targets that the loss is summed over."""
        return {"task": self._num_targets}

    @cached_property
    def _num_targets(self) -> int:
        if self.labels.dim() > 1 or self.labels.is_floating_point():
            return len(self.labels)
        return int((self.labels != IGNORED_LABEL).sum())

    def describe(self) -> str:
        """Return the examples' row numbers, for messages."""
        return ", ".join(map(str, self.numbers))

    def to(self, device: torch.device) -> Self:
        """Return the same batch on another device."""
        return replace(
            self,
            packed=self.packed.to(device),
            labels=self.labels.to(device, non_blocking=True),
        )


def pack_sequences(sequences: Sequence[TokenSequence]) -> PackedBatch:
    """Concatenate sequences into a packed batch."""
    return PackedBatch.from_sequences(
        [sequence.ids for sequence in sequences], [sequence.segments for sequence in sequences]
    )


def batch_tensors(batch: TaskBatch) -> dict[str, Tensor]:
    """Return the whole batch as named tensors, to be saved."""
    return {
        "input_ids": batch.packed.input_ids,
        "token_type_ids": batch.packed.token_type_ids,
        "position_ids": batch.packed.position_ids,
        "lengths": torch.tensor(batch.packed.lengths),
        "labels": batch.labels,
        "num_sequences": torch.tensor(batch.num_sequences),
        "numbers": torch.tensor(batch.numbers),
    }
