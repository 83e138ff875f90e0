"""Beam search."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.decoders.decoding.sequences import (
    DecodingLimits,
    DecodingSource,
    Hypothesis,
    LogitsProcessor,
    PartialHypothesis,
    Sequences,
)
from bertkit.decoders.decoding.settings import DecodingSettings

BLOCK = 64  # scores per block; block maxima are computed first


def find_highest(
    scores: Float[Tensor, "rows vocabulary"], number: int
) -> tuple[Float[Tensor, "rows number"], Int[Tensor, "rows number"]]:
    """Return the highest scores of each row and their indices, highest first; all if fewer exist.

    Like `topk`, but several times as fast on a CPU: the highest scores are in the blocks with the
    highest maxima, and maxima are computed with vector instructions.
    """
    num_scores = scores.shape[1]
    num_blocks = num_scores // BLOCK
    if num_blocks <= 2 * number:
        best = scores.topk(min(number, num_scores))
        return best.values, best.indices
    blocks = scores[:, : num_blocks * BLOCK].view(-1, num_blocks, BLOCK)
    chosen = blocks.amax(dim=-1).topk(number).indices[:, :, None]
    inside = torch.arange(BLOCK, device=scores.device)
    rest = torch.arange(num_blocks * BLOCK, num_scores, device=scores.device)
    places = torch.cat([(chosen * BLOCK + inside).flatten(1), rest.expand(len(scores), -1)], dim=1)
    best = scores.gather(1, places).topk(number)
    return best.values, places.gather(1, best.indices)


def search_beams(
    sequences: Sequences,
    scores: Float[Tensor, "sources vocabulary"],
    settings: DecodingSettings,
    limits: DecodingLimits,
    sources: Sequence[DecodingSource],
) -> list[list[Hypothesis]]:
    """Run beam search for all sources at once; finished sources leave the batch.

    Each source gets up to `num_answers` hypotheses, best first. `scores` are the logits of its
    first token, `sequences` the model's state, one row for each source.
    """
    rules = LogitsProcessor(settings, limits, scores.device)
    trails = limits.start(sources, settings.max_tokens)
    beams = [SourceBeams(trail, settings, limits.end_id) for trail in trails]
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
) -> list[list["BeamCandidate"]]:
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
    return [list(map(BeamCandidate, *part)) for part in parts]


class BeamCandidate(NamedTuple):
    """A row, a token that may follow it, and the log probability of both together."""

    row: int
    token: int
    log_probability: float


class SourceBeams:
    """The running beams of one source, one for each row, and the hypotheses that they finished.

    The finished ones are the best, best first, at most one per beam.
    """

    def __init__(self, trail: PartialHypothesis, settings: DecodingSettings, end_id: int) -> None:
        self._settings, self._end_id = settings, end_id
        self.hypotheses = [trail]
        self.finished: list[Hypothesis] = []
        self.is_done = False

    def advance(self, candidates: Sequence[BeamCandidate], first_row: int) -> list[BeamCandidate]:
        """Extend the beams with the best candidates; return those that continue, one per beam.

        The candidates are twice as many as beams, best first, so that enough remain even if all of
        the better half end. If the source is done, none continues.
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
        # Fewer are padded to one row per beam with rows of probability 0.
        missing = num_beams - len(running)
        idle = possible[running[0]]._replace(log_probability=-math.inf)
        self.hypotheses = [grown[number] for number in running]
        self.hypotheses += [replace(self.hypotheses[0], log_probability=-math.inf)] * missing
        return [*(possible[number] for number in running), *[idle] * missing]

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
        return score <= self.finished[-1].score
