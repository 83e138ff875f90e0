"""Sentences are taken one after the other, each the best beside those before it."""

import numpy as np
from tests.closeness import close

from bertkit.decoders.generation.sentence_selection import (
    CosineRedundancy,
    SummaryLimits,
    select_sentences,
)

DIRECTIONS = np.array([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]], dtype=np.float32)
RELEVANCE = np.array([0.9, 0.8, 0.5, 0.2])


def choose(weight: float, room: SummaryLimits, words=(5, 5, 5, 5)):
    redundancy = CosineRedundancy(DIRECTIONS, weight)
    return select_sentences((1.0 - weight) * RELEVANCE, redundancy, words, room)


def test_without_diversity_the_most_relevant_are_taken():
    assert [one.index for one in choose(0.0, SummaryLimits(3))] == [0, 1, 2]


def test_with_diversity_what_repeats_comes_later():
    taken = choose(0.5, SummaryLimits(4))
    assert [one.index for one in taken] == [0, 3, 1, 2]
    assert [one.similar_to for one in taken] == [None, 0, 0, 1]
    assert [one.similarity for one in taken] == close([0.0, 0.0, 0.8, 0.96], "float32")
    assert [one.score for one in taken] == close([0.45, 0.1, 0.0, 0.25 - 0.48], "float32")


def test_each_is_the_best_beside_those_before_it():
    """Against the formula, for many weights and vectors."""
    generator = np.random.default_rng(0)
    for weight in (0.2, 0.5, 0.8):
        vectors = generator.normal(size=(9, 4)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        relevance = generator.random(9)
        taken = select_sentences(
            (1 - weight) * relevance, CosineRedundancy(vectors, weight), [1] * 9, SummaryLimits(6)
        )
        for place, one in enumerate(taken):
            before = [other.index for other in taken[:place]]
            rest = [index for index in range(9) if index not in before]

            def worth(index, before=before, relevance=relevance, vectors=vectors, weight=weight):
                alike = max((float(vectors[index] @ vectors[other]) for other in before), default=0)
                return (1 - weight) * relevance[index] - weight * alike

            assert one.index == max(rest, key=worth)
            assert one.score == close(worth(one.index), "float32")


def test_words_bound_a_summary():
    assert [one.index for one in choose(0.0, SummaryLimits(9, num_words=10))] == [0, 1]
    assert [one.index for one in choose(0.0, SummaryLimits(9, 10), words=(8, 9, 3, 2))] == [0, 3]
    assert [one.index for one in choose(0.0, SummaryLimits(9, 1), words=(8, 9, 3, 2))] == [3]


def test_nothing_comes_of_nothing_and_no_more_than_there_is():
    empty = CosineRedundancy(np.empty((0, 2), np.float32), 0.5)
    assert select_sentences(np.empty(0), empty, [], SummaryLimits(3, 10)) == []
    assert len(choose(0.5, SummaryLimits(9))) == 4


def test_of_equal_ones_the_first_is_taken():
    same = CosineRedundancy(np.ones((3, 1), np.float32), 0.3)
    assert [one.index for one in select_sentences(np.ones(3), same, [1] * 3, SummaryLimits(2))] == [
        0,
        1,
    ]
