import numpy as np
import pytest
from tests.closeness import close

from bertkit.tasks.objectives.masked_pairs import (
    A_START,
    A_STOP,
    B_START,
    B_STOP,
    IS_RANDOM,
    PairPlanner,
    truncate_pairs,
)

ROOM = 128 - 3


def make_corpus(num_documents: int, sentences: tuple[int, int], seed: int = 0):
    rng = np.random.default_rng(seed)
    per_document = rng.integers(*sentences, num_documents, endpoint=True)
    lengths = rng.integers(3, 40, per_document.sum())
    return np.concatenate([[0], lengths.cumsum()]), np.concatenate([[0], per_document.cumsum()])


def plan(corpus, seed: int = 0, short_rate: float = 0.1):
    return PairPlanner(
        sentence_offsets=corpus[0],
        document_offsets=corpus[1],
        room=ROOM,
        short_rate=short_rate,
        generator=np.random.default_rng(seed),
    ).plan()


def documents_of(corpus, tokens):
    starts = corpus[0][corpus[1]]
    return np.searchsorted(starts, tokens, side="right") - 1


@pytest.mark.parametrize("sentences", [(1, 4), (5, 60), (300, 500)])
def test_half_of_the_pairs_are_random_and_those_are_of_another_document(sentences):
    corpus = make_corpus(4000 if sentences[0] < 100 else 60, sentences)
    examples = plan(corpus)
    assert examples[:, IS_RANDOM].mean() == close(0.5, within=4 * 0.5 / np.sqrt(len(examples)))
    first = documents_of(corpus, examples[:, A_START])
    second = documents_of(corpus, examples[:, B_START])
    assert np.array_equal(first != second, examples[:, IS_RANDOM] == 1)
    # Segments stay within their documents, and are never empty.
    for document, start, stop in ((first, A_START, A_STOP), (second, B_START, B_STOP)):
        assert (examples[:, stop] > examples[:, start]).all()
        assert np.array_equal(document, documents_of(corpus, examples[:, stop] - 1))


def test_a_true_pair_follows_its_first_segment():
    corpus = make_corpus(300, (10, 40))
    raw = plan(corpus)
    true = raw[raw[:, IS_RANDOM] == 0]
    lengths = true[:, B_STOP] - true[:, A_START]
    untouched = true[lengths < ROOM]
    assert len(untouched) > 50
    assert np.array_equal(untouched[:, A_STOP], untouched[:, B_START])
    assert (true[:, A_STOP] <= true[:, B_START]).all()


def test_examples_are_filled_up_to_the_length():
    corpus = make_corpus(100, (200, 300))
    examples = plan(corpus)
    lengths = (examples[:, A_STOP] - examples[:, A_START]) + (
        examples[:, B_STOP] - examples[:, B_START]
    )
    assert lengths.max() == ROOM
    assert (lengths == ROOM).mean() > 0.8
    seen = np.zeros(corpus[0][-1], dtype=bool)  # nearly all of the text
    for row in examples:
        seen[row[A_START] : row[A_STOP]] = True
        seen[row[B_START] : row[B_STOP]] = True
    assert seen.mean() > 0.9
    always_full = plan(corpus, short_rate=0.0)
    full = (always_full[:, [A_STOP, B_STOP]] - always_full[:, [A_START, B_START]]).sum(axis=1)
    assert (full == ROOM).mean() > 0.95


def test_the_share_of_short_examples_is_the_short_rate():
    corpus = make_corpus(400, (200, 300))
    examples = plan(corpus, short_rate=0.3)
    lengths = (examples[:, [A_STOP, B_STOP]] - examples[:, [A_START, B_START]]).sum(axis=1)
    # A short target reaches past 3/4 of the room once in four times, and rounds up to sentences.
    assert 0.12 < (lengths < 0.75 * ROOM).mean() < 0.3


def test_one_document_gives_true_pairs_only():
    examples = plan(make_corpus(1, (50, 50)))
    assert len(examples) > 3
    assert not examples[:, IS_RANDOM].any()
    assert plan((np.array([0, 9]), np.array([0, 1]))).shape == (0, 5)  # of one sentence


def test_sentences_longer_than_an_example_are_cut():
    offsets = np.array([0, 1000, 3000, 3005, 5000])
    examples = plan((offsets, np.array([0, 2, 4])))
    lengths = examples[:, [A_STOP, B_STOP]] - examples[:, [A_START, B_START]]
    assert (lengths.sum(axis=1) <= ROOM).all()
    assert (lengths > 0).all()


def test_truncation_takes_from_the_longer_segment_and_at_both_ends():
    rows = np.tile(np.array([[0, 100, 200, 210, 0]]), (2000, 1))
    cut = truncate_pairs(rows, 60, np.random.default_rng(0))
    assert (cut[:, B_STOP] - cut[:, B_START] == 10).all()
    assert (cut[:, A_STOP] - cut[:, A_START] == 50).all()
    assert cut[:, A_START].mean() == close(25, within=0.5)
    both = truncate_pairs(np.array([[0, 90, 100, 180, 1]]), 61, np.random.default_rng(0))[0]
    assert sorted((both[A_STOP] - both[A_START], both[B_STOP] - both[B_START])) == [30, 31]
    assert np.array_equal(rows[0], [0, 100, 200, 210, 0])


@pytest.mark.parametrize("num_others", [0, 3])
def test_without_random_pairs_b_follows_a_and_one_sentence_stays_alone(num_others):
    sentences = np.arange(0, 5 * (9 + num_others) + 1, 5)
    documents = np.array([0, 8, 9, *range(10, 10 + num_others)])
    rows = PairPlanner(
        sentence_offsets=sentences,
        document_offsets=documents,
        room=20,
        short_rate=0.3,
        generator=np.random.default_rng(0),
        has_random_pairs=False,
    ).plan()
    assert not rows[:, IS_RANDOM].any()
    paired = rows[rows[:, B_START] < rows[:, B_STOP]]
    assert len(paired) > 1
    assert (paired[:, A_STOP] == paired[:, B_START]).all()
    alone = rows[rows[:, B_START] == rows[:, B_STOP]]
    assert alone[:, A_START].tolist() == [40 + 5 * number for number in range(num_others + 1)]
