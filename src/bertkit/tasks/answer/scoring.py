"""Evaluation of answers, and the choice of the "no answer" threshold."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bertkit.metrics.bootstrap import bootstrap_interval
from bertkit.metrics.examples import weighted_mean
from bertkit.metrics.squad import (
    AnswerScores,
    SquadVersion,
    find_null_threshold,
    score_answers,
    total_squad_1,
    total_squad_2,
)
from bertkit.tasks.answer.decoding import Answer
from bertkit.tasks.answer.examples import AnswerExample
from bertkit.tasks.evaluation import Evaluation, Mistake

PERCENT = 100.0  # the unit of the official scripts
COUNT_ENDING = "total"  # suffix of totals that count questions
MARGIN = 1.0  # logits between the highest odds and a threshold above all of them
BOOTSTRAP_SEED = 0
MAX_MISTAKES = 100
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
    lowest = find_null_threshold(scores, "f1", has_answer, odds).threshold
    above = odds[odds > lowest].min(initial=lowest + 2 * MARGIN)
    return float(lowest + above) / 2


def measure(examples: Sequence[AnswerExample], answers: Sequence[Answer]) -> dict[str, float]:
    """Compute metrics from 0 to 1, named as in the official script of SQuAD 1.1 or 2.0.

    The rules of 2.0 apply if "no answer" can be predicted, or if some questions have no answer.
    """
    scores, version = _score(examples, answers)
    if version == "1.1":
        totals = total_squad_1(scores)
    else:
        totals = total_squad_2(scores, list_answerable(examples))
    return {
        name: value / PERCENT for name, value in totals.items() if not name.endswith(COUNT_ENDING)
    }


def evaluate(examples: Sequence[AnswerExample], answers: Sequence[Answer]) -> Evaluation:
    """Compute metrics, their intervals over questions, and the most confident mistakes."""
    scores, version = _score(examples, answers)
    columns = {"exact_match" if version == "1.1" else "exact": scores.exact, "f1": scores.f1}
    return Evaluation(
        metrics=measure(examples, answers),
        intervals={name: _interval(values) for name, values in columns.items()},
        confidences=np.array([answer.probability for answer in answers]),
        is_right=scores.exact == 1.0,
        mistakes=_list_mistakes(examples, answers, scores.f1),
        warnings=_list_warnings(examples, answers),
    )


def list_answerable(examples: Sequence[AnswerExample]) -> npt.NDArray[np.bool_]:
    """Return for each question whether it has an answer."""
    return np.array([bool(example.answers) for example in examples])


def _score(
    examples: Sequence[AnswerExample], answers: Sequence[Answer]
) -> tuple[AnswerScores, SquadVersion]:
    may_be_null = any(answer.null_odds is not None for answer in answers)
    version: SquadVersion = "1.1"
    if may_be_null or not list_answerable(examples).all():
        version = "2.0"
    texts = [answer.text for answer in answers]
    return score_answers(texts, _gold_texts(examples), version), version


def _gold_texts(examples: Sequence[AnswerExample]) -> list[list[str]]:
    return [[answer.text for answer in example.answers or ()] for example in examples]


def _interval(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    interval = bootstrap_interval(
        lambda weights: weighted_mean(values, weights), len(values), seed=BOOTSTRAP_SEED
    )
    return interval.low, interval.high


def _list_mistakes(
    examples: Sequence[AnswerExample],
    answers: Sequence[Answer],
    f1: npt.NDArray[np.float64],
) -> tuple[Mistake, ...]:
    badness = (1.0 - f1) * np.array([answer.probability for answer in answers])
    worst = np.argsort(-badness, kind="stable")[:MAX_MISTAKES].tolist()
    return tuple(
        _describe_mistake(examples[number], answers[number], float(badness[number]))
        for number in worst
        if badness[number] > 0.0
    )


def _describe_mistake(example: AnswerExample, answer: Answer, badness: float) -> Mistake:
    golds = dict.fromkeys(gold.text for gold in example.answers or ())
    return Mistake(
        place=example.place,
        text=f"{example.question} \N{EM DASH} {_excerpt(example, answer)}",
        expected=" | ".join(golds) or NO_ANSWER,
        predicted=answer.text or NO_ANSWER,
        badness=badness,
    )


def _excerpt(example: AnswerExample, answer: Answer) -> str:
    """Return the context around the true answer, or around the predicted one if there is none."""
    start, stop = example.span or (answer.start or 0, answer.stop or 0)
    first, last = max(0, start - SHOWN_CHARS), min(len(example.context), stop + SHOWN_CHARS)
    before = "…" if first else ""
    after = "…" if last < len(example.context) else ""
    return f"{before}{example.context[first:last]}{after}"


def _list_warnings(examples: Sequence[AnswerExample], answers: Sequence[Answer]) -> tuple[str, ...]:
    warnings = []
    num_impossible = int((~list_answerable(examples)).sum())
    if num_impossible and all(answer.null_odds is None for answer in answers):
        warnings.append(
            f"{num_impossible:,} of {len(examples):,} questions have no answer, and this model,"
            " trained by the rules of SQuAD 1.1, answers every question"
        )
    if num_impossible < len(examples) and all(answer.is_null for answer in answers):
        warnings.append("every prediction is that there is no answer")
    return tuple(warnings)
