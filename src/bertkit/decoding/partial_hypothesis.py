"""Rows of a search: what each has written, and what it may write next."""

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
    """What one row has written.

    Attributes:
        source: what it goes on with.
        max_tokens: the longest that it becomes, the end counted.
        tokens: that were written.
        log_probability: of all of them; minus infinity for a row that only fills a place.
    """

    source: DecodingSource
    max_tokens: int
    tokens: tuple[int, ...] = ()
    log_probability: float = 0.0

    @property
    def is_full(self) -> bool:
        """Whether it has all tokens that it may have."""
        return len(self.tokens) == self.max_tokens

    def extended(self, token: int, log_probability: float) -> "PartialHypothesis":
        """The same with a token more, and what all are worth then."""
        return replace(self, tokens=(*self.tokens, token), log_probability=log_probability)

    def score(self, length_penalty: float) -> float:
        """What hypotheses are ordered by."""
        worth: float = max(1, len(self.tokens)) ** length_penalty
        return self.log_probability / worth

    def close(self, end_id: int, length_penalty: float) -> Hypothesis:
        """What the search found; finished where the end is the last token."""
        is_finished = self.tokens[-1:] == (end_id,)
        return Hypothesis(
            tokens=self.tokens[:-1] if is_finished else self.tokens,
            log_probability=self.log_probability,
            score=self.score(length_penalty),
            is_finished=is_finished,
        )


class LogitsProcessor:
    """Which tokens may come next.

    Args:
        settings: least tokens, and how many may not come twice.
        limits: the end, and what is never written.
        device: of the scores.
    """

    def __init__(
        self, settings: DecodingSettings, limits: DecodingLimits, device: torch.device
    ) -> None:
        self._settings = settings
        self._end_id = limits.end_id
        self._forbidden = torch.tensor(limits.suppressed_ids, dtype=torch.int64, device=device)

    def bar(
        self, scores: Float[Tensor, "rows vocabulary"], hypotheses: Sequence[PartialHypothesis]
    ) -> Float[Tensor, " rows"]:
        """Give minus infinity to each token that may not come next, in place.

        Returns:
            What to take from a row's scores to have logarithms of the model's own probabilities:
            of all tokens, those that are barred too.
        """
        sums = scores.logsumexp(dim=-1)
        if not sums.isfinite().all():
            raise NonFiniteError("the model's scores aren't finite; its weights must be damaged")
        scores.index_fill_(1, self._forbidden, -math.inf)
        least = self._settings.min_tokens
        # The last token that there is room for may be an end.
        leasts = [min(least, trail.max_tokens - 1) for trail in hypotheses]
        short = [row for row, trail in enumerate(hypotheses) if len(trail.tokens) < leasts[row]]
        scores[short, self._end_id] = -math.inf
        if size := self._settings.no_repeat_ngram:
            for row, trail in enumerate(hypotheses):
                repeats = find_repeats((*trail.source.tokens, *trail.tokens), size)
                scores[row, list(repeats)] = -math.inf
        return sums


def find_repeats(tokens: Sequence[int], size: int) -> set[int]:
    """The tokens behind which the last `size` tokens would be there twice."""
    starts = range(len(tokens) - size + 1)
    newest = tokens[len(tokens) - size + 1 :]
    return {
        tokens[start + size - 1] for start in starts if tokens[start : start + size - 1] == newest
    }
