"""Sentences are taken one after the other, each the best beside those before it."""

import numpy as np
from tests.closeness import close

from bertkit.decoders.generation.sentence_selection import SummaryLimits, select_sentences

DIRECTIONS = np.array([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]], dtype=np.float32)
RELEVANCE = np.array([0.9, 0.8, 0.5, 0.2])


def choose(weight: float, room: SummaryLimits, words=(5, 5, 5, 5)):
    return select_sentences(RELEVANCE, DIRECTIONS, weight, words, room)


def test_each_is_the_best_beside_those_before_it():
    """Against the formula, for many weights and vectors."""
    generator = np.random.default_rng(0)
    for weight in (0.2, 0.5, 0.8):
        vectors = generator.normal(size=(9, 4)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        relevance = generator.random(9)
        taken = select_sentences(relevance, vectors, weight, [1] * 9, SummaryLimits(6))
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
