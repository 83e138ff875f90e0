"""What is found approximately has exact scores, and little is missed."""

from dataclasses import replace

import numpy as np
import pytest

from bertkit.base.errors import DamagedFileError
from bertkit.retrieval import approximate_search
from bertkit.retrieval.approximate_search import ApproximateSearch
from bertkit.retrieval.vector_index import VectorIndex

pytest.importorskip("faiss")


@pytest.fixture(scope="module")
def vectors():
    """Rows around centers."""
    random = np.random.default_rng(0)
    centers = random.standard_normal((40, 16))
    rows = centers[random.integers(40, size=2000)] + 0.4 * random.standard_normal((2000, 16))
    return rows.astype(np.float32)


@pytest.fixture(scope="module")
def index(vectors):
    return VectorIndex(vectors).approximate()


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_most_is_found_and_its_scores_are_exact(vectors, similarity):
    exact = VectorIndex(vectors, similarity)
    approximate = exact.approximate()
    assert len(approximate.cells.centers) == 50
    assert approximate.cells.num_probes < 50
    assert approximate.cells.recall >= 0.99
    queries = vectors[::100] + 0.01
    scores, rows = exact.search(queries, 10)
    near_scores, near_rows = approximate.search(queries, 10)
    found = [len(set(a) & set(b)) for a, b in zip(rows, near_rows, strict=True)]
    assert np.mean(found) >= 9.5
    same = rows == near_rows
    assert same.mean() > 0.8
    np.testing.assert_array_equal(scores[same], near_scores[same])
    assert (np.diff(near_scores, axis=1) <= 0).all()


def test_all_probes_find_all(vectors, index, monkeypatch):
    monkeypatch.setattr(approximate_search, "LEAST_RECALL", 1.1)
    index = VectorIndex(vectors).approximate()
    assert index.cells.num_probes == len(index.cells.centers)
    assert index.cells.recall == 1.0


def test_vectors_for_which_bytes_are_too_coarse_are_told(vectors, capsys):
    VectorIndex(vectors).approximate()
    assert "finds only" not in capsys.readouterr().err
    recall = VectorIndex(vectors + 100).approximate().cells.recall
    assert recall < 0.99
    assert f"finds only {100 * recall:.1f} % of the true top ten" in capsys.readouterr().err


def test_where_too_little_is_found_all_are_compared(vectors, index):
    few = VectorIndex(vectors, cells=replace(index.cells, num_probes=1))
    expected = VectorIndex(vectors).search(vectors[3], 1500)
    found = few.search(vectors[3], 1500)
    np.testing.assert_array_equal(found[1], expected[1])


def test_few_vectors_are_one_cell():
    index = VectorIndex(np.eye(3)).approximate()
    assert (len(index.cells.centers), index.cells.recall) == (1, 1.0)
    assert index.search([0, 1, 0], 1)[1].tolist() == [1]


@pytest.mark.parametrize(
    "change",
    [
        lambda cells: {"num_probes": 0},
        lambda cells: {"num_probes": len(cells.centers) + 1},
        lambda cells: {"sizes": cells.sizes + 1},
        lambda cells: {"sizes": np.array([-1, 2001, *cells.sizes[2:] * 0])},
        lambda cells: {"sizes": np.array([2**63 - 1, 2**63 - 1, 2002, *cells.sizes[3:] * 0])},
        lambda cells: {"sizes": cells.sizes[:-1]},
        lambda cells: {"rows": cells.rows + 1},
        lambda cells: {"rows": np.zeros_like(cells.rows)},
        lambda cells: {"rows": cells.rows.astype(np.int32)},
        lambda cells: {"codes": cells.codes[:, 1:]},
        lambda cells: {"ranges": cells.ranges[:1]},
        lambda cells: {"centers": cells.centers.astype(np.float64)},
    ],
)
def test_cells_that_do_not_fit_reach_no_foreign_program(vectors, index, change):
    cells = replace(index.cells, **change(index.cells))
    with pytest.raises(DamagedFileError, match="doesn't fit 2,000 vectors of 16 features"):
        ApproximateSearch(cells, vectors, "cosine")
