"""Beam search: the best few beginnings of each source are followed at a time.

The rules are those of transformers 5 (`GenerationMixin._beam_search`), so that the same weights
write the same texts, with the same limits and with the same tokens forbidden (`suppress_tokens`).

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
    """Search all sources at once; those that are done leave the batch.

    Args:
        sequences: a row for each source.
        scores: of each source's first token.
        settings: how many beams, and what they are worth.
        limits: of the model.
        sources: what the rows go on with.

    Returns:
        The best of each source, the best first: `num_answers`, or fewer where less is possible.
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
    """The best tokens over all rows of each source, the best first.

    A source's best are among the best of its rows; so rows are looked through by themselves.
    """
    hypotheses = [trail for source in running for trail in source.hypotheses]
    sums = rules.bar(scores, hypotheses)
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
    """A row and a token that may follow it."""

    row: int
    token: int
    log_probability: float


class SourceBeams:
    """The beams of one source, and what is finished.

    Args:
        source: what the beams go on with.
        max_tokens: the longest that they become.
        settings: of the search.
        end_id: the token that ends a sequence.

    Attributes:
        trails: of the source's rows.
        finished: the best that have ended, at most as many as beams, the best first.
        is_done: nothing better is looked for.
    """

    def __init__(
        self, source: DecodingSource, max_tokens: int, settings: DecodingSettings, end_id: int
    ) -> None:
        self._settings, self._end_id = settings, end_id
        self.hypotheses = [PartialHypothesis(source, max_tokens)]
        self.finished: list[Hypothesis] = []
        self.is_done = False

    def advance(self, candidates: Sequence[Candidate], first_row: int) -> list[Candidate]:
        """Take the step to the best candidates.

        Args:
            candidates: twice as many as beams, the best first: however many of the better half
                end, the rest can go on.
            first_row: the number of the source's first row in the batch.

        Returns:
            Those that are followed, one a beam.
        """
        num_beams = self._settings.beams
        possible = [one for one in candidates if one.log_probability > -math.inf]
        if not possible:  # what there is ends here
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
        """Keep the best of those that have ended before and now."""
        penalty = self._settings.length_penalty
        self.finished += [trail.close(self._end_id, penalty) for trail in hypotheses]
        self.finished.sort(key=lambda one: one.score, reverse=True)
        del self.finished[self._settings.beams :]

    def _cannot_improve(self, best: PartialHypothesis) -> bool:
        """Whether the best running trail, as it is now, is no better than the worst finished.

        With a length penalty it could become better yet; transformers, too, takes that for
        unlikely.
        """
        if len(self.finished) < self._settings.beams:
            return False
        score = best.score(self._settings.length_penalty)
        return self._settings.early_stop or score <= self.finished[-1].score

    def _fill(self, followed: list[Candidate]) -> list[Candidate]:
        """Fill up with rows that nothing can come of, where fewer than the beams can go on."""
        missing = self._settings.beams - len(followed)
        idle = followed[0]._replace(log_probability=-math.inf)
        self.hypotheses += [replace(self.hypotheses[0], log_probability=-math.inf)] * missing
        return [*followed, *[idle] * missing]
