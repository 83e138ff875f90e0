"""Answers against those of people: totals, the threshold, mistakes and warnings."""

import numpy as np
import pytest
from tests.closeness import close

from bertkit.tasks.answer import scoring
from bertkit.tasks.answer.examples import AnswerExample, locate_answer
from bertkit.tasks.answer.scoring import Answer, AnswerCandidate, AnswerScoring

CONTEXT = "Ada Lovelace wrote the first program in 1843."


def question(*golds, number=0, context=CONTEXT):
    answers = tuple(locate_answer(context, gold, None) for gold in golds)
    return AnswerExample("Who?", context, answers, f"q{number}", f"dev.json, line {number}")


def answered(text, null_odds=None, probability=0.5, threshold=0.0):
    start = CONTEXT.index(text)
    candidates = [AnswerCandidate(text, start, start + len(text), probability, 1.0, 1.0)]
    if null_odds is not None:
        candidates.append(AnswerCandidate("", None, None, 1 - probability, 0.0, 0.0))
    return Answer.choose(tuple(candidates), null_odds, threshold)


def test_totals_are_those_of_2_0_where_an_answer_may_be_none():
    examples = [question("Ada"), question(), question()]
    answers = [answered("Ada", 5.0), answered("1843", 2.0), answered("1843", -2.0)]
    found = AnswerScoring(examples, answers).metrics
    assert (found["HasAns_f1"], found["NoAns_f1"], found["f1"]) == (0, 0.5, close(1 / 3))
    alone = AnswerScoring(examples[:1], answers[:1]).metrics
    assert alone == {"exact": 0, "f1": 0, "HasAns_exact": 0, "HasAns_f1": 0}
    by_data = AnswerScoring(examples[:2], [answered("Ada"), answered("Ada")]).metrics
    assert (by_data["HasAns_exact"], by_data["NoAns_exact"]) == (1, 0)


@pytest.mark.parametrize(
    ("texts", "odds", "expected"),
    [(("Ada", "Ada", "in"), (-3.0, -3.0, -5.0), -2.0), (("in", "in", "in"), (3.0, 3.0, 4.0), 2.5)],
)
def test_a_threshold_beyond_all_odds_keeps_a_distance(texts, odds, expected):
    examples = [question("Ada"), question("Ada"), question()]
    assert scoring.find_threshold(examples, list(map(answered, texts, odds))) == expected


@pytest.mark.parametrize("examples", [[question("Ada")], [question()]])
def test_without_both_kinds_of_question_no_threshold_is_found(examples):
    assert scoring.find_threshold(examples, [answered("Ada", 1.0)]) is None


def test_an_evaluation_has_intervals_confidences_and_the_surest_mistakes_first():
    examples = [question("Ada", number=1), question("1843", number=2), question("Ada", number=3)]
    answers = [
        answered("Lovelace", probability=0.4),
        answered("1843", probability=0.9),
        answered("first", probability=0.8),
    ]
    found = AnswerScoring(examples, answers).evaluate()
    assert found.metrics["f1"] == close(1 / 3)
    low, high = found.intervals["f1"]
    assert 0 <= low < found.metrics["f1"] < high <= 1
    assert found.intervals.keys() == {"exact_match", "f1"}
    np.testing.assert_array_equal(found.confidences, [0.4, 0.9, 0.8])
    assert found.is_right.tolist() == [False, True, False]
    assert [one.error for one in found.mistakes] == [0.8, 0.4]
    first = found.mistakes[0]
    assert (first.place, first.expected, first.predicted) == ("dev.json, line 3", "Ada", "first")
    assert first.text == f"Who? — {CONTEXT}"
    assert found.warnings == ()


def test_an_excerpt_shows_the_context_around_the_answer():
    context = "a " * 300 + "Ada wrote it" + " b" * 300
    gold, none = question("Ada", "wrote", context=context), question(context=context)
    found = AnswerScoring([gold, none], [answered("first", 0.0), answered("first", 0.0)]).evaluate()
    texts = [mistake.text for mistake in found.mistakes]
    assert texts[0].startswith("Who? — …a a")
    assert texts[0].endswith("b …")
    assert "Ada wrote it" in texts[0]
    assert len(texts[0]) < 300
    assert texts[1].startswith("Who? — a a a")
    assert [mistake.expected for mistake in found.mistakes] == ["Ada | wrote", scoring.NO_ANSWER]
    assert found.intervals.keys() == {"exact", "f1"}


def test_oddities_are_warned_of():
    examples = [question("Ada"), question()]
    of_1_1 = AnswerScoring(examples, [answered("Ada"), answered("Ada")]).evaluate()
    (warning,) = of_1_1.warnings
    assert warning.startswith("1 of 2 questions have no answer, and this model, trained by the")
    all_null = AnswerScoring(examples, [answered("Ada", 9.0), answered("Ada", 9.0)]).evaluate()
    assert all_null.warnings == ("every prediction is that there is no answer",)
    assert all_null.mistakes[0].predicted == scoring.NO_ANSWER
    fine = AnswerScoring(examples[1:], [answered("Ada", 9.0)]).evaluate()
    assert fine.warnings == ()
