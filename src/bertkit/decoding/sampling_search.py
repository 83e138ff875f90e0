"""Greedy decoding and sampling: each row continues independently."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.decoding.highest import find_highest
from bertkit.decoding.hypothesis import Hypothesis
from bertkit.decoding.limits import DecodingLimits, DecodingSource
from bertkit.decoding.partial_hypothesis import LogitsProcessor, PartialHypothesis
from bertkit.decoding.sampling import draw_tokens
from bertkit.decoding.sequences import Sequences
from bertkit.decoding.settings import DecodingSettings


class SamplingSearch:
    """One search without beams; `steps` can be iterated only once.

    Args:
        sequences: the model's state, one row for each source; `scores` has been called.
        settings: how tokens are chosen.
        limits: limits of the model.
        sources: the prefix and number of each source.
    """

    def __init__(
        self,
        sequences: Sequences,
        settings: DecodingSettings,
        limits: DecodingLimits,
        sources: Sequence[DecodingSource],
    ) -> None:
        self._sequences, self._settings, self._limits = sequences, settings, limits
        max_tokens = limits.max_tokens_of(len(sources), settings.max_tokens)
        self._rows = [
            _Row(
                PartialHypothesis(source, most),
                np.random.default_rng((settings.seed, source.number, answer)),
            )
            for source, most in zip(sources, max_tokens, strict=True)
            for answer in range(settings.num_answers)
        ]
        self._left = self._rows  # rows of sources that aren't done

    def steps(self, scores: Float[Tensor, "sources vocabulary"]) -> Iterator[list[int]]:
        """Run the search to its end.

        Args:
            scores: logits of each source's first token.

        Yields:
            The newest token of each remaining row.
        """
        rules = LogitsProcessor(self._settings, self._limits, scores.device)
        if (repeats := self._settings.num_answers) > 1:
            rows = torch.arange(len(scores), device=scores.device).repeat_interleave(repeats)
            self._sequences.select(rows)
            scores = scores.index_select(0, rows)
        while True:
            tokens = self._choose(scores, rules)
            yield tokens.tolist()
            kept = self._list_open()
            if not kept:
                return
            if len(kept) < len(self._left):
                rows = torch.tensor(kept, device=tokens.device)
                self._sequences.select(rows)
                tokens = tokens.index_select(0, rows)
                self._left = [self._left[row] for row in kept]
            self._sequences.extend(tokens)
            scores = self._sequences.scores()

    def answers(self) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source, best first; call it after `steps` has ended."""
        end_id, penalty = self._limits.end_id, self._settings.length_penalty
        found = [row.trail.close(end_id, penalty) for row in self._rows]
        size = self._settings.num_answers
        groups = (found[start : start + size] for start in range(0, len(found), size))
        return [sorted(group, key=lambda one: one.score, reverse=True) for group in groups]

    def _choose(
        self, scores: Float[Tensor, "rows vocabulary"], rules: LogitsProcessor
    ) -> Int[Tensor, "_"]:
        """Choose the next token of each row and record it in the row."""
        sums = rules.suppress(scores, [row.trail for row in self._left])
        if self._settings.sample:
            generators = [row.generator for row in self._left]
            tokens = draw_tokens(scores, self._settings, generators)
        else:
            tokens = find_highest(scores, 1)[1][:, 0]
        gains = scores.gather(1, tokens[:, None])[:, 0] - sums
        tokens = tokens.masked_fill(gains == -math.inf, self._limits.end_id)  # no possible token
        for row, token, gain in zip(self._left, tokens.tolist(), gains.tolist(), strict=True):
            row.note(token, gain, self._limits.end_id)
        return tokens

    def _list_open(self) -> list[int]:
        """Return the indices of the rows whose source isn't done."""
        size = self._settings.num_answers
        starts = range(0, len(self._left), size)
        groups = [range(start, start + size) for start in starts]
        is_open = [any(not self._left[row].is_over for row in group) for group in groups]
        return [row for group, left in zip(groups, is_open, strict=True) if left for row in group]


class _Row:
    """A row with its own random generator."""

    def __init__(self, trail: PartialHypothesis, generator: np.random.Generator) -> None:
        self.trail, self.generator = trail, generator
        self.is_over = False

    def note(self, token: int, gain: float, end_id: int) -> None:
        """Append a token, unless the row has ended or no token was possible."""
        if self.is_over:
            return
        if gain == -math.inf:
            self.is_over = True
            return
        self.trail = self.trail.extended(token, self.trail.log_probability + gain)
        self.is_over = token == end_id or self.trail.is_full
