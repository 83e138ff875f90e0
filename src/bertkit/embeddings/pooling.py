"""Pooling of the hidden states of a text's tokens to one vector.

Source: Reimers and Gurevych 2019, "Sentence-BERT", section 3, and the sentence-transformers
library; first and last layer, and the last four, as in Li et al. 2020, "On the Sentence Embeddings
from Pre-trained Language Models", and Devlin et al. 2018, section 5.3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.nn.packing import PackedBatch

Tokens: TypeAlias = Float[Tensor, "tokens hidden"]
Vectors: TypeAlias = Float[Tensor, "texts features"]


@dataclass(frozen=True)
class Span:
    """The tokens of a packed batch that are pooled.

    Attributes:
        batch: the packed texts.
        places: indexes of the pooled tokens in the batch; None for all tokens.
        positions: position of each pooled token in its own text.
        lengths: number of pooled tokens of each text; at least one.
    """

    batch: PackedBatch
    places: Int[Tensor, " counted"] | None
    positions: Int[Tensor, " counted"]
    lengths: Int[Tensor, " texts"]

    @classmethod
    def of(cls, batch: PackedBatch, num_skipped: Sequence[int]) -> Self:
        """Select all tokens except the leading ones of each text that belong to a prompt.

        Args:
            batch: the packed texts.
            num_skipped: number of leading tokens of each text to leave out, [CLS] included.
        """
        device = batch.input_ids.device
        lengths = torch.tensor(batch.lengths, device=device)
        if not any(num_skipped):
            return cls(batch, None, batch.position_ids, lengths)
        skipped = torch.tensor(num_skipped, device=device)
        is_counted = batch.position_ids >= skipped.repeat_interleave(lengths)
        places = is_counted.nonzero()[:, 0]
        return cls(batch, places, batch.position_ids[places], lengths - skipped)

    def counted(self, tokens: Tokens) -> Float[Tensor, "counted hidden"]:
        """Return the rows of the pooled tokens."""
        return tokens if self.places is None else tokens[self.places]


def take_first(tokens: Tokens, span: Span) -> Vectors:
    """Return the hidden state of [CLS], even if it is left out of the span."""
    return tokens[span.batch.first_tokens.long()]


def take_last(tokens: Tokens, span: Span) -> Vectors:
    """Return the hidden state of the last token, [SEP]."""
    return span.counted(tokens)[span.lengths.cumsum(0) - 1]


def take_mean(tokens: Tokens, span: Span) -> Vectors:
    """Average the tokens."""
    return torch.segment_reduce(span.counted(tokens), "mean", lengths=span.lengths)


def take_max(tokens: Tokens, span: Span) -> Vectors:
    """Take the maximum of each feature over the tokens."""
    return torch.segment_reduce(span.counted(tokens), "max", lengths=span.lengths)


def take_scaled_sum(tokens: Tokens, span: Span) -> Vectors:
    """Sum the tokens, and divide by the square root of their number."""
    return take_mean(tokens, span) * span.lengths.sqrt()[:, None]


def take_weighted_mean(tokens: Tokens, span: Span) -> Vectors:
    """Average the tokens, weighted by their position in the text, from 1."""
    weights = (span.positions + 1).to(tokens.dtype)
    sums = torch.segment_reduce(
        span.counted(tokens) * weights[:, None], "sum", lengths=span.lengths
    )
    return sums / torch.segment_reduce(weights, "sum", lengths=span.lengths)[:, None]


def average_layers(layers: Sequence[Tokens], span: Span) -> Vectors:
    """Average over layers and tokens."""
    return take_mean(torch.stack(tuple(layers)).mean(dim=0), span)


def sum_layers(layers: Sequence[Tokens], span: Span) -> Vectors:
    """Sum over layers, then average over tokens."""
    return take_mean(torch.stack(tuple(layers)).sum(dim=0), span)


def concatenate_layers(layers: Sequence[Tokens], span: Span) -> Vectors:
    """Average the tokens of each layer, and concatenate the layers' features."""
    return torch.cat([take_mean(tokens, span) for tokens in layers], dim=1)


LAST = (-1,)
LAST_FOUR = (-1, -2, -3, -4)


@dataclass(frozen=True)
class Pooling:
    """A pooling method, with the layers that it needs.

    Attributes:
        layers: layers whose hidden states it needs, as in `resolve_layers`.
        pool: the function that pools them.
        num_parts: size of its result as a multiple of the hidden size.
    """

    layers: tuple[int, ...]
    pool: Callable[[Sequence[Tensor], Span], Tensor]
    num_parts: int = 1


def _of_last(pool: Callable[[Tensor, Span], Tensor]) -> Pooling:
    return Pooling(LAST, lambda layers, span: pool(layers[0], span))


POOLINGS: dict[str, Pooling] = {
    "cls": _of_last(take_first),
    "mean": _of_last(take_mean),
    "max": _of_last(take_max),
    "mean_sqrt_len_tokens": _of_last(take_scaled_sum),
    "weightedmean": _of_last(take_weighted_mean),
    "lasttoken": _of_last(take_last),
    "first_last_mean": Pooling((1, -1), average_layers),
    "last_four_concat": Pooling(LAST_FOUR, concatenate_layers, num_parts=len(LAST_FOUR)),
    "last_four_sum": Pooling(LAST_FOUR, sum_layers),
}
