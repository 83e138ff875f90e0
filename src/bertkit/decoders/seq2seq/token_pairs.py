"""Pairs of texts as concatenated token ids, and batches of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.tokenizer import Tokenizer

Ids = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]

LOT_CHARS = 1 << 20  # characters to tokenize at a time: fastest, and needs little memory


@dataclass(frozen=True)
class TokenTexts:
    """Texts as token ids, each between [CLS] and [SEP]."""

    ids: Ids  # of all texts, concatenated
    offsets: Numbers  # start of each text in `ids`, and the end of the last one

    @classmethod
    def encode(cls, texts: Sequence[str], tokenizer: Tokenizer) -> Self:
        """Encode texts, without truncation."""
        lots = [tokenizer.piece_arrays(lot) for lot in cut_lots(texts)]
        inner = np.concatenate([np.diff(lot.ends, prepend=0) for lot in lots])
        offsets = np.concatenate([[0], np.cumsum(inner + 2)])
        ids = np.empty(offsets[-1], dtype=np.int32)
        is_piece = np.ones(len(ids), dtype=np.bool_)
        is_piece[offsets[:-1]] = is_piece[offsets[1:] - 1] = False
        ids[is_piece] = np.concatenate([lot.ids for lot in lots])
        ids[offsets[:-1]], ids[offsets[1:] - 1] = tokenizer.cls_id, tokenizer.sep_id
        return cls(ids, offsets)

    @property
    def lengths(self) -> Numbers:
        """Number of tokens of each text, including [CLS] and [SEP]."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def choose(self, numbers: Numbers) -> Self:
        """Select texts, in this order."""
        starts = self.offsets[numbers]
        lengths = self.offsets[numbers + 1] - starts
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return type(self)(self.ids[places], offsets)

    def cut(self, max_length: int) -> Self:
        """Truncate each text to `max_length` tokens, ending with [SEP]."""
        found = self.cut_open(max_length)
        found.ids[found.offsets[1:] - 1] = self.ids[self.offsets[1:] - 1]
        return found

    def cut_open(self, max_length: int) -> Self:
        """Truncate each text to `max_length` tokens; truncated texts have no [SEP]."""
        lengths = np.minimum(self.lengths, max_length)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1] - offsets[:-1], lengths)
        return type(self)(self.ids[places], offsets)

    def pack(self) -> PackedBatch:
        """Return all texts as one batch."""
        return PackedBatch.from_flat(self.ids, self.lengths)


@dataclass(frozen=True)
class TokenPairs:
    """Sources and targets, as many of each."""

    sources: TokenTexts
    targets: TokenTexts

    @property
    def lengths(self) -> Numbers:
        """Number of tokens that each pair counts for in a batch, both sides together."""
        return self.sources.lengths + self.targets.lengths - 1

    def __len__(self) -> int:
        return len(self.sources)

    def choose(self, numbers: Numbers) -> Self:
        """Select pairs, in this order."""
        return type(self)(self.sources.choose(numbers), self.targets.choose(numbers))

    def cut(self, max_source_length: int, max_target_length: int) -> Self:
        """Truncate pairs; a truncated target has no [SEP], lest the model learn to stop there."""
        return type(self)(
            self.sources.cut(max_source_length), self.targets.cut_open(max_target_length + 1)
        )


@dataclass(frozen=True)
class PairBatch:
    """A batch of pairs as model inputs."""

    source: PackedBatch
    target: PackedBatch  # [CLS], then all target tokens except the last
    labels: Int[Tensor, " tokens"]  # the next token for each token in `target`
    numbers: Numbers  # indices of the pairs

    @classmethod
    def of(cls, pairs: TokenPairs, numbers: Numbers) -> Self:
        """Build a batch of the pairs with these indices."""
        chosen = pairs.choose(numbers)
        targets, lengths = chosen.targets, chosen.targets.lengths
        is_input = np.ones(len(targets.ids), dtype=np.bool_)
        is_label = is_input.copy()
        is_input[targets.offsets[1:] - 1] = is_label[targets.offsets[:-1]] = False
        return cls(
            source=chosen.sources.pack(),
            target=PackedBatch.from_flat(targets.ids[is_input], lengths - 1),
            labels=torch.from_numpy(targets.ids[is_label].astype(np.int64)),
            numbers=numbers,
        )

    @property
    def num_tokens(self) -> int:
        """Number of tokens of both sides."""
        return self.source.num_tokens + self.target.num_tokens

    @property
    def target_counts(self) -> dict[str, int]:
        """Number of target tokens to predict."""
        return {"word": len(self.labels)}

    def describe(self) -> str:
        """Return the pairs' numbers, counted from 1, for messages."""
        return " ".join(str(number + 1) for number in self.numbers.tolist())

    def to(self, device: torch.device) -> "PairBatch":
        """Return the batch on another device."""
        return PairBatch(
            self.source.to(device),
            self.target.to(device),
            self.labels.to(device, non_blocking=True),
            self.numbers,
        )


def cut_lots(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the texts in lots of about a million characters; the last one may be empty."""
    start = num_chars = 0
    for stop, text in enumerate(texts, start=1):
        num_chars += len(text)
        if num_chars >= LOT_CHARS:
            yield texts[start:stop]
            start, num_chars = stop, 0
    yield texts[start:]
