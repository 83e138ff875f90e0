"""What guessers that have only counted say, against counting by hand."""

from collections import Counter

import numpy as np
import pytest

from bertkit_demo.baselines import GuessTable, NeighborGuesser, neighbors

CLS, SEP, MASK = 0, 1, 2
A, B, C, D, E = range(3, 8)
VOCAB_SIZE = 8


def count(*documents: list[list[int]]) -> NeighborGuesser:
    sentences = [sentence for document in documents for sentence in document]
    sizes = [sum(map(len, document)) for document in documents]
    return NeighborGuesser.count(
        np.array([token for sentence in sentences for token in sentence], dtype=np.uint16),
        np.cumsum([0, *map(len, sentences)]),
        np.cumsum([0, *sizes]),
        border_id=SEP,
        vocab_size=VOCAB_SIZE,
    )


def guess(guesser: NeighborGuesser, left: int, right: int, otherwise: int = E) -> int:
    return int(guesser.guess(np.array([left]), np.array([right]), otherwise)[0])


def test_the_most_frequent_middle_wins():
    guesser = count([[A, B, C, A, D, C, A, D, C]])
    assert guess(guesser, A, C) == D


def test_of_equally_frequent_ones_the_lowest_id_wins():
    assert guess(count([[A, D, C, A, B, C]]), A, C) == B


def test_unknown_pairs_fall_back_to_left_then_right_then_the_most_frequent():
    guesser = count([[A, B, C], [D, C, C]])
    assert guess(guesser, A, MASK) == B
    assert guess(guesser, MASK, B) == A
    assert guess(guesser, MASK, MASK) == E
    assert guess(guesser, D, B) == C  # the left one goes before the right one, which says A


def test_sentences_of_a_document_touch_and_documents_do_not():
    together = count([[A, B], [C, D]])
    apart = count([[A, B]], [[C, D]])
    assert guess(together, B, D) == C
    assert apart.both.look_up(np.array([B * VOCAB_SIZE + D])).tolist() == [-1]


def test_borders_know_how_sentences_begin_and_end():
    guesser = count([[A, B, C], [A, B, D], [E, B, D]])
    assert guess(guesser, SEP, B) == A
    assert guess(guesser, B, SEP) == D


def test_a_sentence_of_one_token_stands_between_two_borders():
    assert guess(count([[A], [A], [B]]), SEP, SEP) == A


def test_nothing_counted_guesses_the_most_frequent():
    empty = GuessTable.count(np.array([], dtype=np.int64), np.array([], dtype=np.int64), VOCAB_SIZE)
    assert empty.look_up(np.array([1, 2])).tolist() == [-1, -1]


def test_agrees_with_counting_by_hand_on_random_text():
    generator = np.random.default_rng(0)
    tokens = generator.integers(3, VOCAB_SIZE, size=400)
    guesser = NeighborGuesser.count(
        tokens.astype(np.uint16),
        np.array([0, 400]),
        np.array([0, 400]),
        border_id=SEP,
        vocab_size=VOCAB_SIZE,
    )
    counts: dict[tuple[int, int], Counter[int]] = {}
    for left, middle, right in zip(tokens, tokens[1:], tokens[2:], strict=False):
        counts.setdefault((left, right), Counter())[int(middle)] += 1
    for (left, right), middles in counts.items():
        most = max(middles.values())
        assert guess(guesser, left, right) == min(
            token for token, number in middles.items() if number == most
        )


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.int64])
def test_neighbors_are_those_of_the_corrupted_input(dtype):
    input_ids = np.array([CLS, A, MASK, SEP, B, SEP, CLS, MASK, C, SEP], dtype=dtype)
    left, right = neighbors(input_ids, np.array([1, 2, 4, 7]), CLS, SEP)
    assert left.tolist() == [SEP, A, SEP, SEP]
    assert right.tolist() == [MASK, SEP, SEP, C]


def test_large_vocabularies_do_not_overflow():
    vocab_size = 1 << 20
    top = vocab_size - 1
    guesser = NeighborGuesser.count(
        np.array([top, top - 1, top], dtype=np.uint32),
        np.array([0, 3]),
        np.array([0, 3]),
        border_id=SEP,
        vocab_size=vocab_size,
    )
    assert guesser.guess(np.array([top]), np.array([top]), 5).tolist() == [top - 1]
