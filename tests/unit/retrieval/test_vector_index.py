"""What is found is what float64 over all rows would find, in that order."""

import numpy as np
import pytest

from bertkit.base.errors import InputError, SettingsError
from bertkit.inference.embeddings import exact_search
from bertkit.inference.embeddings.settings import SIMILARITIES
from bertkit.inference.embeddings.similarity import compare
from bertkit.retrieval.vector_index import VectorIndex


def draw(num_rows, num_features=16, seed=0):
    random = np.random.default_rng(seed)
    return random.standard_normal((num_rows, num_features)).astype(np.float32)


@pytest.fixture
def small_blocks(monkeypatch):
    """Many blocks of few rows."""
    monkeypatch.setattr(exact_search, "NUM_ROWS_OF_THE_FIRST_BLOCK", 32)
    monkeypatch.setattr(exact_search, "NUM_ROWS_OF_A_BLOCK", 100)


def repeat_rows():
    vectors = np.tile(draw(40), (20, 1))  # each row twenty times
    vectors[5] = 0
    return vectors


def shift_slightly():
    """Rows that float32 can't tell apart."""
    vectors = np.repeat(draw(1), 600, axis=0)
    order = np.random.default_rng(3).permutation(600)
    vectors[:, 0] += np.linspace(0, 3e-5, 600, dtype=np.float32)[order]
    return vectors


def stretch():
    lengths = 10.0 ** np.random.default_rng(2).uniform(-17, 17, (500, 1))
    return (draw(500) * lengths).astype(np.float32)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize(
    "vectors",
    [*map(draw, (1, 7, 32, 33, 1000)), repeat_rows(), shift_slightly(), stretch()],
    ids=["1", "7", "32", "33", "1000", "equal", "nearly equal", "of all lengths"],
)
def test_the_best_rows_are_found(small_blocks, similarity, vectors):
    queries = np.concatenate([draw(66, seed=1), vectors[:6]])
    index = VectorIndex(vectors, similarity)
    scores, rows = index.search(queries, 50)  # all where there are fewer
    assert (scores.dtype, rows.dtype) == (np.float32, np.int64)
    for number, query in enumerate(queries):
        expected = compare(similarity, vectors, query)
        best = np.lexsort((np.arange(len(expected)), -expected))[:50]
        np.testing.assert_array_equal(rows[number], best)
        np.testing.assert_array_equal(scores[number], expected[best].astype(np.float32))
    alone = index.search(queries[64], 50)
    assert alone[1].tolist() == rows[64].tolist()
    assert alone[0].tolist() == scores[64].tolist()


def test_nothing_is_found_in_nothing():
    index = VectorIndex(np.empty((0, 4)))
    assert (len(index), index.dimension) == (0, 4)
    assert index.search([1, 0, 0, 0])[1].shape == (0,)
    assert index.search(np.ones((3, 4)))[1].shape == (3, 0)
    assert VectorIndex(draw(3)).search(np.empty((0, 16)))[1].shape == (0, 3)


def test_a_mapped_file_is_searched_where_it_lies(tmp_path):
    np.save(tmp_path / "vectors.npy", draw(100))
    vectors = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    index = VectorIndex(vectors)
    assert np.shares_memory(index.vectors, vectors)
    assert index.search(vectors[7], 1)[1].tolist() == [7]


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
        ([1.0, 2.0], 0, "top_k must be at least 1, got 0"),
    ],
)
def test_queries_that_are_none_are_refused(query, top_k, message):
    with pytest.raises(InputError, match=message):
        VectorIndex([[1.0, 0.0], [0.0, 1.0]]).search(query, top_k)


def test_a_measure_must_be_known():
    with pytest.raises(SettingsError, match="must be one of cosine, dot, euclidean, manhattan"):
        VectorIndex([[1.0]], "angle")
