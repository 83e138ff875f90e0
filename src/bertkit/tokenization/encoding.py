"""Encoded texts and pairs, alone and as padded batches; how pairs are truncated."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Encoding:
    """One encoded text or pair: `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`."""

    ids: list[int]
    token_type_ids: list[int]  # 0 for `[CLS] A [SEP]`, 1 for `B [SEP]`
    # `text[start:stop]`; (0, 0) for special tokens that encoding added
    offsets: list[tuple[int, int]]
    tokens: list[str]  # the vocabulary entries

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class BatchEncoding:
    """A padded batch of encodings, as int64 arrays of shape [batch, length]."""

    input_ids: npt.NDArray[np.int64]  # padded with [PAD]
    token_type_ids: npt.NDArray[np.int64]  # 0 for the first text and for padding, 1 for the second
    attention_mask: npt.NDArray[np.int64]  # 1 for tokens, 0 for padding


def cut_longest_first(length_a: int, length_b: int, budget: int) -> tuple[int, int]:
    """Return how many tokens of each text to keep so that both together fit the budget.

    The longer text loses its last token, repeatedly; if both are equally long, the second does.

    Source: google-research/bert `run_classifier.py`, `_truncate_seq_pair`.
    """
    if length_a + length_b <= budget:
        return length_a, length_b
    kept_b = min(length_b, max(budget - length_a, budget // 2))
    return budget - kept_b, kept_b


def stack_padded(
    rows: Sequence[tuple[list[int], list[int]]], length: int, pad_id: int
) -> BatchEncoding:
    """Stack (ids, token types) of several sequences into one batch, padded to `length`."""
    shape = (len(rows), length)
    input_ids = np.full(shape, pad_id, dtype=np.int64)
    token_type_ids = np.zeros(shape, dtype=np.int64)
    attention_mask = np.zeros(shape, dtype=np.int64)
    for row, (ids, types) in enumerate(rows):
        input_ids[row, : len(ids)] = ids
        token_type_ids[row, : len(types)] = types
        attention_mask[row, : len(ids)] = 1
    return BatchEncoding(input_ids, token_type_ids, attention_mask)
