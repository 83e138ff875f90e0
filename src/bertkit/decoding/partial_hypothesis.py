"""Partial hypotheses of a search, and the rules for which tokens may follow."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import NonFiniteError
from bertkit.decoding.hypothesis import Hypothesis
from bertkit.decoding.limits import DecodingLimits, DecodingSource
from bertkit.decoding.settings import DecodingSettings


@dataclass(frozen=True)
class PartialHypothesis:
    """The tokens that one row has generated so far.

    Attributes:
        source: prefix and number of the source.
        max_tokens: most tokens, end token included.
        tokens: the generated token ids.
        log_probability: log probability of all of them; minus infinity for a padding row.
    """

    source: DecodingSource
    max_tokens: int
    tokens: tuple[int, ...] = ()
    log_probability: float = 0.0

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
    """Masks tokens that may not come next.

    Args:
        settings: `min_tokens` and `no_repeat_ngram`.
        limits: end token and suppressed tokens.
        device: device of the logits.
    """

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

        Returns:
            The logsumexp of each row before masking: logits minus this are the model's own log
            probabilities.
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
                repeats = find_repeats((*hypothesis.source.tokens, *hypothesis.tokens), size)
                scores[row, list(repeats)] = -math.inf
        return sums


def find_repeats(tokens: Sequence[int], size: int) -> set[int]:
    """Return the tokens that would repeat an n-gram of `size` tokens if they came next."""
    starts = range(len(tokens) - size + 1)
    newest = tokens[len(tokens) - size + 1 :]
    return {
        tokens[start + size - 1] for start in starts if tokens[start : start + size - 1] == newest
    }
