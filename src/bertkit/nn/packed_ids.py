"""The token ids of a packed batch, in NumPy: what engines take.

`PackedBatch.of` makes tensors of them. This file imports neither torch nor jaxtyping, which takes
longer to import than NumPy.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import InputError

Number = TypeVar("Number", bound=np.floating)
MAX_PADDING = 2  # most tokens of a batch, padding included, as a multiple of the token budget


def plan_batches(lengths: Sequence[int], tokens_per_batch: int) -> Iterator[list[int]]:
    """Yield the sequence indices of each batch: similar lengths together, up to a token budget.

    The longest come first, so that a lack of memory shows at once. A sequence longer than the
    budget is a batch of its own. Padded to its longest sequence, a batch of several stays within
    twice the budget, because attention on a GPU in float32 pads.
    """
    chosen: list[int] = []
    num_tokens = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        is_full = num_tokens + lengths[index] > tokens_per_batch
        longest = lengths[chosen[0]] if chosen else 0
        if chosen and (is_full or longest * (len(chosen) + 1) > MAX_PADDING * tokens_per_batch):
            yield chosen
            chosen, num_tokens = [], 0
        chosen.append(index)
        num_tokens += lengths[index]
    if chosen:
        yield chosen


@dataclass(frozen=True, eq=False)
class PackedIds:
    """Token ids of sequences, laid end to end.

    Attributes:
        position_ids: the position of each token in its sequence, from 0.
        lengths: tokens in each sequence, none of them 0.
    """

    input_ids: npt.NDArray[np.int64]  # `[tokens]`
    token_type_ids: npt.NDArray[np.int64]  # `[tokens]`: 0 for segment A, 1 for segment B
    position_ids: npt.NDArray[np.int64]  # `[tokens]`
    lengths: tuple[int, ...]

    @classmethod
    def from_sequences(
        cls, input_ids: Sequence[Sequence[int]], token_type_ids: Sequence[Sequence[int]]
    ) -> Self:
        """Pack lists of token ids.

        Raises:
            InputError: a sequence is empty, or the two arguments differ in length.
        """
        lengths = [len(ids) for ids in input_ids]
        if lengths != [len(ids) for ids in token_type_ids]:
            raise InputError("input_ids and token_type_ids must have the same lengths")
        if not lengths or 0 in lengths:
            raise InputError("a batch needs at least one sequence, and each at least one token")
        ids, segments = (
            np.fromiter(chain.from_iterable(sequences), np.int64, sum(lengths))
            for sequences in (input_ids, token_type_ids)
        )
        return cls.from_flat(ids, np.array(lengths), segments)

    @classmethod
    def from_single(cls, input_ids: Sequence[Sequence[int]]) -> Self:
        """Pack lists of token ids of single texts; all are segment A.

        Raises:
            InputError: a sequence is empty, or there is none.
        """
        return cls.from_sequences(input_ids, [[0] * len(ids) for ids in input_ids])

    @classmethod
    def from_flat(
        cls,
        ids: npt.NDArray[np.integer],
        lengths: npt.NDArray[np.int64],
        segments: npt.NDArray[np.int64] | None = None,
    ) -> Self:
        """Pack token ids that lie end to end already; all are segment A without `segments`.

        No length is 0. The result shares the memory of int64 arrays.
        """
        input_ids = ids.astype(np.int64, copy=False)
        starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        segments = np.zeros_like(input_ids) if segments is None else segments
        return cls(input_ids, segments, np.arange(len(ids)) - starts, tuple(lengths.tolist()))

    @property
    def num_tokens(self) -> int:
        """Number of tokens of all sequences."""
        return len(self.input_ids)

    @property
    def first_tokens(self) -> npt.NDArray[np.int64]:
        """The index of each sequence's first token, [CLS]."""
        return np.cumsum((0, *self.lengths[:-1]))


def reduce_sequences(
    tokens: npt.NDArray[Number],
    lengths: Iterable[int],
    how: np.ufunc = np.add,
) -> npt.NDArray[Number]:
    """Reduce `[tokens, features]` to a row for each sequence, such as a sum; no length is 0.

    Neighbors of one length are reduced together, which is several times faster than `reduceat`.
    """
    rows, stop = [], 0
    for length, run in groupby(lengths):
        number = sum(1 for _ in run)
        start, stop = stop, stop + number * length
        rows.append(how.reduce(tokens[start:stop].reshape(number, length, -1), axis=1))
    return np.concatenate(rows)
