"""Decoding of start and end logits of all windows to the best spans, or to "no answer".

Source: google-research/bert `run_squad.py`, `write_predictions`.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bertkit.reports.notebook import Row, Tabular
from bertkit.tasks.answer.settings import AnswerSettings
from bertkit.tasks.answer.windows import Windows
from bertkit.tasks.logits import Logits

MARK = "Mn"  # Unicode category of combining accents, which follow their letter


@dataclass(frozen=True)
class Candidate(Tabular):
    """A possible answer.

    Attributes:
        text: a part of the context; empty for "no answer".
        start: index of its first character in the context; None for "no answer".
        stop: index after its last, as in `context[start:stop]`.
        probability: probability among the candidates of its question, from 0 to 1.
        start_logit: start logit of its first token.
        end_logit: end logit of its last token.
    """

    text: str
    start: int | None
    stop: int | None
    probability: float
    start_logit: float
    end_logit: float


@dataclass(frozen=True)
class Answer(Tabular):
    """The answer to a question.

    Attributes:
        text: a part of the context; empty for "no answer".
        start: index of its first character in the context; None for "no answer".
        stop: index after its last, as in `context[start:stop]`.
        probability: probability among the candidates, from 0 to 1.
        null_odds: score of "no answer" minus the score of the best span, in logits; None under the
            rules of SQuAD 1.1.
        n_best: the candidates, the best first.
    """

    text: str
    start: int | None
    stop: int | None
    probability: float
    null_odds: float | None
    n_best: tuple[Candidate, ...]

    def as_rows(self) -> Sequence[Row]:
        """Return a row for each candidate, the best first."""
        return [one.as_row() for one in self.n_best]

    @property
    def is_null(self) -> bool:
        """Whether the answer is "no answer"."""
        return self.start is None

    @property
    def best(self) -> Candidate | None:
        """The best candidate that is a part of the context; None if the context has no token."""
        return next((one for one in self.n_best if one.start is not None), None)

    @classmethod
    def choose(
        cls, n_best: tuple[Candidate, ...], null_odds: float | None, threshold: float
    ) -> Self:
        """Choose the best span, or "no answer" if its odds are above the threshold."""
        nulls = [one for one in n_best if one.start is None]
        spans = [one for one in n_best if one.start is not None]
        is_null = not spans or (null_odds is not None and null_odds > threshold)
        chosen = (nulls if is_null else spans)[0]
        return cls(chosen.text, chosen.start, chosen.stop, chosen.probability, null_odds, n_best)

    def decide(self, threshold: float) -> Self:
        """Choose again among the same candidates, with another threshold."""
        return self.choose(self.n_best, self.null_odds, threshold)


class Spans(NamedTuple):
    """Spans of tokens, the best first; ties in the order in which they were found.

    Attributes:
        firsts: `[spans]`, index of the first token of each in the context.
        lasts: `[spans]`, index of the last.
        start_logits: `[spans]`, start logit of the first token.
        end_logits: `[spans]`, end logit of the last.
    """

    firsts: npt.NDArray[np.int64]
    lasts: npt.NDArray[np.int64]
    start_logits: npt.NDArray[np.float64]
    end_logits: npt.NDArray[np.float64]


def find_answer(
    context: str, windows: Windows, logits: Logits, settings: AnswerSettings, threshold: float
) -> Answer:
    """Decode logits to an answer.

    Args:
        context: the text.
        windows: the windows of the text.
        logits: `[tokens, 2]` of all windows: start and end logits.
        settings: version, maximum answer length and n_best.
        threshold: value of `null_odds` above which the answer is "no answer".
    """
    parts = _split(windows, logits)
    spans = find_spans(windows, parts, settings)
    candidates = list(_list_candidates(context, windows, spans, settings.n_best))
    has_null = settings.version == "2.0"
    null = min((_null_of(part) for part in parts), key=_score)
    null_odds = None
    if has_null:
        null_odds = _score(null) - (_score(candidates[0]) if candidates else 0.0)
    if has_null or not candidates:
        rank = sum(_score(one) >= _score(null) for one in candidates)
        if rank < settings.n_best:  # it replaces the last; otherwise it is appended
            del candidates[settings.n_best - 1 :]
        candidates.insert(rank, null)
    return Answer.choose(_with_probabilities(candidates), null_odds, threshold)


def find_spans(windows: Windows, parts: list[Logits], settings: AnswerSettings) -> Spans:
    """Find the spans between the best start and end tokens of a window.

    If a question's best tokens form no valid span, all tokens are tried; google's script returns
    "empty" in this case.
    """
    most = max(map(len, parts))
    for num_best in (settings.n_best, most):
        found = [
            _pair_places(windows, number, part, num_best, settings.max_answer_length)
            for number, part in enumerate(parts)
        ]
        if any(len(spans.firsts) for spans in found):
            break
    return _sort_spans(found)


def _sort_spans(found: list[Spans]) -> Spans:
    firsts, lasts, start_logits, end_logits = map(np.concatenate, zip(*found, strict=True))
    order = np.argsort(-(start_logits + end_logits), kind="stable")
    return Spans(firsts[order], lasts[order], start_logits[order], end_logits[order])


def _pair_places(
    windows: Windows, number: int, logits: Logits, num_best: int, max_length: int
) -> Spans:
    """Combine the best starts of one window with its best ends, ranked by start, then end."""
    part = windows.parts[number]
    starts, ends = (_best_places(logits[:, side], num_best) for side in (0, 1))
    shift = part.start - windows.num_before
    firsts, lasts = _keep_inside(starts + shift, part), _keep_inside(ends + shift, part)
    firsts = firsts[windows.owners[firsts] == number]
    num_more = lasts - firsts[:, None]
    rows, columns = np.nonzero((num_more >= 0) & (num_more < max_length))
    firsts, lasts = firsts[rows], lasts[columns]
    values = logits.astype(np.float64)
    return Spans(firsts, lasts, values[firsts - shift, 0], values[lasts - shift, 1])


def _best_places(logits: npt.NDArray[np.float32], num_best: int) -> npt.NDArray[np.int64]:
    return np.argsort(-logits, kind="stable")[:num_best]


def _keep_inside(tokens: npt.NDArray[np.int64], part: range) -> npt.NDArray[np.int64]:
    return tokens[(tokens >= part.start) & (tokens < part.stop)]


def _list_candidates(
    context: str, windows: Windows, spans: Spans, num_best: int
) -> Iterator[Candidate]:
    """List the best spans, each text once; their probabilities are set later."""
    seen: set[str] = set()
    for first, last, *logits in zip(*spans, strict=True):  # stops after a few of many
        start = int(windows.offsets[first, 0])
        stop = _with_marks(context, windows, last)
        text = context[start:stop]
        if text not in seen:
            seen.add(text)
            yield Candidate(text, start, stop, 0.0, *map(float, logits))
        if len(seen) == num_best:
            return


def _with_marks(context: str, windows: Windows, last: np.int64) -> int:
    """Return the end of a token in characters, including accents that a tokenizer may drop."""
    stop = int(windows.offsets[last, 1])
    end = len(context)
    if last + 1 < len(windows.offsets):
        end = int(windows.offsets[last + 1, 0])
    while stop < end and unicodedata.category(context[stop]) == MARK:
        stop += 1
    return stop


def _split(windows: Windows, logits: Logits) -> list[Logits]:
    """Split logits by window."""
    sizes = [windows.num_before + len(part) + 1 for part in windows.parts]
    return np.split(logits, np.cumsum(sizes)[:-1])


def _null_of(logits: Logits) -> Candidate:
    """Return the "no answer" candidate of a window, scored by its [CLS]."""
    return Candidate("", None, None, 0.0, *logits[0].tolist())


def _score(candidate: Candidate) -> float:
    return candidate.start_logit + candidate.end_logit


def _with_probabilities(candidates: list[Candidate]) -> tuple[Candidate, ...]:
    scores = np.array([_score(one) for one in candidates])
    values = np.exp(scores - scores.max())
    shares = (values / values.sum()).tolist()
    return tuple(
        Candidate(one.text, one.start, one.stop, share, one.start_logit, one.end_logit)
        for one, share in zip(candidates, shares, strict=True)
    )
