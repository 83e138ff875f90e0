"""Metrics of answers, by SQuAD's rules; the perplexity of a loss, and its bits per character."""

import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bertkit.base.errors import InputError
from bertkit.tasks.metrics.classification import Numbers, check_lengths

SquadVersion = Literal["1.1", "2.0"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True)
class AnswerScores:
    """Scores of each question against its best-matching gold answer, from 0 to 1, `[questions]`."""

    exact: Numbers  # 1 if the normalized words are the same, in order, else 0
    f1: Numbers  # of the words in common


def normalize_answer(text: str) -> str:
    """Lowercase; remove ASCII punctuation, English articles and repeated white space."""
    without_articles = _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION))
    return " ".join(without_articles.split())


def score_answers(
    predictions: Sequence[str], gold_answers: Sequence[Sequence[str]], version: SquadVersion
) -> AnswerScores:
    """Score each question against its best-matching gold answer; an empty prediction is no answer.

    In 2.0, gold answers without words are dropped; if none remains, the gold answer is empty. A
    prediction without words has F1 1 against the empty answer in 2.0, and F1 0 in 1.1.
    """
    check_lengths(predictions=predictions, gold_answers=gold_answers)
    scores = np.empty((2, len(predictions)))
    for number, (prediction, golds) in enumerate(zip(predictions, gold_answers, strict=True)):
        choices = [normalize_answer(gold).split() for gold in golds]
        if version == "2.0":
            choices = [words for words in choices if words] or [[]]
        elif not choices:
            raise InputError(
                f"question {number:,} has no gold answer; SQuAD 1.1 has one for each: score it by"
                " the rules of 2.0"
            )
        words = normalize_answer(prediction).split()
        scores[:, number] = words in choices, max(_overlap(words, gold) for gold in choices)
        if version == "2.0" and not words:
            scores[1, number] = scores[0, number]
    return AnswerScores(*scores)


def total_squad(
    scores: AnswerScores, has_answer: ArrayLike, version: SquadVersion
) -> dict[str, float]:
    """Return the means of the scores as evaluate-v1.1.py or evaluate-v2.0.py names them.

    In 2.0, `HasAns_…` are those of the questions with a gold answer, `NoAns_…` of the others; each
    group is present only if it has questions.
    """
    if version == "1.1":
        return {"exact_match": float(scores.exact.mean()), "f1": float(scores.f1.mean())}
    is_answerable = np.asarray(has_answer, dtype=bool)
    everyone = np.ones_like(is_answerable)
    groups = {"": everyone, "HasAns_": is_answerable, "NoAns_": ~is_answerable}
    return {
        f"{prefix}{name}": float(values[chosen].mean())
        for prefix, chosen in groups.items()
        if chosen.any()
        for name, values in (("exact", scores.exact), ("f1", scores.f1))
    }


def find_null_threshold(scores: AnswerScores, has_answer: ArrayLike, null_odds: ArrayLike) -> float:
    """Find the odds above which no answer gives the best F1; of equals the lowest.

    Questions with equal odds are never separated. If answering nothing is best, the threshold is
    below all odds.
    """
    is_answerable, odds = np.asarray(has_answer, dtype=bool), np.asarray(null_odds, np.float64)
    order = np.argsort(odds, kind="stable")
    gains = scores.f1 - ~is_answerable
    running = np.cumsum([(~is_answerable).sum(), *gains[order]])
    is_reachable = np.concatenate([[True], np.diff(odds[order]) > 0, [True]])
    best = int(np.argmax(np.where(is_reachable, running, -np.inf)))
    return float(odds[order[best - 1]] if best else odds.min() - 1.0)


def _overlap(words: list[str], gold: list[str]) -> float:
    num_same = (Counter(words) & Counter(gold)).total()
    if num_same == 0:
        return 0.0
    precision, recall = num_same / len(words), num_same / len(gold)
    return 2 * precision * recall / (precision + recall)


MOST_NATS = 100.0  # above the loss of any trained model, while its exponential is still finite


def find_perplexity(loss: float) -> float:
    """Return the perplexity: the exponential of the mean loss per token.

    It is never infinite, because JSON has no infinity.
    """
    return math.exp(min(loss, MOST_NATS))


def find_bits_per_character(loss: float, num_tokens: int, num_characters: int) -> float:
    """Return the mean loss per character of the text in bits.

    Unlike loss, accuracy and perplexity, it compares models with different vocabularies.
    """
    return loss * num_tokens / (num_characters * math.log(2))
