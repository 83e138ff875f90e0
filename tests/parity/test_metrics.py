"""Metrics are those of the official scorers, on random cases and on the edges.

scikit-learn, scipy and seqeval are asked themselves. SQuAD's scripts come in no package: their
rules are stated here once more, as plainly as they can be.

With BERTKIT_FULL=1 there are 10,000 cases of each, which takes minutes: an average costs
scikit-learn 5 ms.
"""

import functools
import os
import random
import re
import string
from itertools import pairwise

import numpy as np
import pytest
import scipy.stats
import sklearn
from seqeval.metrics import sequence_labeling as seqeval
from seqeval.scheme import BILOU, IOBES, Entities
from sklearn import metrics as sklearn_metrics
from tests.closeness import assert_close, close

from bertkit.tasks.metrics import classification, correlation, entities
from bertkit.tasks.metrics.texts import AnswerScores, score_answers, total_squad

IS_FULL = os.environ.get("BERTKIT_FULL") == "1"
NUM_CASES = 10_000 if IS_FULL else 2_000
NUM_SLOW_CASES = 10_000 if IS_FULL else 40


def draw_labels(generator: np.random.Generator, case: int) -> tuple[np.ndarray, np.ndarray, int]:
    """True and predicted labels: some cases know one label only, some are all right or wrong."""
    num_labels = int(generator.integers(2, 5))
    num_examples = int(generator.integers(1, 12))
    truth, guess = generator.integers(num_labels, size=(2, num_examples))
    if case % 7 == 0:
        truth[:] = truth[0]
    if case % 11 == 0:
        guess[:] = guess[0]
    if case % 13 == 0:
        guess = truth.copy()
    if case % 17 == 0:
        guess = (truth + 1) % num_labels
    return truth, guess, num_labels


def test_each_label_scores_as_in_scikit_learn():
    generator = np.random.default_rng(0)
    for block in range(0, NUM_CASES, 100):
        truths, guesses, ours = [], [], []
        for number in range(100):
            truth, guess, num_labels = draw_labels(generator, block + number)
            counts = classification.count_labels(truth, guess, num_labels)
            scores = [counts.precision, counts.recall, counts.f1, counts.actual]
            ours.append(np.pad(scores, ((0, 0), (0, 4 - num_labels))))
            truths.append(truth + 4 * number)  # labels of its own for each case
            guesses.append(guess + 4 * number)
        theirs = sklearn_metrics.precision_recall_fscore_support(
            np.concatenate(truths), np.concatenate(guesses), labels=range(400), zero_division=0
        )
        assert_close(np.concatenate(ours, axis=1), theirs)


@pytest.mark.filterwarnings("ignore:A single label was found")
@sklearn.config_context(skip_parameter_validation=True, assume_finite=True)
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_averages_and_matthews_are_those_of_scikit_learn():
    generator = np.random.default_rng(1)
    for case in range(NUM_SLOW_CASES):
        truth, guess, num_labels = draw_labels(generator, case)
        counts = classification.count_labels(truth, guess, num_labels)
        ours = [
            classification.accuracy(counts),
            classification.macro_f1(counts),
            counts.pool().f1,
            classification.matthews(counts),
            classification.balanced_accuracy(counts),
        ]
        theirs = [
            sklearn_metrics.accuracy_score(truth, guess),
            sklearn_metrics.f1_score(truth, guess, average="macro", zero_division=0),
            sklearn_metrics.f1_score(truth, guess, average="micro", zero_division=0),
            sklearn_metrics.matthews_corrcoef(truth, guess),
            sklearn_metrics.balanced_accuracy_score(truth, guess),
        ]
        if num_labels == 2:
            ours.append(classification.binary_f1(counts))
            theirs.append(sklearn_metrics.f1_score(truth, guess, zero_division=0))
        assert_close(ours, theirs)


@sklearn.config_context(skip_parameter_validation=True, assume_finite=True)
def test_sets_of_labels_score_as_in_scikit_learn():
    generator = np.random.default_rng(2)
    for _ in range(NUM_SLOW_CASES):
        shape = generator.integers(1, 8), generator.integers(2, 5)
        truth, guess = generator.random((2, *shape)) < generator.random((2, 1, 1))
        counts = classification.count_label_sets(truth, guess).add_up()
        ours = [counts.pool().f1, counts.f1.mean(axis=-1)]
        theirs = [
            sklearn_metrics.f1_score(truth, guess, average="micro", zero_division=0),
            sklearn_metrics.f1_score(truth, guess, average="macro", zero_division=0),
        ]
        assert_close(ours, theirs)


