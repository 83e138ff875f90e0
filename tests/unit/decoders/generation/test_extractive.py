"""The most central sentences of a text, in its order and without repeating."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from pydantic import ValidationError
from tests.closeness import assert_close, close

from bertkit.base.errors import NonFiniteError
from bertkit.decoders.generation.extractive import (
    CentralSummarizer,
    SummaryCounts,
    find_centrality,
    normalize,
)
from bertkit.decoders.generation.settings import SummarySettings
from bertkit.inference.pipeline import Window
from bertkit.inference.stream import TextCounts

SUBJECTS = ("storm", "port", "ship", "cat")
TEXT = (
    "The news\n"
    "A cat sat. The storm reached the port. A storm hit the port.  The ship left the port.\n"
    "The storm hit the ship."
)


class Counting:
    """Makes vectors of what is spoken of, some texts at a time."""

    dimension = len(SUBJECTS)

    def __init__(self, rows_at_once: int = 2) -> None:
        self.rows_at_once = rows_at_once

    def read(self, texts: list[str]) -> list[str]:
        return texts

    def stream_windows(self, texts: list[str], counts: TextCounts) -> Iterator[Window]:
        counts.truncated += 1
        rows = [[text.lower().count(word) for word in SUBJECTS] for text in texts]
        for start in range(0, len(rows), self.rows_at_once):
            yield Window(None, np.array(rows[start : start + self.rows_at_once], np.float32))


def build(rows_at_once: int = 2, **choices: object) -> CentralSummarizer:
    return CentralSummarizer(Counting(rows_at_once), SummarySettings(**choices))


def test_sentences_are_central_ones_in_the_order_of_the_text():
    summary = build(length=2, diversity=0.0)(TEXT)
    assert summary.text == "The storm reached the port. A storm hit the port."
    assert (summary.num_sentences, summary.num_candidates, summary.is_whole) == (6, 5, False)
    spans = [TEXT[sentence.start : sentence.stop] for sentence in summary.sentences]
    assert spans == [sentence.text for sentence in summary.sentences]
    assert [sentence.number for sentence in summary.sentences] == [3, 4]
    assert [sentence.rank for sentence in summary.sentences] == [1, 2]


def test_what_repeats_comes_later():
    summary = build(length=2, diversity=0.4)(TEXT)
    first, second = summary.sentences
    assert first.text == "The storm reached the port."
    assert second.number in {5, 6}  # as good as each other
    assert (first.similar_to, second.similar_to) == (None, 3)
    assert second.similarity == close(0.5, "float32")
    assert second.score == close(0.6 * second.relevance - 0.4 * second.similarity, "float32")


def test_a_sentence_is_taken_once_however_often_it_is_said():
    summary = build(length=3, diversity=0.0)("The storm. A cat sat. The  Storm! A port. the storm.")
    assert summary.text == "The storm. A cat sat. A port."
    assert (summary.num_sentences, summary.num_candidates, summary.is_whole) == (5, 3, True)


def test_relevance_ranks_as_the_mean_cosine_to_all():
    vectors = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    directions = normalize(vectors)
    centrality = find_centrality(directions)
    means = (directions @ directions.T).mean(axis=1)
    assert np.argsort(centrality).tolist() == np.argsort(means).tolist()
    center = directions.mean(axis=0)
    assert_close(centrality, directions @ center / np.linalg.norm(center))


def test_vectors_without_a_length_are_alike_to_none():
    directions = normalize(np.array([[0, 0], [3, 4]], np.float32))
    assert_close(directions, [[0, 0], [0.6, 0.8]], "float32")
    assert find_centrality(np.zeros((2, 3), np.float32)).tolist() == [0, 0]
    with pytest.raises(NonFiniteError, match="aren't finite"):
        normalize(np.array([[math.nan, 1]], np.float32))


@pytest.mark.parametrize("rows_at_once", [1, 2, 3, 100])
def test_each_text_gets_its_own_sentences_wherever_windows_end(rows_at_once):
    texts = ["", TEXT, "* * *", "One storm.", TEXT[::-1], "", TEXT]
    counts = SummaryCounts()
    found = list(build(rows_at_once, length=2).stream(texts, counts=counts))
    alone = [build(100, length=2)(text) for text in texts]
    assert found == alone
    assert (counts.texts, counts.empty, counts.whole, counts.limited) == (7, 3, 2, 0)
    assert counts.truncated_sentences == 1
    list(build(rows_at_once).stream([TEXT], counts=counts))
    assert (counts.texts, counts.truncated_sentences) == (8, 2)


def test_odd_texts_have_one_outcome_each():
    summarize = build()
    assert summarize("").sentences == ()
    assert summarize("").text == ""
    assert summarize("One storm.").text == "One storm."
    assert summarize("One storm.").is_whole
    assert summarize("a storm and no end").text == "a storm and no end"
    assert summarize("A storm \ud800.").sentences[0].stop == 10
    assert len(summarize(" ".join(f"storm {number}" for number in range(5000))).sentences) == 3
    assert summarize("Nothing. Nobody. Never. Nowhere.").text == "Nothing. Nobody. Never."


def test_length_is_of_sentences_or_shares_or_words():
    assert len(build()(TEXT).sentences) == 3
    assert len(build(length="40%")(TEXT).sentences) == 2
    assert len(build(length="1%")(TEXT).sentences) == 1
    assert len(build(length="100 %")(TEXT).sentences) == 5
    assert len(build(length="10 words", diversity=0)(TEXT).text.split()) == 10
    assert build(length="1 word")(TEXT).text == "A cat sat."
    assert build(length="5 words")("今天天气很好。我们去公园。").text == "我们去公园。"
    assert len(build(length=99)(TEXT).sentences) == 5


@pytest.mark.parametrize("length", ["", "0", "1001", "0%", "101%", "0 words", "3 pages", "-1"])
def test_what_is_no_length_is_refused(length):
    with pytest.raises(ValidationError, match="is no length; give a number of sentences up to"):
        build(length=length)


def test_no_summary_is_longer_than_the_limit(monkeypatch):
    monkeypatch.setattr("bertkit.decoders.generation.extractive.MAX_SENTENCES", 2)
    counts = SummaryCounts()
    (summary,) = build(length="90%").stream([TEXT], counts=counts)
    assert (len(summary.sentences), summary.is_limited, counts.limited) == (2, True, 1)
    assert build(length="99 words")(TEXT).is_limited
    assert not build(length="40%")(TEXT).is_limited
    assert not build(length=2)(TEXT).is_limited
