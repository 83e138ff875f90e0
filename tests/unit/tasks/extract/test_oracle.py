"""What is learned from: the sentences that are together most like a summary."""

import random

import pytest

from bertkit.metrics.words import split_words
from bertkit.tasks.extract.oracle import Grams, find_best

SENTENCES = (
    "The storm closed the port of the town.",
    "People like the sea.",
    "Two ships are missing since Monday.",
    "The storm closed the port.",
)


def likeness(one: str, other: str) -> float:
    return Grams.of(split_words(one)).likeness(Grams.of(split_words(other)))


def test_what_is_most_like_the_summary_is_taken_once():
    summary = "A storm closed the port; two ships are missing."
    assert find_best(SENTENCES, summary, 3) == [2, 3]
    assert find_best(SENTENCES, summary, 1) == [3]
    assert find_best(SENTENCES, "Zebras!", 3) == []
    assert find_best((), summary, 3) == []


def test_each_step_is_the_best_one():
    choose = random.Random(0)
    for _ in range(20):
        sentences = [" ".join(choose.choices("abcdef", k=4)) for _ in range(6)]
        summary = " ".join(choose.choices("abcdef", k=6))
        assert find_best(sentences, summary, 3) == sorted(take_greedily(sentences, summary, 3))


def take_greedily(sentences: list[str], summary: str, most: int) -> list[int]:
    """The same, by looking at all that may be added at each step."""
    wanted, taken, best = Grams.of(split_words(summary)), [], 0.0
    while len(taken) < most:
        worths = {}
        for index in set(range(len(sentences))) - set(taken):
            grams = [Grams.of(split_words(sentences[each])) for each in (*taken, index)]
            worths[index] = sum(grams[1:], start=grams[0]).likeness(wanted)
        index = max(sorted(worths), key=worths.__getitem__)
        if worths[index] <= best:
            break
        best = worths[index]
        taken.append(index)
    return taken


def test_likeness_is_rouge_1_and_rouge_2():
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rouge1", "rouge2"])
    summary = "Two ships, and the storm that closed the port, are missed."
    for sentence in SENTENCES:
        scores = scorer.score(summary, sentence)
        expected = sum(score.fmeasure for score in scores.values())
        assert likeness(sentence, summary) == pytest.approx(expected)


def test_words_of_any_script_count():
    assert find_best(("Мир велик.", "Дом мал."), "дом", 1) == [1]
    assert find_best(("今天天气很好。", "我们去公园玩。"), "大家去公园", 1) == [1]
