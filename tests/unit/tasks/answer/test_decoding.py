"""Answers are slices of the context, the best first, or none."""

import numpy as np
import pytest
from tests.closeness import close

from bertkit.tasks.answer import AnswerSettings
from bertkit.tasks.answer.task import AnswerQuestions
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

TOKENIZER = Tokenizer([*SPECIAL_TOKENS, "who", "?", "ada", "wrote", "cafe", "ole", "##s", "x", "."])
CONTEXT = "Ada wrote cafe\u0301s ol\u00e9 cafe\u0301."  # accents behind their letter and in it


def answer(peaks, context=CONTEXT, threshold=0.0, **settings):
    """The answer where some tokens of the one window have high scores, by (token, side)."""
    task = AnswerQuestions(
        AnswerSettings(**{"version": "1.1", **settings}), numbers={"null_threshold": threshold}
    )
    example = task.make_example(("Who?", context), "here")
    (encoded,) = task.encode([example], TOKENIZER)
    logits = np.zeros((encoded.num_tokens, 2), dtype=np.float32)
    for place, score in peaks.items():
        logits[place] = score
    return task.decode(example, encoded, logits)


FIRST = 4  # [CLS] who ? [SEP]
ADA, WROTE, CAFES, S, OLE, CAFE = range(FIRST, FIRST + 6)


def test_an_answer_is_a_slice_of_the_context_with_its_probability():
    found = answer({(WROTE, 0): 5, (OLE, 1): 6})
    assert found.text == "wrote cafe\u0301s ol\u00e9" == CONTEXT[found.start : found.stop]
    assert (found.start, found.stop) == (4, 20)
    assert not found.is_null
    assert found.null_odds is None
    scores = np.array([one.start_logit + one.end_logit for one in found.n_best])
    assert scores[0] == 11
    assert (np.diff(scores) <= 0).all()
    assert found.probability == close(np.exp(11) / np.exp(scores).sum())
    assert sum(one.probability for one in found.n_best) == close(1)
    assert found.best == found.n_best[0]


def test_accents_behind_the_last_letter_belong_to_the_answer():
    assert answer({(CAFE, 0): 5, (CAFE, 1): 5}).text == "cafe\u0301"
    alone = "ada wrote cafe\u0301\u0302"
    assert answer({(FIRST + 2, 0): 5, (FIRST + 2, 1): 5}, alone).text == "cafe\u0301\u0302"


NULL = {(0, 0): 4, (0, 1): 3}


def test_none_is_the_answer_where_its_odds_are_above_the_threshold():
    peaks = {**NULL, (ADA, 0): 2, (ADA, 1): 3}
    found = answer(peaks, version="2.0", threshold=1.9)
    assert (found.text, found.start, found.stop, found.is_null) == ("", None, None, True)
    assert found.null_odds == 2
    assert found.n_best[0].text == ""
    assert found.probability == found.n_best[0].probability
    at = answer(peaks, version="2.0", threshold=2.0)
    assert (at.text, at.is_null) == ("Ada", False)
    assert at.decide(1.9) == found
    assert at.probability < found.probability
    assert at.best == found.best


def test_by_the_rules_of_1_1_there_is_always_an_answer():
    found = answer({**NULL, (0, 0): 99, (0, 1): 99}, threshold=-99)
    assert found.text
    assert all(one.text for one in found.n_best)


@pytest.mark.parametrize("version", ["1.1", "2.0"])
@pytest.mark.parametrize("context", ["", " \n", "\u200b\x00"])
def test_a_context_without_a_token_has_no_answer(context, version):
    found = answer({(0, 0): -50}, context, version=version)
    assert found.is_null
    assert (found.text, found.probability, found.best) == ("", 1.0, None)
    assert found.null_odds == (-50 if version == "2.0" else None)
    assert len(found.n_best) == 1
    assert found.decide(-99.0).is_null
