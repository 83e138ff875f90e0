"""Labels of every kind of row are judged, and errors planted among them."""

import math
from dataclasses import replace

import numpy as np
from tests.closeness import assert_close

from bertkit.recipes.review.judgment import judge, plant
from bertkit.tasks.answer import AnswerSettings
from bertkit.tasks.answer.examples import AnswerExample, GoldAnswer
from bertkit.tasks.answer.scoring import Windows
from bertkit.tasks.answer.task import AnswerQuestions
from bertkit.tasks.batch import IGNORED_LABEL, Encoded, TokenSequence
from bertkit.tasks.choose.examples import ChooseExample
from bertkit.tasks.choose.task import Choose
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.regress.task import Regress, RegressExample
from bertkit.tasks.settings import TaskSettings
from bertkit.tasks.tag import TagSettings
from bertkit.tasks.tag.decoding import Sentence
from bertkit.tasks.tag.examples import TagExample
from bertkit.tasks.tag.task import Tag

ONE = (TokenSequence([0], [0]),)


def test_several_labels_are_judged_one_by_one():
    task = Classify(ClassifySettings(multi_label=True), ("a", "b", "c"))
    given = [[0], [0, 1], [2], []] * 3
    encoded = [Encoded(ONE, np.array(row, np.int64), num_flags=3) for row in given]
    flags = np.array([one.label_rows[0] for one in encoded])
    logits = [row[None] for row in 6 * flags - 3]
    logits[1] = np.array([[3.0, -9.0, -3.0]])  # b isn't likely
    logits[3] = np.array([[-3.0, -3.0, 3.0]])  # c is
    judged = judge(task, [ClassifyExample(("x",))] * 12, encoded, logits)
    assert judged.errors.ranking[:2].tolist() == [1, 3]
    assert judged.errors.is_error.nonzero()[0].tolist() == [1, 3]
    assert [judged.likely[1], judged.likely[3]] == ["a", "c"]
    assert_close(judged.probability[3], (1 + math.exp(-3)) ** -3)
    changed, is_planted = plant(task, encoded, 0.5, seed=0)
    difference = [
        int(np.abs(one.label_rows - other.label_rows).sum())
        for one, other in zip(changed, encoded, strict=True)
    ]
    assert difference == is_planted.astype(int).tolist()
    assert is_planted.sum() == 6


def test_the_likeliest_other_label_is_named_where_each_row_has_one():
    task = Classify(ClassifySettings(multi_label=True), ("a", "b", "c"))
    encoded = [Encoded(ONE, np.array([0]), num_flags=3), Encoded(ONE, np.array([1]), num_flags=3)]
    logits = [np.array([[-4.0, -1.0, -3.0]]), np.array([[2.0, -5.0, -3.0]])]
    judged = judge(task, [ClassifyExample(("x",))] * 2, encoded, logits)
    assert judged.likely == ["b", "a"]
    assert judged.probability[0] < 0.3


def test_a_sentence_is_as_suspicious_as_its_worst_word():
    task = Tag(TagSettings(), ("O", "B-PER"))
    rows, tags = np.array([1, 2, 3]), [0, 1, IGNORED_LABEL, 0]
    sentence = Sentence(("see", "Ada", "run"))
    labels = np.array([IGNORED_LABEL, *tags[:3], IGNORED_LABEL])
    one = Encoded((TokenSequence([0] * 5, [0] * 5),), labels, alignment=(sentence, rows))
    untagged = replace(one, labels=np.full(5, IGNORED_LABEL))
    right = np.array([[9.0, 9], [4, 0], [0, 4], [0, 9], [9, 9]], np.float32)
    wrong = np.array([[9.0, 9], [0, 5], [0, 4], [0, 9], [9, 9]], np.float32)
    encoded = [one, one, untagged, one]
    examples = [TagExample(words=sentence.words, tags=("O", "B-PER", "?"))] * 4
    judged = judge(task, examples, encoded, [right, right, right, wrong])
    assert judged.errors.is_error.tolist() == [False, False, False, True]
    assert judged.errors.ranking.tolist() == [3, 0, 1, 2]
    assert judged.likely[2:] == ["", "see B-PER"]
    changed, is_planted = plant(task, encoded, 1.0, seed=0)
    assert is_planted.tolist() == [True, True, False, True]
    assert [int((a.labels != b.labels).sum()) for a, b in zip(changed, encoded, strict=True)] == [
        1,
        1,
        0,
        1,
    ]


def test_numbers_far_from_what_is_expected_are_errors():
    task = Regress(RegressSettings())
    values = np.linspace(0, 5, 40)
    encoded = [Encoded(ONE, np.array([value], np.float32)) for value in values]
    noise = np.random.default_rng(0).normal(0, 0.1, 40)
    logits = [np.array([[value]]) for value in values + noise]
    logits[7] = np.array([[4.5]])
    judged = judge(task, [RegressExample(("x",))] * 40, encoded, logits)
    assert judged.errors.is_error.nonzero()[0].tolist() == [7]
    assert judged.errors.ranking[0] == 7
    assert judged.likely[7] == "4.5"
    assert np.isnan(judged.probability).all()
    changed, is_planted = plant(task, encoded, 0.25, seed=0)
    differs = [a.labels[0] != b.labels[0] for a, b in zip(changed, encoded, strict=True)]
    assert differs == is_planted.tolist()
    assert sum(differs) == 10


def test_a_choice_is_judged_among_its_own():
    task = Choose(TaskSettings())
    examples = [ChooseExample("x", ("a", "b", "c")[: 3 - number % 2]) for number in range(8)]
    encoded = [Encoded(ONE, np.array([number % 2])) for number in range(8)]
    logits = [np.array([4.0, 0, -9][: 3 - number % 2]) for number in range(8)]
    for number in (1, 3, 5):
        logits[number] = logits[number][::-1]
    judged = judge(task, examples, encoded, logits)
    assert judged.errors.is_error.nonzero()[0].tolist() == [7]
    assert judged.likely[7] == "a"


def test_an_answer_without_overlap_is_an_error():
    task = AnswerQuestions(AnswerSettings())
    context = "a b c d e f"
    offsets = np.array([[2 * number, 2 * number + 1] for number in range(6)], np.int32)
    windows = Windows((range(6),), np.zeros(6, np.int32), offsets, 3)
    sequence = TokenSequence([0] * 10, [0] * 10)
    examples = [AnswerExample("?", context, (GoldAnswer("b c", 2, False),))] * 4
    encoded = [Encoded((sequence,), np.array([[4, 5]]), alignment=windows)] * 4
    logits = np.zeros((4, 10, 2), np.float32)
    for number, place in enumerate((5, 7, 4, 8)):
        logits[number, place] = 9
    judged = judge(task, examples, encoded, list(logits))
    assert judged.errors.is_error.tolist() == [False, True, False, True]
    assert judged.likely[:2] == ["c", "e"]
    changed, is_planted = plant(task, encoded, 0.5, seed=0)
    assert is_planted.sum() == 2
    for one, planted in zip(changed, is_planted, strict=True):
        first, last = one.labels[0].tolist()
        assert last == first + 1
        assert (first >= 6) == planted  # the only places that don't overlap
