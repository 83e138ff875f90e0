"""Encoded texts and pairs: the special tokens around them, truncation, padded batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import SettingsError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Frame:
    """The special tokens around one text, or around two.

    Attributes:
        gaps: ids before the first text, between two, and behind the last; one more than texts.
        types: the token type of each block: gap, text, gap, and so on.
    """

    gaps: tuple[tuple[int, ...], ...]
    types: tuple[int, ...]

    @property
    def num_special(self) -> int:
        """Number of special tokens."""
        return sum(map(len, self.gaps))

    def weave_arrays(
        self, texts: Sequence[npt.NDArray[np.integer]]
    ) -> list[npt.NDArray[np.integer]]:
        """Return the blocks of a sequence: special tokens, and the ids of texts, in turn."""
        return weave([np.array(gap) for gap in self.gaps], texts)


class Template(NamedTuple):
    """The frames of a single text and of a pair.

    BERT's are `[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]`, with token type 1 for `B [SEP]`;
    RoBERTa's are `<s> A </s>` and `<s> A </s></s> B </s>`, with token type 0 everywhere.
    """

    single: Frame
    pair: Frame

    @classmethod
    def of_bert(cls, cls_id: int, sep_id: int) -> "Template":
        """Build the template of BERT."""
        first, end = (cls_id,), (sep_id,)
        return cls(Frame((first, end), (0, 0, 0)), Frame((first, end, end), (0, 0, 0, 1, 1)))

    def list_ids(self) -> tuple[int, ...]:
        """Return the distinct special tokens that stand around texts."""
        return tuple(dict.fromkeys(chain(*self.single.gaps, *self.pair.gaps)))


def weave(gaps: Sequence[Item], texts: Sequence[Item]) -> list[Item]:
    """Return the first gap, the first text, the second gap, and so on."""
    woven = [gaps[0]]
    for text, gap in zip(texts, gaps[1:], strict=True):
        woven += text, gap
    return woven


@dataclass(frozen=True)
class Encoding:
    """One encoded text or pair, by the tokenizer's template."""

    ids: list[int]
    token_type_ids: list[int]  # BERT's are 0 for `[CLS] A [SEP]`, 1 for `B [SEP]`
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


def fit_lengths(
    lengths: Sequence[int], num_special: int, max_length: int | None
) -> tuple[int, ...]:
    """Return how many tokens of a text, or of two, to keep beside the special ones."""
    if max_length is None:
        return tuple(lengths)
    budget = max_length - num_special
    if budget < 0:
        raise SettingsError(
            f"a length of {max_length} has no room for the {num_special} special tokens"
            f" of {'a pair' if len(lengths) == 2 else 'one text'}; raise it"
        )
    return cut_longest_first(lengths[0], sum(lengths[1:]), budget)[: len(lengths)]


def trim(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """Return a span without the blanks at its beginning."""
    start, stop = span
    while start < stop and text[start].isspace():
        start += 1
    return start, stop


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