@pytest.mark.filterwarnings("ignore::scipy.stats.ConstantInputWarning")
def test_correlations_are_those_of_scipy():
    generator = np.random.default_rng(3)
    for block in range(NUM_CASES // 50):
        shape = (50, int(generator.integers(3, 15)))
        truth = generator.normal(size=shape).round(block % 3)  # of few decimals many are equal
        guess = truth * generator.normal(size=(50, 1)) + generator.normal(size=shape).round(1)
        truth[0], guess[1], guess[2] = 0.1, 1 / 3, truth[2]  # constant, and the same
        ours = [correlation.pearson(*pair) for pair in zip(truth, guess, strict=True)]
        theirs = scipy.stats.pearsonr(truth, guess, axis=1).statistic
        assert_same_where_defined(ours, theirs)
        ours = [correlation.spearman(*pair) for pair in zip(truth, guess, strict=True)]
        ranks = (scipy.stats.rankdata(values, axis=1) for values in (truth, guess))
        theirs = scipy.stats.pearsonr(*ranks, axis=1).statistic
        assert_same_where_defined(ours, theirs)
        theirs = scipy.stats.spearmanr(truth[block % 50], guess[block % 50]).statistic
        assert_same_where_defined(ours[block % 50], theirs)


def assert_same_where_defined(ours, theirs):
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
    assert_close(np.nan_to_num(ours), np.nan_to_num(theirs))


def draw_tags(generator: random.Random, num_words: int, types: list[str]) -> list[str]:
    """Tags in no order that any scheme allows."""
    letters = generator.choice(["OOBIES", "OBI"])
    tags = []
    for _ in range(num_words):
        letter, type_ = generator.choice(letters), generator.choice(types)
        tags.append(letter if letter == "O" or not type_ else f"{letter}-{type_}")
    return tags


def test_entities_are_those_of_seqeval():
    generator = random.Random(4)
    for _ in range(NUM_CASES):
        tags = draw_tags(generator, generator.randrange(9), ["PER", "PER", "LOC", "PER-X", ""])
        found = entities.find_entities(tags)
        ours = [(type_ or "_", start, stop - 1) for type_, start, stop in found]
        assert ours == seqeval.get_entities(tags), tags


@pytest.mark.parametrize(("scheme", "theirs"), [("BIOES", IOBES), ("BILOU", BILOU)])
def test_tags_that_follow_a_scheme_are_read_as_in_strict_seqeval(scheme, theirs):
    generator = random.Random(11)
    for _ in range(NUM_CASES // 10):
        stops = [0, *sorted(generator.sample(range(1, 12), 5))]
        chosen = [pair for pair in pairwise(stops) if generator.random() < 0.7]
        drawn = [entities.Entity(generator.choice(["PER", "LOC"]), *pair) for pair in chosen]
        tags = entities.spell_tags(drawn, 12, scheme)
        (found,) = Entities([tags], theirs).entities
        assert entities.find_entities(tags) == [(one.tag, one.start, one.end) for one in found]


def draw_sentences(
    generator: random.Random, types: list[str]
) -> tuple[list[list[str]], list[list[str]]]:
    lengths = [generator.randrange(6) for _ in range(generator.randrange(1, 4))]
    truth = [draw_tags(generator, length, types) for length in lengths]
    return truth, [draw_tags(generator, length, types) for length in lengths]


def test_types_of_entities_score_as_in_seqeval():
    generator = random.Random(5)
    for _ in range(0, NUM_CASES, 100):
        truths, guesses, ours = [], [], []
        for number in range(100):
            types = [f"{number:02}-{name}" for name in ("LOC", "PER", "PER")]  # of its own
            truth, guess = draw_sentences(generator, types)
            counts = entities.count_entities(truth, guess).by_type
            ours.append([counts.precision, counts.recall, counts.f1, counts.actual])
            truths += truth
            guesses += guess
        theirs = seqeval.precision_recall_fscore_support(truths, guesses, zero_division=0)
        assert_close(np.concatenate(ours, axis=1), theirs)


def test_averages_over_entities_are_those_of_seqeval():
    generator = random.Random(10)
    for _ in range(NUM_SLOW_CASES):
        truth, guess = draw_sentences(generator, ["LOC", "PER", "PER"])
        counts = entities.count_entities(truth, guess).by_type
        micro = seqeval.f1_score(truth, guess, average="micro", zero_division=0)
        assert_close(counts.pool().f1, micro)
        if counts.actual.size:  # the mean of no type is NaN there
            macro = seqeval.f1_score(truth, guess, average="macro", zero_division=0)
            assert_close(counts.average(counts.f1), macro)


WORDS = ["the", "The", "a", "an", "cat", "Cat.", "an-other", "theatre", "a.", "'the'", "naïve", "É"]
WORDS += ["東京", "…", "“the”", "½", "U.S.", "-", "!?", "", " ", "\t", "\u00a0", "the\u0301", "ﬁ"]


def draw_texts(generator: random.Random, least: int, most: int) -> list[str]:
    return [
        " ".join(generator.choices(WORDS, k=generator.randrange(4)))
        for _ in range(generator.randint(least, most))
    ]


@functools.cache
def bare_words(text: str) -> list[str]:
    """Lower, then drop punctuation, then make articles blanks, then split."""
    kept = "".join("" if letter in string.punctuation else letter for letter in text.lower())
    return re.sub(r"\b(?:the|an|a)\b", " ", kept).split()


def count_shared(first: list[str], second: list[str]) -> int:
    remaining = list(second)
    for word in first:
        if word in remaining:
            remaining.remove(word)
    return len(second) - len(remaining)


def official_f1(text: str, gold: str, version: str) -> float:
    words, gold_words = bare_words(text), bare_words(gold)
    if version == "2.0" and not (words and gold_words):
        return float(words == gold_words)
    num_same = count_shared(words, gold_words)
    if not num_same:
        return 0.0
    precision, recall = num_same / len(words), num_same / len(gold_words)
    return 2 * precision * recall / (precision + recall)


def test_answers_score_as_in_squad_1():
    generator = random.Random(6)
    answers = draw_texts(generator, NUM_CASES, NUM_CASES)
    golds = [draw_texts(generator, 1, 3) for _ in answers]
    scores = score_answers(answers, golds, "1.1")
    exact = [
        max(float(bare_words(text) == bare_words(gold)) for gold in choices)
        for text, choices in zip(answers, golds, strict=True)
    ]
    f1 = [
        max(official_f1(text, gold, "1.1") for gold in choices)
        for text, choices in zip(answers, golds, strict=True)
    ]
    assert scores.exact.tolist() == exact
    assert scores.f1.tolist() == f1
    expected = {"exact_match": sum(exact) / len(exact), "f1": sum(f1) / len(f1)}
    assert total_squad(scores, [True] * len(exact), "1.1") == close(expected)


def test_answers_score_as_in_squad_2():
    generator = random.Random(7)
    answers = draw_texts(generator, NUM_CASES, NUM_CASES)
    golds = [draw_texts(generator, 0, 2) for _ in answers]
    exact, f1 = [], []
    for text, choices in zip(answers, golds, strict=True):
        choices = [gold for gold in choices if bare_words(gold)] or [""]
        exact.append(float(any(bare_words(text) == bare_words(gold) for gold in choices)))
        f1.append(max(official_f1(text, gold, "2.0") for gold in choices))
    scores = score_answers(answers, golds, "2.0")
    assert scores.exact.tolist() == exact
    assert scores.f1.tolist() == f1


def test_totals_are_those_of_squad_2():
    generator = random.Random(8)
    for _ in range(NUM_CASES):
        questions = range(generator.randrange(1, 7))
        values = [generator.choice([0.0, 0.4, 2 / 3, 1.0]) for _ in questions]
        has = [generator.random() < 0.5 for _ in questions]
        scores = AnswerScores(np.floor(values), np.array(values))
        assert total_squad(scores, has, "2.0") == close(official_totals(values, has))


def official_totals(values: list[float], has: list[bool]) -> dict[str, float]:
    """Of values of which only 1 is exact; the script leaves out the groups that are empty."""
    totals = {}
    for prefix, wanted in (("", [True, False]), ("HasAns_", [True]), ("NoAns_", [False])):
        group = [value for value, known in zip(values, has, strict=True) if known in wanted]
        if group:
            totals[f"{prefix}exact"] = sum(value == 1 for value in group) / len(group)
            totals[f"{prefix}f1"] = sum(group) / len(group)
    return totals
