"""Answers by SQuAD's rules; parity tests hold them against the rules stated again."""

import math

import numpy as np
import pytest
from tests.closeness import close

from bertkit.base.errors import InputError
from bertkit.tasks.metrics.texts import (
    AnswerScores,
    find_bits_per_character,
    find_null_threshold,
    find_perplexity,
    score_answers,
)


@pytest.mark.parametrize(
    ("prediction", "golds", "old", "new"),
    [
        ("", ["cat"], (0, 0), (0, 0)),
        ("the", ["a"], (1, 0), (1, 1)),  # both without a word
        ("cat", ["the", "cat"], (1, 1), (1, 1)),
        ("", ["the", "cat"], (1, 0), (0, 0)),  # the gold answer without a word is left out
        ("cat", [], None, (0, 0)),
        ("", [], None, (1, 1)),
    ],
)
def test_answers_without_a_word(prediction, golds, old, new):
    scores = score_answers([prediction], [golds], "2.0")
    assert (*scores.exact, *scores.f1) == new
    if old is None:
        with pytest.raises(InputError, match="question 0 has no gold answer"):
            score_answers([prediction], [golds], "1.1")
    else:
        scores = score_answers([prediction], [golds], "1.1")
        assert (*scores.exact, *scores.f1) == old


SCORES = AnswerScores(exact=np.array([1.0, 0, 0, 1]), f1=np.array([1.0, 0.5, 0, 1]))
HAS_ANSWER = [True, True, False, False]


def test_the_best_threshold_gives_its_score():
    generator = np.random.default_rng(0)
    for _ in range(300):
        num_questions = generator.integers(1, 9)
        has_answer = generator.random(num_questions) < 0.5
        f1 = np.where(has_answer, generator.random(num_questions).round(1), 0.0)
        f1[~has_answer] = generator.integers(2, size=(~has_answer).sum())
        scores = AnswerScores(np.floor(f1), f1)
        odds = generator.normal(size=num_questions).round(generator.integers(3)) * 5
        means = {
            threshold: np.where(odds > threshold, ~has_answer, f1).mean()
            for threshold in (odds.min() - 1, *odds)
        }
        best = find_null_threshold(scores, has_answer, odds)
        assert means[best] == close(max(means.values()))


def test_wrong_questions_are_refused():
    with pytest.raises(InputError, match="predictions 1, gold_answers 2"):
        score_answers(["x"], [["x"], ["y"]], "2.0")
    with pytest.raises(InputError, match="are empty"):
        score_answers([], [], "1.1")


@pytest.mark.parametrize(("loss", "perplexity"), [(0.0, 1.0), (math.log(8.0), 8.0)])
def test_it_is_among_how_many_words_a_model_is_in_doubt(loss, perplexity):
    assert find_perplexity(loss) == close(perplexity)


def test_the_greatest_loss_has_one_too():
    assert 1e43 < find_perplexity(101.0) == find_perplexity(math.inf) < 1e44


def test_bits_per_character_do_not_depend_on_how_a_text_is_cut_into_tokens():
    letters = find_bits_per_character(math.log(2), num_tokens=12, num_characters=12)
    words = find_bits_per_character(4 * math.log(2), num_tokens=3, num_characters=12)
    assert letters == close(1.0)
    assert words == close(letters)
