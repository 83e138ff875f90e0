"""Examples as token ids, and a batch of them as the training loop takes it."""

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
    """One sequence as the model reads it, special tokens included.

    Attributes:
        ids: token ids.
        segments: 0 for segment A, 1 for segment B.
    """

    ids: list[int]
    segments: list[int]


@dataclass(frozen=True)
class Encoded:
    """An example as the model reads it.

    Attributes:
        sequences: one; several where a long text is read in windows, or where there are choices.
        labels: what the loss compares with, a row for each thing that is scored; rows of all
            examples of a batch follow one another. -100 is ignored. None where there is no answer.
        num_flags: where an example may have any number of labels, how many labels there are:
            `labels` are the numbers of its own then, and become a row of zeros and ones in a batch.
        is_cut: whether tokens were left out.
        alignment: what the task needs to find its way back to the text.
    """

    sequences: tuple[TokenSequence, ...]
    labels: npt.NDArray[Any] | None = None
    is_cut: bool = False
    alignment: Any = None
    num_flags: int | None = None

    @property
    def label_rows(self) -> npt.NDArray[Any]:
        """The rows that the loss compares with."""
        assert self.labels is not None, "only examples with an answer have rows"
        if self.num_flags is None:
            return self.labels
        row = np.zeros((1, self.num_flags), dtype=np.float32)
        row[0, self.labels] = 1.0
        return row

    @property
    def num_tokens(self) -> int:
        """Tokens of all its sequences."""
        return sum(len(sequence.ids) for sequence in self.sequences)


@dataclass(frozen=True)
class TaskBatch:
    """Some examples, packed.

    Attributes:
        packed: the sequences of all examples, end to end.
        labels: as in `Encoded`, of one example after the other.
        num_sequences: sequences of each example.
        numbers: of the examples in their table, from 0; for messages.
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
        """Real tokens; nothing here is padding."""
        return self.packed.num_tokens

    @property
    def target_counts(self) -> dict[str, int]:
        """How many labels the loss is summed over."""
        return {"task": self._num_targets}

    @cached_property
    def _num_targets(self) -> int:
        if self.labels.dim() > 1 or self.labels.is_floating_point():
            return len(self.labels)
        return int((self.labels != IGNORED_LABEL).sum())

    def describe(self) -> str:
        """The examples' numbers, for messages."""
        return ", ".join(map(str, self.numbers))

    def to(self, device: torch.device) -> Self:
        """The same batch on another device."""
        return replace(
            self,
            packed=self.packed.to(device),
            labels=self.labels.to(device, non_blocking=True),
        )


def pack_sequences(sequences: Sequence[TokenSequence]) -> PackedBatch:
    """Sequences end to end."""
    return PackedBatch.from_sequences(
        [sequence.ids for sequence in sequences], [sequence.segments for sequence in sequences]
    )


def batch_tensors(batch: TaskBatch) -> dict[str, Tensor]:
    """All of a batch as named tensors, for a file."""
    return {
        "input_ids": batch.packed.input_ids,
        "token_type_ids": batch.packed.token_type_ids,
        "position_ids": batch.packed.position_ids,
        "lengths": torch.tensor(batch.packed.lengths),
        "labels": batch.labels,
        "num_sequences": torch.tensor(batch.num_sequences),
        "numbers": torch.tensor(batch.numbers),
    }
