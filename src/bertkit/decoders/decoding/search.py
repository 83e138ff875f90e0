"""Decode or stream: by beams, the likeliest tokens, or samples (temperature, top-k, top-p).

Source: top-k: Fan et al. 2018, "Hierarchical Neural Story Generation"; top-p: Holtzman et al. 2019,
"The Curious Case of Neural Text Degeneration".
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.base.errors import SettingsError
from bertkit.decoders.decoding.beam import find_highest, search_beams
from bertkit.decoders.decoding.sequences import (
    DecodingLimits,
    DecodingSource,
    Hypothesis,
    LogitsProcessor,
    PartialHypothesis,
    Sequences,
)
from bertkit.decoders.decoding.settings import DecodingSettings


def draw_tokens(
    scores: Float[Tensor, "rows vocabulary"],
    settings: DecodingSettings,
    generators: Sequence[np.random.Generator],
) -> Int[Tensor, " rows"]:
    """Sample a token for each row with the row's own generator.

    Each generator yields one number per call, so a row's tokens don't depend on other rows.
    """
    chances = sharpen(scores, settings).softmax(dim=-1, dtype=torch.float64).cumsum(dim=-1)
    numbers = [[generator.random()] for generator in generators]
    wanted = torch.tensor(numbers, dtype=torch.float64, device=scores.device) * chances[:, -1:]
    # If a row has no possible token, its result is arbitrary; the caller sees that by its score.
    return torch.searchsorted(chances, wanted, right=True)[:, 0].clamp(max=scores.shape[1] - 1)


def sharpen(
    scores: Float[Tensor, "rows vocabulary"], settings: DecodingSettings
) -> Float[Tensor, "rows vocabulary"]:
    """Apply temperature, top-k and top-p; excluded tokens get minus infinity."""
    if settings.temperature is not None:
        scores = scores / settings.temperature
    if settings.top_k is not None and settings.top_k < scores.shape[1]:
        least = scores.topk(settings.top_k).values[:, -1:]
        scores = scores.masked_fill(scores < least, -math.inf)
    if settings.top_p is not None:
        ordered = scores.sort(descending=True).values
        shares = ordered.softmax(dim=-1, dtype=torch.float64)
        is_kept = shares.cumsum(dim=-1) - shares < settings.top_p
        least = ordered.gather(1, is_kept.sum(dim=-1, keepdim=True).clamp(min=1) - 1)
        scores = scores.masked_fill(scores < least, -math.inf)
    return scores


class SamplingSearch:
    """One search without beams; `steps` can be iterated only once.

    `sequences` has one row for each source; its `scores` has been called.
    """

    def __init__(
        self,
        sequences: Sequences,
        settings: DecodingSettings,
        limits: DecodingLimits,
        sources: Sequence[DecodingSource],
    ) -> None:
        self._sequences, self._settings, self._limits = sequences, settings, limits
        self._rows = [
            _Row(trail, np.random.default_rng((settings.seed, trail.source.number, answer)))
            for trail in limits.start(sources, settings.max_tokens)
            for answer in range(settings.num_answers)
        ]
        self._left = self._rows  # rows of sources that aren't done

    def steps(self, scores: Float[Tensor, "sources vocabulary"]) -> Iterator[list[int]]:
        """Run the search to its end; yield the newest token of each remaining row."""
        rules = LogitsProcessor(self._settings, self._limits, scores.device)
        if (repeats := self._settings.num_answers) > 1:
            rows = torch.arange(len(scores), device=scores.device).repeat_interleave(repeats)
            self._sequences.select(rows)
            scores = scores.index_select(0, rows)
        while True:
            tokens = self._choose(scores, rules)
            yield tokens.tolist()
            groups = (
                self._left[start : start + repeats] for start in range(0, len(self._left), repeats)
            )
            is_open = [any(not row.is_over for row in group) for group in groups]
            kept = [row for row in range(len(self._left)) if is_open[row // repeats]]
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
        if self._settings.is_sampling:
            generators = [row.generator for row in self._left]
            tokens = draw_tokens(scores, self._settings, generators)
        else:
            tokens = find_highest(scores, 1)[1][:, 0]
        gains = scores.gather(1, tokens[:, None])[:, 0] - sums
        tokens = tokens.masked_fill(gains == -math.inf, self._limits.end_id)  # no possible token
        for row, token, gain in zip(self._left, tokens.tolist(), gains.tolist(), strict=True):
            row.note(token, gain, self._limits.end_id)
        return tokens


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


@torch.inference_mode()
def decode(
    sequences: Sequences,
    settings: DecodingSettings,
    limits: DecodingLimits,
    sources: Sequence[DecodingSource] | None = None,
) -> list[list[Hypothesis]]:
    """Continue each sequence until the model ends it or it reaches its maximum length.

    Each source gets `num_answers` hypotheses, best first; a beam search may find fewer. By default
    sources have no prefix and are numbered from 0.
    """
    scores = sequences.scores()
    if sources is None:
        sources = [DecodingSource(number=number) for number in range(len(scores))]
    if settings.beams > 1:
        return search_beams(sequences, scores, settings, limits, sources)
    walk = SamplingSearch(sequences, settings, limits, sources)
    for _ in walk.steps(scores):
        pass
    return walk.answers()


@torch.inference_mode()
def stream(
    sequences: Sequences,
    settings: DecodingSettings,
    limits: DecodingLimits,
    source: DecodingSource | None = None,
) -> Iterator[int]:
    """Continue one sequence, as `decode` does; yield each token at once, without the end token."""
    if settings.beams > 1 or settings.num_answers > 1:
        raise SettingsError("only one answer without beams can be shown while it is written")
    walk = SamplingSearch(sequences, settings, limits, [source or DecodingSource()])
    for (token,) in walk.steps(sequences.scores()):
        if token != limits.end_id:
            yield token
