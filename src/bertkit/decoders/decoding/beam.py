"""Beam search, and the interface between any search and a model, whose logits it may mask."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

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

    def _fill(self, followed: list[BeamCandidate]) -> list[BeamCandidate]:
        """Pad to one row per beam with rows of probability 0, if fewer hypotheses continue."""
        missing = self._settings.beams - len(followed)
        idle = followed[0]._replace(log_probability=-math.inf)
        self.hypotheses += [replace(self.hypotheses[0], log_probability=-math.inf)] * missing
        return [*followed, *[idle] * missing]
