"""What encoding returns: token ids of one text or pair, and of a batch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Encoding:
    """One text or pair as the model reads it: `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`.

    Attributes:
        ids: token ids.
        token_type_ids: 0 for `[CLS] A [SEP]`, 1 for `B [SEP]`.
        offsets: where each token stands in its own text, as `text[start:stop]`; (0, 0) for special
            tokens that encoding put in.
        tokens: the vocabulary entries.
    """

    ids: list[int]
    token_type_ids: list[int]
    offsets: list[tuple[int, int]]
    tokens: list[str]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class BatchEncoding:
    """Several encodings of one length, as int64 arrays of shape [batch, length].

    Attributes:
        input_ids: token ids, filled up with [PAD].
        token_type_ids: 0 for the first text and for padding, 1 for the second.
        attention_mask: 1 for tokens, 0 for padding.
    """

    input_ids: npt.NDArray[np.int64]
    token_type_ids: npt.NDArray[np.int64]
    attention_mask: npt.NDArray[np.int64]


def cut_longest_first(length_a: int, length_b: int, budget: int) -> tuple[int, int]:
    """How many tokens of each text to keep, so that both together fit into the budget.

    Always the longer text loses its last token, the second where both are equally long.

    Source: google-research/bert `run_classifier.py`, `_truncate_seq_pair`.
    """
    if length_a + length_b <= budget:
        return length_a, length_b
    kept_b = min(length_b, max(budget - length_a, budget // 2))
    return budget - kept_b, kept_b


def stack_padded(
    rows: Sequence[tuple[list[int], list[int]]], length: int, pad_id: int
) -> BatchEncoding:
    """Lay (ids, token types) of several sequences under one another, filled up to `length`."""
    shape = (len(rows), length)
    input_ids = np.full(shape, pad_id, dtype=np.int64)
    token_type_ids = np.zeros(shape, dtype=np.int64)
    attention_mask = np.zeros(shape, dtype=np.int64)
    for row, (ids, types) in enumerate(rows):
        input_ids[row, : len(ids)] = ids
        token_type_ids[row, : len(types)] = types
        attention_mask[row, : len(ids)] = 1
    return BatchEncoding(input_ids, token_type_ids, attention_mask)
