"""Beam search: keeps the best few partial hypotheses of each source at each step.

The rules are those of transformers 5 (`GenerationMixin._beam_search`), so that the same weights
give the same texts under the same limits and suppressed tokens (`suppress_tokens`).

Source: Graves 2012, "Sequence Transduction with Recurrent Neural Networks"; the length penalty as
a power of the length: Wu et al. 2016, section 7, in its simpler form.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.decoding.highest import find_highest
from bertkit.decoding.hypothesis import Hypothesis
from bertkit.decoding.limits import DecodingLimits, DecodingSource
from bertkit.decoding.partial_hypothesis import LogitsProcessor, PartialHypothesis
from bertkit.decoding.sequences import Sequences
from bertkit.decoding.settings import DecodingSettings


def search_beams(
    sequences: Sequences,
    scores: Float[Tensor, "sources vocabulary"],
    settings: DecodingSettings,
    limits: DecodingLimits,
    sources: Sequence[DecodingSource],
) -> list[list[Hypothesis]]:
    """Run beam search for all sources at once; finished sources leave the batch.

    Args:
        sequences: the model's state, one row for each source.
        scores: logits of each source's first token.
        settings: number of beams, length penalty and other search settings.
        limits: limits of the model.
        sources: the prefix and number of each source.

    Returns:
        Up to `num_answers` hypotheses of each source, best first.
    """
    rules = LogitsProcessor(settings, limits, scores.device)
    max_tokens = limits.max_tokens_of(len(sources), settings.max_tokens)
    beams = [
        SourceBeams(source, most, settings, limits.end_id)
        for source, most in zip(sources, max_tokens, strict=True)
    ]
    running = beams
    while True:
        candidates = find_candidates(scores, running, rules, 2 * settings.beams)
        size = len(running[0].hypotheses)
        followed = [
            one
            for number, (source, found) in enumerate(zip(running, candidates, strict=True))
            for one in source.advance(found, number * size)
        ]
        if not followed:
            return [source.finished[: settings.num_answers] for source in beams]
        running = [source for source in running if not source.is_done]
        sequences.select(torch.tensor([one.row for one in followed], device=scores.device))
        sequences.extend(torch.tensor([one.token for one in followed], device=scores.device))
        scores = sequences.scores()


def find_candidates(
    scores: Float[Tensor, "rows vocabulary"],
    running: Sequence["SourceBeams"],
    rules: LogitsProcessor,
    num_candidates: int,
) -> list[list["Candidate"]]:
    """Return the best (row, token) pairs over all beams of each source, best first.

    They are among the best tokens of each row, so each row's best are found first.
    """
    hypotheses = [trail for source in running for trail in source.hypotheses]
    sums = rules.suppress(scores, hypotheses)
    values, words = find_highest(scores, num_candidates)
    before = sums.new_tensor([trail.log_probability for trail in hypotheses])
    totals = (values + (before - sums)[:, None]).view(len(running), -1)
    found = totals.topk(min(num_candidates, totals.shape[1]))
    tokens = words.view(len(running), -1).gather(1, found.indices)
    starts = torch.arange(len(running), device=scores.device)[:, None] * len(running[0].hypotheses)
    rows = found.indices // values.shape[1] + starts
    parts = zip(rows.tolist(), tokens.tolist(), found.values.tolist(), strict=True)
    return [list(map(Candidate, *part)) for part in parts]


class Candidate(NamedTuple):
    """A row, a token that may follow it, and the log probability of both together."""

    row: int
    token: int
    log_probability: float


class SourceBeams:
    """The running beams and finished hypotheses of one source.

    Args:
        source: prefix and number of the source.
        max_tokens: most tokens of a hypothesis.
        settings: settings of the search.
        end_id: the token that ends a sequence.

    Attributes:
        hypotheses: the running partial hypotheses, one for each row of the source.
        finished: the best finished hypotheses, best first, at most one per beam.
        is_done: whether the search of this source has ended.
    """

    def __init__(
        self, source: DecodingSource, max_tokens: int, settings: DecodingSettings, end_id: int
    ) -> None:
        self._settings, self._end_id = settings, end_id
        self.hypotheses = [PartialHypothesis(source, max_tokens)]
        self.finished: list[Hypothesis] = []
        self.is_done = False

    def advance(self, candidates: Sequence[Candidate], first_row: int) -> list[Candidate]:
        """Extend the beams with the best candidates.

        Args:
            candidates: twice as many as beams, best first: even if all of the better half end,
                enough remain to continue.
            first_row: index of the source's first row in the batch.

        Returns:
            The candidates that continue, one per beam; none if the source is done.
        """
        num_beams = self._settings.beams
        possible = [one for one in candidates if one.log_probability > -math.inf]
        if not possible:  # no token may follow any beam
            self._finish([one for one in self.hypotheses if one.log_probability > -math.inf])
            self.is_done = True
            return []
        grown = [
            self.hypotheses[one.row - first_row].extended(one.token, one.log_probability)
            for one in possible
        ]
        is_last = grown[0].is_full
        ended = [one.token == self._end_id for one in possible]
        over = [is_last or has_ended for has_ended in ended[:num_beams]]
        self._finish([trail for trail, is_over in zip(grown, over, strict=False) if is_over])
        running = [number for number, has_ended in enumerate(ended) if not has_ended][:num_beams]
        self.is_done = is_last or not running or self._cannot_improve(grown[running[0]])
        if self.is_done:
            return []
        self.hypotheses = [grown[number] for number in running]
        return self._fill([possible[number] for number in running])

    def _finish(self, hypotheses: Sequence[PartialHypothesis]) -> None:
        """Add finished hypotheses and keep the best, at most one per beam."""
        penalty = self._settings.length_penalty
        self.finished += [trail.close(self._end_id, penalty) for trail in hypotheses]
        self.finished.sort(key=lambda one: one.score, reverse=True)
        del self.finished[self._settings.beams :]

    def _cannot_improve(self, best: PartialHypothesis) -> bool:
        """Whether the best running hypothesis now scores no better than the worst finished one.

        With a length penalty its score could still rise; like transformers, this ignores that.
        """
        if len(self.finished) < self._settings.beams:
            return False
        score = best.score(self._settings.length_penalty)
        return self._settings.early_stop or score <= self.finished[-1].score

    def _fill(self, followed: list[Candidate]) -> list[Candidate]:
        """Pad to one row per beam with rows of probability 0, if fewer hypotheses continue."""
        missing = self._settings.beams - len(followed)
        idle = followed[0]._replace(log_probability=-math.inf)
        self.hypotheses += [replace(self.hypotheses[0], log_probability=-math.inf)] * missing
        return [*followed, *[idle] * missing]
