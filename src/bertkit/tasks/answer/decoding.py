"""From logits to answers: beginnings and ends of all windows, the best spans, and "none".

Source: google-research/bert `run_squad.py`, `write_predictions`.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bertkit.tasks.answer.settings import AnswerSettings
from bertkit.tasks.answer.windows import Windows
from bertkit.tasks.logits import Logits

MARK = "Mn"  # Unicode's category of accents that stand behind their letter


@dataclass(frozen=True)
class Candidate:
    """A possible answer.

    Attributes:
        text: a part of the context; empty for "there is no answer".
        start: where it begins in the context, in characters; None for "there is no answer".
        stop: where it ends, as in `context[start:stop]`.
        probability: among the candidates of its question, from 0 to 1.
        start_logit: of its first token.
        end_logit: of its last.
    """

    text: str
    start: int | None
    stop: int | None
    probability: float
    start_logit: float
    end_logit: float


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    Attributes:
        text: a part of the context; empty where there is no answer.
        start: where it begins in the context, in characters; None where there is no answer.
        stop: where it ends, as in `context[start:stop]`.
        probability: among the candidates, from 0 to 1.
        null_odds: by how many logits "there is no answer" is ahead of the best one; None by the
            rules of SQuAD 1.1.
        n_best: the candidates, the best first.
    """

    text: str
    start: int | None
    stop: int | None
    probability: float
    null_odds: float | None
    n_best: tuple[Candidate, ...]

    @property
    def is_null(self) -> bool:
        """Whether the answer is that there is none."""
        return self.start is None

    @property
    def best(self) -> Candidate | None:
        """The best candidate that is a part of the context; None where the context has no token."""
        return next((one for one in self.n_best if one.start is not None), None)

    @classmethod
    def choose(
        cls, n_best: tuple[Candidate, ...], null_odds: float | None, threshold: float
    ) -> Self:
        """The best part of the context, or "none" where its odds are above a threshold."""
        nulls = [one for one in n_best if one.start is None]
        spans = [one for one in n_best if one.start is not None]
        is_null = not spans or (null_odds is not None and null_odds > threshold)
        chosen = (nulls if is_null else spans)[0]
        return cls(chosen.text, chosen.start, chosen.stop, chosen.probability, null_odds, n_best)

    def decide(self, threshold: float) -> Self:
        """The same candidates under another threshold."""
        return self.choose(self.n_best, self.null_odds, threshold)


class Spans(NamedTuple):
    """Spans of tokens, the best first; of equal ones that which was found first.

    Attributes:
        firsts: `[spans]`, the first token of each in the context.
        lasts: the last.
        start_logits: of the first.
        end_logits: of the last.
    """

    firsts: npt.NDArray[np.int64]
    lasts: npt.NDArray[np.int64]
    start_logits: npt.NDArray[np.float64]
    end_logits: npt.NDArray[np.float64]


def find_answer(
    context: str, windows: Windows, logits: Logits, settings: AnswerSettings, threshold: float
) -> Answer:
    """The answer that logits mean.

    Args:
        context: the text.
        windows: of it.
        logits: `[tokens, 2]` of all windows: scores of beginning and end.
        settings: version, lengths and numbers.
        threshold: of `null_odds`, above which there is no answer.
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
        if rank < settings.n_best:  # it takes the place of the last; otherwise it is one more
            del candidates[settings.n_best - 1 :]
        candidates.insert(rank, null)
    return Answer.choose(_with_probabilities(candidates), null_odds, threshold)


def find_spans(windows: Windows, parts: list[Logits], settings: AnswerSettings) -> Spans:
    """Spans of the context's tokens that begin and end at one of the best places of a window.

    Where none of a question's best places may be an answer, all places are tried; google's script
    answers "empty" then.
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
    """Spans of one window, in the order of their beginnings, then of their ends."""
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
    """The best spans, each text once; probabilities are still to come."""
    seen: set[str] = set()
    for first, last, *logits in zip(*spans, strict=True):  # few of many are looked at
        start = int(windows.offsets[first, 0])
        stop = _with_marks(context, windows, last)
        text = context[start:stop]
        if text not in seen:
            seen.add(text)
            yield Candidate(text, start, stop, 0.0, *map(float, logits))
        if len(seen) == num_best:
            return


def _with_marks(context: str, windows: Windows, last: np.int64) -> int:
    """Where a token ends, with the accents behind it, which a tokenizer may have dropped."""
    stop = int(windows.offsets[last, 1])
    end = len(context)
    if last + 1 < len(windows.offsets):
        end = int(windows.offsets[last + 1, 0])
    while stop < end and unicodedata.category(context[stop]) == MARK:
        stop += 1
    return stop


def _split(windows: Windows, logits: Logits) -> list[Logits]:
    """The rows of each window."""
    sizes = [windows.num_before + len(part) + 1 for part in windows.parts]
    return np.split(logits, np.cumsum(sizes)[:-1])


def _null_of(logits: Logits) -> Candidate:
    """That a window's answer is [CLS], which says that it has none."""
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
