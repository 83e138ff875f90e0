"""Answers from logits, their evaluation, and the choice of the "no answer" threshold."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from bertkit.reports.notebook import Row, Tabular
from bertkit.reports.text import format_percent
from bertkit.tasks.answer import AnswerSettings
from bertkit.tasks.answer.examples import AnswerExample
from bertkit.tasks.batch import Logits
from bertkit.tasks.evaluation import ConfidentScoring, Flags, Numbers, Statistic
from bertkit.tasks.metrics.classification import weighted_mean
from bertkit.tasks.metrics.texts import (
    AnswerScores,
    SquadVersion,
    find_null_threshold,
    score_answers,
    total_squad,
)
from bertkit.tasks.task import TaskPrediction

N_BEST_KEYS = ("text", "probability", "start_logit", "end_logit")  # of google-research/bert
Places = npt.NDArray[np.int32]
LENGTH_BONUS = 0.01  # score per token of a window, so that the longer window wins ties
MARK = "Mn"  # Unicode category of combining accents, which follow their letter


@dataclass(frozen=True)
class AnswerCandidate(Tabular):
    """A possible answer."""

    text: str  # empty for "no answer"
    start: int | None  # None for "no answer"
    stop: int | None  # as in `context[start:stop]`
    probability: float  # among the candidates of its question
    start_logit: float  # of its first token
    end_logit: float  # of its last token


@dataclass(frozen=True)
class Answer(TaskPrediction):
    """The answer to a question."""

    text: str  # empty for "no answer"
    start: int | None  # None for "no answer"
    stop: int | None  # as in `context[start:stop]`
    probability: float  # among the candidates
    null_odds: float | None  # score of "no answer" minus the best span's; None in SQuAD 1.1
    n_best: tuple[AnswerCandidate, ...]  # the best first

    @property
    def n_best_scores(self) -> list[dict[str, JsonValue]]:
        """The candidates as google-research/bert writes them, the best first."""
        return [{name: getattr(one, name) for name in N_BEST_KEYS} for one in self.n_best]

    def as_rows(self) -> Sequence[Row]:
        """Return a row for each candidate, the best first."""
        return [one.as_row() for one in self.n_best]

    def describe(self) -> str:
        """Return the answer and its probability."""
        return f"{self.text or NO_ANSWER}\t{format_percent(self.probability)}"

    @property
    def is_null(self) -> bool:
        """Whether the answer is "no answer"."""
        return self.start is None

    @property
    def best(self) -> AnswerCandidate | None:
        """The best candidate that is a part of the context; None if the context has no token."""
        return next((one for one in self.n_best if one.start is not None), None)

    @classmethod
    def choose(
        cls, n_best: tuple[AnswerCandidate, ...], null_odds: float | None, threshold: float
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


@dataclass(frozen=True)
class Windows:
    """The positions of windows in a context."""

    parts: tuple[range, ...]  # the range of context tokens in each window
    owners: Places  # `[tokens]`, the window in which each token has most context
    offsets: Places  # `[tokens, 2]`, start and end of each token in the context, in characters
    num_before: int  # tokens before each window's part: [CLS], question and [SEP]


def find_owners(parts: tuple[range, ...], num_tokens: int) -> Places:
    """Find the part in which each token has most context; ties go to the first."""
    owners = np.zeros(num_tokens, dtype=np.int32)
    most = np.full(num_tokens, -1.0)
    for number, part in enumerate(parts):
        places = np.arange(len(part))
        context = np.minimum(places, places[::-1]) + LENGTH_BONUS * len(part)
        is_more = context > most[part.start : part.stop]
        owners[part.start : part.stop][is_more] = number
        most[part.start : part.stop][is_more] = context[is_more]
    return owners


def find_tokens(offsets: Places, span: tuple[int, int]) -> tuple[int, int] | None:
    """Find the first and last token of a character span; None if no token overlaps it."""
    first = int(np.searchsorted(offsets[:, 1], span[0], side="right"))
    last = int(np.searchsorted(offsets[:, 0], span[1], side="left")) - 1
    return (first, last) if first <= last else None


class Spans(NamedTuple):
    """Spans of tokens, `[spans]` each, the best first; of equal ones that found first."""

    firsts: npt.NDArray[np.int64]  # the first token of each in the context
    lasts: npt.NDArray[np.int64]  # the last token
    start_logits: npt.NDArray[np.float64]
    end_logits: npt.NDArray[np.float64]


def find_answer(
    context: str, windows: Windows, logits: Logits, settings: AnswerSettings, threshold: float
) -> Answer:
    """Decode logits `[tokens, 2]` of all windows (start, end) to an answer."""
    num_tokens = sum(map(len, windows.parts))
    num_others = (len(logits) - num_tokens) // len(windows.parts)  # question and special tokens
    sizes = [len(part) + num_others for part in windows.parts]
    parts = np.split(logits, np.cumsum(sizes)[:-1])
    spans = find_spans(windows, parts, settings)
    candidates = list(_list_candidates(context, windows, spans, settings.n_best))
    has_null = settings.version == "2.0"
    nulls = [AnswerCandidate("", None, None, 0.0, *part[0].tolist()) for part in parts]
    null = min(nulls, key=_score_spans)  # each scored by its window's [CLS]
    null_odds = None
    if has_null:
        null_odds = _score_spans(null) - (_score_spans(candidates[0]) if candidates else 0.0)
    if has_null or not candidates:
        rank = sum(_score_spans(one) >= _score_spans(null) for one in candidates)
        if rank < settings.n_best:  # it replaces the last; otherwise it is appended
            del candidates[settings.n_best - 1 :]
        candidates.insert(rank, null)
    scores = np.array([_score_spans(one) for one in candidates])
    values = np.exp(scores - scores.max())
    shares = zip(candidates, (values / values.sum()).tolist(), strict=True)
    n_best = tuple(replace(one, probability=share) for one, share in shares)
    return Answer.choose(n_best, null_odds, threshold)


def find_spans(windows: Windows, parts: list[Logits], settings: AnswerSettings) -> Spans:
    """Find the spans between the best start and end tokens of a window; else between any tokens.

    Where those form no valid span, google's script returns "empty".
    """
    most = max(map(len, parts))
    for num_best in (settings.n_best, most):
        found = [
            _pair_places(windows, number, part, num_best, settings.max_answer_length)
            for number, part in enumerate(parts)
        ]
        if any(len(spans.firsts) for spans in found):
            break
    firsts, lasts, start_logits, end_logits = map(np.concatenate, zip(*found, strict=True))
    order = np.argsort(-(start_logits + end_logits), kind="stable")
    return Spans(firsts[order], lasts[order], start_logits[order], end_logits[order])


def _pair_places(
    windows: Windows, number: int, logits: Logits, num_best: int, max_length: int
) -> Spans:
    """Combine the best starts of one window with its best ends, ranked by start, then end."""
    part = windows.parts[number]
    starts, ends = np.argsort(-logits.T, kind="stable")[:, :num_best]
    shift = part.start - windows.num_before
    firsts, lasts = _keep_inside(starts + shift, part), _keep_inside(ends + shift, part)
    firsts = firsts[windows.owners[firsts] == number]
    num_more = lasts - firsts[:, None]
    rows, columns = np.nonzero((num_more >= 0) & (num_more < max_length))
    firsts, lasts = firsts[rows], lasts[columns]
    values = logits.astype(np.float64)
    return Spans(firsts, lasts, values[firsts - shift, 0], values[lasts - shift, 1])


def _keep_inside(tokens: npt.NDArray[np.int64], part: range) -> npt.NDArray[np.int64]:
    return tokens[(tokens >= part.start) & (tokens < part.stop)]


def _list_candidates(
    context: str, windows: Windows, spans: Spans, num_best: int
) -> Iterator[AnswerCandidate]:
    """List the best spans, each text once; their probabilities are set later."""
    seen: set[str] = set()
    for first, last, *logits in zip(*spans, strict=True):  # stops after a few of many
        start = int(windows.offsets[first, 0])
        stop = _with_marks(context, windows, last)
        text = context[start:stop]
        if text not in seen:
            seen.add(text)
            yield AnswerCandidate(text, start, stop, 0.0, *map(float, logits))
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


def _score_spans(candidate: AnswerCandidate) -> float:
    return candidate.start_logit + candidate.end_logit


MARGIN = 1.0  # logits between the highest odds and a threshold above all of them
SHOWN_CHARS = 120  # of the context, on each side of the answer
NO_ANSWER = "(no answer)"


def find_threshold(examples: Sequence[AnswerExample], answers: Sequence[Answer]) -> float | None:
    """Find the threshold on the odds of "no answer" with the best F1.

    It lies halfway to the next odds, because the odds of another engine differ in the last bits.
    None unless there are both questions with and without an answer: there is no trade-off then.
    """
    has_answer = list_answerable(examples)
    if has_answer.all() or not has_answer.any():
        return None
    texts = ["" if answer.best is None else answer.best.text for answer in answers]
    scores = score_answers(texts, _gold_texts(examples), "2.0")
    odds = np.array([answer.null_odds for answer in answers], dtype=np.float64)
    lowest = find_null_threshold(scores, has_answer, odds)
    above = odds[odds > lowest].min(initial=lowest + 2 * MARGIN)
    return float(lowest + above) / 2


class AnswerScoring(ConfidentScoring[AnswerExample, Answer]):
    """Metrics from 0 to 1, named as in the official script of SQuAD 1.1 or 2.0."""

    @cached_property
    def version(self) -> SquadVersion:
        """SQuAD 2.0 if a question has no answer, or may be given none."""
        may_be_null = any(answer.null_odds is not None for answer in self.predictions)
        return "2.0" if may_be_null or not list_answerable(self.examples).all() else "1.1"

    @cached_property
    def scores(self) -> AnswerScores:
        """Exact match and F1 of each question."""
        texts = [answer.text for answer in self.predictions]
        return score_answers(texts, _gold_texts(self.examples), self.version)

    @property
    def metrics(self) -> dict[str, float]:
        """Exact match and F1, over all questions and over those with and without an answer."""
        return total_squad(self.scores, list_answerable(self.examples), self.version)

    @property
    def statistics(self) -> dict[str, Statistic]:
        """Exact match and F1 of weighted questions."""
        exact = "exact_match" if self.version == "1.1" else "exact"
        return {
            exact: partial(weighted_mean, self.scores.exact),
            "f1": partial(weighted_mean, self.scores.f1),
        }

    @property
    def is_right(self) -> Flags:
        """Whether each answer is exactly a true one."""
        flags: Flags = self.scores.exact == 1.0
        return flags

    @property
    def errors(self) -> Numbers:
        """What each answer lacks in F1, times its probability."""
        return (1.0 - self.scores.f1) * self.confidences

    def show_example(self, number: int) -> str:
        """Return a question and its context around the true answer, or else the predicted one."""
        example, answer = self.examples[number], self.predictions[number]
        start, stop = example.span or (answer.start or 0, answer.stop or 0)
        first, last = max(0, start - SHOWN_CHARS), min(len(example.context), stop + SHOWN_CHARS)
        before, after = "…" * (first > 0), "…" * (last < len(example.context))
        excerpt = f"{before}{example.context[first:last]}{after}"
        return f"{example.question} \N{EM DASH} {excerpt}"

    def contrast(self, number: int) -> tuple[str, str]:
        """Return the true answers and the predicted one."""
        golds = dict.fromkeys(gold.text for gold in self.examples[number].answers or ())
        return " | ".join(golds) or NO_ANSWER, self.predictions[number].text or NO_ANSWER

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warn if the model can't decline to answer where it should, or always declines."""
        warnings = []
        num_impossible = int((~list_answerable(self.examples)).sum())
        if num_impossible and all(answer.null_odds is None for answer in self.predictions):
            warnings.append(
                f"{num_impossible:,} of {len(self.examples):,} questions have no answer, and this"
                " model, trained by the rules of SQuAD 1.1, answers every question"
            )
        some_answer = num_impossible < len(self.examples)
        if some_answer and all(answer.is_null for answer in self.predictions):
            warnings.append("every prediction is that there is no answer")
        return tuple(warnings)


def list_answerable(examples: Sequence[AnswerExample]) -> npt.NDArray[np.bool_]:
    """Return for each question whether it has an answer."""
    return np.array([bool(example.answers) for example in examples])


def _gold_texts(examples: Sequence[AnswerExample]) -> list[list[str]]:
    return [[answer.text for answer in example.answers or ()] for example in examples]
