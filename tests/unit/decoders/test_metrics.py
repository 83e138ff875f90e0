"""BLEU, chrF and ROUGE are those of the libraries, and odd texts have a clear outcome."""

import re
import sys

import pytest
import sacrebleu
from rouge_score.rouge_scorer import RougeScorer
from tests.closeness import close

from bertkit.base.errors import InputError, MissingExtraError
from bertkit.base.extras import describe_install
from bertkit.decoders import metrics
from bertkit.decoders.metrics import measure_summaries, measure_translation

WRITTEN = ["A dog runs across the wet grass.", "Two men sit.", "", "The cat's hat is red ."]
RIGHT = ["A dog is running across wet grass.", "Two men sit.", "A boy.", "The cat's hat is red."]
MEASURES = [measure_translation, measure_summaries]


def test_bleu_and_chrf_are_those_of_sacrebleu():
    found = measure_translation(WRITTEN, RIGHT)
    assert found == {
        "bleu": sacrebleu.corpus_bleu(WRITTEN, [RIGHT]).score,
        "chrf": sacrebleu.corpus_chrf(WRITTEN, [RIGHT]).score,
    }
    assert 0 < found["bleu"] < found["chrf"] < 100
    assert measure_translation(RIGHT, RIGHT) == close({"bleu": 100.0, "chrf": 100.0})


def test_one_sentence_has_its_own_length_of_ngrams():
    assert measure_translation(["Two men sit"], ["Two men sit"])["bleu"] == close(100.0)
    assert "eff:yes" in metrics.translation_signatures(1)["bleu"]
    assert measure_translation(["Two men sit"] * 2, ["Two men sit"] * 2)["bleu"] == 0.0


def test_signatures_say_how():
    found = metrics.translation_signatures()
    pattern = r"nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:[\d.]+"
    assert re.fullmatch(pattern, found["bleu"])
    assert re.fullmatch(r"nrefs:1\|case:mixed\|.*\|nc:6\|nw:0\|.*version:[\d.]+", found["chrf"])
    found = metrics.summary_signatures()
    assert list(found) == ["rouge1", "rouge2", "rougeL"]
    assert "the first 4096|case:lower|stem:no|version:0." in found["rougeL"]


def test_rouge_is_that_of_the_library_for_english():
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"])
    scores = [scorer.score(right, written) for written, right in zip(WRITTEN, RIGHT, strict=True)]
    found = measure_summaries(WRITTEN, RIGHT)
    for name, value in found.items():
        assert value == close(sum(score[name].fmeasure for score in scores) / 4)
    assert 0 < found["rouge2"] < found["rougeL"] <= found["rouge1"] < 1


def test_rouge_knows_words_of_any_script():
    values = measure_summaries(["Кот сидит_тут"], ["кот сидит"])
    assert values == close({"rouge1": 0.8, "rouge2": 2 / 3, "rougeL": 0.8})
    values = measure_summaries(["हिन्दी भाषा"], ["हिन्दी"])
    assert values["rouge1"] == close(2 / 3)  # vowels and joiners don't divide a word
    # "über" isn't "ber", as it is where only a to z are letters.
    assert measure_summaries(["über"], ["ber"])["rouge1"] == 0.0


def test_rouge_tells_texts_without_blanks_apart():
    near, far = measure_summaries(["我们去公园"], ["他们去公园"]), measure_summaries(["我"], ["他"])
    assert near == close({"rouge1": 0.8, "rouge2": 0.75, "rougeL": 0.8})
    assert far["rouge1"] == 0.0


def test_only_the_beginnings_of_endless_texts_count(monkeypatch):
    monkeypatch.setattr(metrics, "MAX_WORDS", 3)
    values = measure_summaries(["a b c d e"], ["a b c x"])
    assert values == close({"rouge1": 1.0, "rouge2": 1.0, "rougeL": 1.0})


@pytest.mark.parametrize("measure", MEASURES)
def test_empty_texts_score_nothing_and_no_texts_are_refused(measure):
    assert set(measure([""], ["A boy."]).values()) == {0.0}
    assert set(measure([""], [""]).values()) == {0.0}
    assert set(measure(["", ""], ["A boy.", "A girl."]).values()) == {0.0}
    with pytest.raises(InputError, match="hypotheses and references are empty"):
        measure([], [])


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("written", "right", "message"),
    [
        (["a"], ["a", "b"], "there are of hypotheses 1, references 2"),
        ("ab", ["a", "b"], "hypotheses must be a list of texts, not one text"),
        (["a"], [None], r"references\[0\] must be a text, not NoneType"),
    ],
)
def test_what_is_no_pair_of_texts_is_refused(measure, written, right, message):
    with pytest.raises(InputError, match=message):
        measure(written, right)


@pytest.mark.parametrize(
    ("measure", "library", "extra"),
    [
        (measure_translation, "sacrebleu.metrics", "translate"),
        (measure_summaries, "rouge_score.rouge_scorer", "summarize"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(monkeypatch, measure, library, extra):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=re.escape(describe_install(extra))):
        measure(["a"], ["a"])
