"""What a search works on: sequences that a model continues, their limits, their logits masked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.base.errors import InputError, NonFiniteError
from bertkit.decoders.decoding.settings import DecodingSettings


class Sequences(Protocol):
    """A batch of sequences that a model continues; at first one row for each source.

    In each step, a search calls `scores`, then optionally `select`, then `extend`.
    """

    def scores(self) -> Float[Tensor, "rows vocabulary"]:
        """Return the float32 logits of each row's next token, with one forward pass.

        The tensor must be new each time, because the search modifies it.
        """
        ...

    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Keep these rows, in this order; a row may occur more than once.

        Rows of a source stay adjacent, and all remaining sources have the same number of rows.
        """
        ...

    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Append a token to each row."""
        ...


@dataclass(frozen=True)
class DecodingLimits:
    """A model's limits on what is generated."""

    end_id: int
    # end token included; one number for all sources, or one for each
    max_tokens: int | Sequence[int]
    suppressed_ids: tuple[int, ...] = ()  # never generated

    def start(
        self, sources: Sequence["DecodingSource"], wanted: int | None
    ) -> list["PartialHypothesis"]:
        """Return the empty hypothesis of each source; `wanted` bounds the tokens of all of them."""
        limits = self.max_tokens
        each = [limits] * len(sources) if isinstance(limits, int) else list(limits)
        if len(each) != len(sources):
            raise InputError(f"expected max_tokens of {len(sources)} sources, got {len(each)}")
        if min(each) < 1:
            raise InputError("there is no room for another token; shorten the text")
        most = each if wanted is None else [min(limit, wanted) for limit in each]
        return list(map(PartialHypothesis, sources, most))


@dataclass(frozen=True)
class DecodingSource:
    """One source of a search."""

    tokens: tuple[int, ...] = ()  # prefix of its sequence; `no_repeat_ngram` counts it too
    number: int = 0  # seeds its sampling, so that its draws don't depend on the rest of the batch


@dataclass(frozen=True)
class Hypothesis:
    """One generated continuation; they are sorted by `score`, whose length counts the end token.

    `log_probability` is the sum of the tokens' natural log probabilities, end token included,
    before suppression, temperature, top-k and top-p.
    """

    tokens: tuple[int, ...]  # without the prefix and the end token
    log_probability: float
    score: float  # `log_probability` / length ** length_penalty
    is_finished: bool  # whether the model ended it; otherwise it was truncated


@dataclass(frozen=True)
class PartialHypothesis:
    """The tokens that one row has generated so far."""

    source: DecodingSource
    max_tokens: int  # end token included
    tokens: tuple[int, ...] = ()
    log_probability: float = 0.0  # of all tokens; minus infinity for a padding row

    @property
    def is_full(self) -> bool:
        """Whether it has `max_tokens` tokens."""
        return len(self.tokens) == self.max_tokens

    def extended(self, token: int, log_probability: float) -> "PartialHypothesis":
        """Return a copy with one more token and the new total log probability."""
        return replace(self, tokens=(*self.tokens, token), log_probability=log_probability)

    def score(self, length_penalty: float) -> float:
        """Return the length-normalized log probability, by which hypotheses are sorted."""
        worth: float = max(1, len(self.tokens)) ** length_penalty
        return self.log_probability / worth

    def close(self, end_id: int, length_penalty: float) -> Hypothesis:
        """Return the final hypothesis; it is finished if its last token is the end token."""
        is_finished = self.tokens[-1:] == (end_id,)
        return Hypothesis(
            tokens=self.tokens[:-1] if is_finished else self.tokens,
            log_probability=self.log_probability,
            score=self.score(length_penalty),
            is_finished=is_finished,
        )


class LogitsProcessor:
    """Masks tokens that may not come next."""

    def __init__(
        self, settings: DecodingSettings, limits: DecodingLimits, device: torch.device
    ) -> None:
        self._settings = settings
        self._end_id = limits.end_id
        self._suppressed_ids = torch.tensor(limits.suppressed_ids, dtype=torch.int64, device=device)

    def suppress(
        self, scores: Float[Tensor, "rows vocabulary"], hypotheses: Sequence[PartialHypothesis]
    ) -> Float[Tensor, " rows"]:
        """Set the logits of all tokens that may not come next to minus infinity, in place.

        Return each row's logsumexp before: logits minus it are the model's own log probabilities.
        """
        sums = scores.logsumexp(dim=-1)
        if not sums.isfinite().all():
            raise NonFiniteError("the model's scores aren't finite; its weights may be damaged")
        scores.index_fill_(1, self._suppressed_ids, -math.inf)
        least = self._settings.min_tokens
        # The last token that fits may always be the end token.
        leasts = [min(least, hypothesis.max_tokens - 1) for hypothesis in hypotheses]
        short = [
            row for row, hypothesis in enumerate(hypotheses) if len(hypothesis.tokens) < leasts[row]
        ]
        scores[short, self._end_id] = -math.inf
        if size := self._settings.no_repeat_ngram:
            for row, hypothesis in enumerate(hypotheses):
                tokens = (*hypothesis.source.tokens, *hypothesis.tokens)
                ends = range(size - 1, len(tokens))  # of n-grams
                newest = tokens[len(tokens) - size + 1 :]
                repeats = {tokens[end] for end in ends if tokens[end - size + 1 : end] == newest}
                scores[row, list(repeats)] = -math.inf
        return sums
