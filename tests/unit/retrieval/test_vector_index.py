"""What is found is what float64 over all rows would find, in that order."""

import numpy as np
import pytest

from bertkit.base.errors import InputError, SettingsError
from bertkit.inference.embeddings.settings import SIMILARITIES
from bertkit.inference.embeddings.similarity import compare
from bertkit.retrieval import approximate_search, exact_search
from bertkit.retrieval.vector_index import VectorIndex


def draw(num_rows, num_features=16, seed=0):
    random = np.random.default_rng(seed)
    return random.standard_normal((num_rows, num_features)).astype(np.float32)


def expect(similarity, vectors, query, top_k):
    """The best rows by all scores in float64; of equal ones the lower row."""
    scores = compare(similarity, vectors, query)
    rows = np.lexsort((np.arange(len(scores)), -scores))[:top_k]
    return scores[rows].astype(np.float32), rows


def check(index, vectors, queries, top_k):
    scores, rows = index.search(queries, top_k)
    for number, query in enumerate(queries):
        best = expect(index.similarity, vectors, query, top_k)
        np.testing.assert_array_equal(rows[number], best[1])
        np.testing.assert_array_equal(scores[number], best[0])


@pytest.fixture
def small_blocks(monkeypatch):
    """Many blocks of few rows."""
    monkeypatch.setattr(exact_search, "NUM_ROWS_OF_THE_FIRST_BLOCK", 32)
    monkeypatch.setattr(exact_search, "NUM_ROWS_OF_A_BLOCK", 100)
    monkeypatch.setattr(approximate_search, "NUM_ROWS_AT_ONCE", 300)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("num_rows", [1, 7, 32, 33, 1000])
def test_the_best_rows_are_found(small_blocks, similarity, num_rows):
    vectors, queries = draw(num_rows), draw(70, seed=1)
    check(VectorIndex(vectors, similarity), vectors, queries, 5)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_of_equal_rows_the_lower_comes_first(small_blocks, similarity):
    vectors = np.tile(draw(40), (20, 1))  # each row twenty times
    vectors[5] = 0
    check(VectorIndex(vectors, similarity), vectors, vectors[:6], 50)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_rows_that_float32_cannot_tell_apart_are_in_order(small_blocks, similarity):
    vectors = np.repeat(draw(1, 64), 600, axis=0)
    order = np.random.default_rng(3).permutation(600)
    vectors[:, 0] += np.linspace(0, 3e-5, 600, dtype=np.float32)[order]
    check(VectorIndex(vectors, similarity), vectors, draw(3, 64, seed=1), 20)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_vectors_of_all_lengths_are_compared(small_blocks, similarity):
    lengths = 10.0 ** np.random.default_rng(2).uniform(-17, 17, (500, 1))
    vectors = (draw(500) * lengths).astype(np.float32)
    check(VectorIndex(vectors, similarity), vectors, vectors[:20], 10)


def test_a_query_gets_the_same_alone_and_among_others():
    vectors, queries = draw(5000), draw(130, seed=1)
    index = VectorIndex(vectors)
    scores, rows = index.search(queries, 10)
    for number in (0, 63, 64, 129):
        alone = index.search(queries[number], 10)
        assert alone[1].shape == (10,)
        np.testing.assert_array_equal(alone[0], scores[number])
        np.testing.assert_array_equal(alone[1], rows[number])


def test_more_than_there_is_gives_all():
    scores, rows = VectorIndex(draw(3)).search(draw(2, seed=1), 10)
    assert scores.shape == rows.shape == (2, 3)
    assert sorted(rows[0].tolist()) == [0, 1, 2]
    assert scores.dtype == np.float32
    assert rows.dtype == np.int64


def test_nothing_is_found_in_nothing():
    index = VectorIndex(np.empty((0, 4)))
    assert (len(index), index.dimension) == (0, 4)
    assert index.search([1, 0, 0, 0])[1].shape == (0,)
    assert index.search(np.ones((3, 4)))[1].shape == (3, 0)
    assert VectorIndex(draw(3)).search(np.empty((0, 16)))[1].shape == (0, 3)
    with pytest.raises(InputError, match="there are no vectors"):
        index.approximate()


def test_a_mapped_file_is_searched_where_it_lies(tmp_path):
    np.save(tmp_path / "vectors.npy", draw(100))
    vectors = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    index = VectorIndex(vectors)
    assert np.shares_memory(index.vectors, vectors)
    assert index.search(vectors[7], 1)[1].tolist() == [7]


def test_other_types_are_taken():
    index = VectorIndex([[1, 0], [0, 1]], "dot")
    assert index.search(np.array([0.0, 2.0]), 1)[0].tolist() == [2.0]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([1.0, 2.0], r"must be \[rows, features\], and have the shape \(2,\)"),
        (np.empty((3, 0)), r"have the shape \(3, 0\)"),
        ([["a", "b"]], "the vectors aren't an array of numbers: could not"),
        ([[1.0], [1.0, 2.0]], "aren't an array of numbers"),
        ([[1.0, 0.0], [0.0, np.nan]], "row 1 of the vectors isn't"),
        ([[1e300, 0.0]], "row 0 of the vectors isn't"),
    ],
)
def test_vectors_that_are_none_are_refused(vectors, message):
    with pytest.raises(InputError, match=message):
        VectorIndex(vectors)


@pytest.mark.parametrize(
    ("query", "top_k", "message"),
    [
        ([1.0, 2.0, 3.0], 1, "a query has 3 features and the vectors 2"),
        ([1.0, np.inf], 1, "row 0 of the queries isn't"),
        ([1.0, 2.0], 0, "top_k must be at least 1, and is 0"),
    ],
)
def test_queries_that_are_none_are_refused(query, top_k, message):
    with pytest.raises(InputError, match=message):
        VectorIndex([[1.0, 0.0], [0.0, 1.0]]).search(query, top_k)


def test_a_measure_must_be_known():
    with pytest.raises(SettingsError, match="must be one of cosine, dot, euclidean, manhattan"):
        VectorIndex([[1.0]], "angle")
