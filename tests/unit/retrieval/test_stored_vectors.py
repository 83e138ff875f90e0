"""Vectors in an index's file: what is found after any changes is what NumPy finds."""

import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.closeness import assert_close

from bertkit.base.errors import DamagedFileError, InputError
from bertkit.inference.embeddings import exact_search
from bertkit.inference.embeddings.settings import SIMILARITIES
from bertkit.inference.embeddings.similarity import compare
from bertkit.retrieval import stored_vectors
from bertkit.retrieval.index_file import IndexFile
from bertkit.retrieval.stored_vectors import StoredVectors

DIMENSION = 5
ROWS_OF_A_BLOCK = 8


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(stored_vectors, "BLOCK_BYTES", 4 * DIMENSION * ROWS_OF_A_BLOCK)
    monkeypatch.setattr(exact_search, "NUM_ROWS_OF_THE_FIRST_BLOCK", 16)


@dataclass
class Model:
    """An index, and what it should hold."""

    file: IndexFile
    vectors: dict[int, np.ndarray] = field(default_factory=dict)
    last_row: int = 0

    def __post_init__(self):
        self.stored = StoredVectors(DIMENSION, "cosine")
        self.random = np.random.default_rng(0)

    def add(self, count):
        rows = self.last_row + np.cumsum(self.random.integers(1, 4, count))
        vectors = self.random.standard_normal((count, DIMENSION)).astype(np.float32)
        with self.file.writing() as connection:
            self.stored.append(connection, rows, vectors)
        self.vectors.update(zip(rows.tolist(), vectors, strict=True))
        self.last_row = int(rows[-1])

    def delete(self, rows):
        with self.file.writing() as connection:
            self.stored.delete(connection, rows)
        for row in rows:
            self.vectors.pop(row, None)

    def check(self, stored, among=None):
        with self.file.reading() as connection:
            stored.refresh(connection, self.file.state())
            rows = np.array(sorted(self.vectors), np.int64)
            if len(rows):
                read = stored.read(connection, rows[::-1].tolist())
                np.testing.assert_array_equal(read[::-1], self.matrix(rows))
        if among is not None:
            rows = rows[np.isin(rows, among)]
        queries = self.random.standard_normal((70, DIMENSION)).astype(np.float32)
        found = stored.search(queries, 6, among)
        assert len(found) == len(queries)
        for query, (best, scores) in zip(queries, found, strict=True):
            expected = compare("cosine", self.matrix(rows), query)
            order = np.lexsort((rows, -expected))[:6]
            np.testing.assert_array_equal(best, rows[order])
            assert_close(scores, expected[order])
            assert_close(stored.score(query, best.tolist()), scores)

    def matrix(self, rows):
        return np.array([self.vectors[row] for row in rows.tolist()]).reshape(-1, DIMENSION)


@pytest.fixture
def model():
    return Model(IndexFile.open(None))


def test_what_is_found_follows_all_changes(model):
    reader = StoredVectors(DIMENSION, "cosine")
    model.check(reader)
    for count in (3, 2, 30, 1, 1, 60):
        model.add(count)
        model.check(reader)
        rows = np.array(sorted(model.vectors))
        model.check(reader, among=rows[::-1][: len(rows) // 2])
        model.check(reader, among=np.append(rows[::9], 7777))
        model.delete(model.random.choice(rows, len(rows) // 5).tolist())
        model.check(reader)
    model.delete([0, 10**9, *sorted(model.vectors)[:40]])
    model.add(9)
    model.check(reader)
    model.check(StoredVectors(DIMENSION, "cosine"))
    model.delete(list(model.vectors))
    model.check(reader)
    model.add(4)
    model.check(reader)


def test_blocks_are_rewritten_when_over_a_quarter_of_their_rows_are_deleted(model):
    model.add(2 * ROWS_OF_A_BLOCK)
    first, *others = list(model.vectors)[:ROWS_OF_A_BLOCK]

    def count():
        with model.file.reading() as connection:
            sizes = connection.execute("SELECT length(rows) / 8 FROM vectors ORDER BY block")
            return [size for (size,) in sizes], len(
                connection.execute("SELECT row FROM deleted").fetchall()
            )

    model.delete(others[:2])
    assert count() == ([8, 8], 2)
    model.delete([first])
    assert count() == ([5, 8], 0)
    model.delete(others[2:])
    assert count() == ([8], 0)


def test_few_changes_read_few_blocks(model):
    model.add(10 * ROWS_OF_A_BLOCK + 1)
    model.check(model.stored)
    read = []
    original = model.stored._read_block
    model.stored._read_block = lambda connection, number: (
        read.append(number) or original(connection, number)
    )
    with model.file.writing() as connection:
        model.stored.append(connection, np.array([9999]), np.ones((1, DIMENSION), np.float32))
    read.clear()
    with model.file.reading() as connection:
        matrix = model.stored._loaded.matrix
        model.stored.refresh(connection, model.file.state())
    assert read == [11]
    assert model.stored._loaded.matrix is matrix


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_each_similarity_is_searched_among_rows(similarity):
    random = np.random.default_rng(1)
    vectors = random.standard_normal((100, DIMENSION)).astype(np.float32)
    search = exact_search.ExactSearch(vectors, similarity)
    query = random.standard_normal((1, DIMENSION)).astype(np.float32)
    for among in (np.arange(3, 60), np.arange(0, 100, 3), np.array([1, 98]), np.array([42])):
        expected = compare(similarity, vectors[among], query)
        order = np.lexsort((among, -expected))[:4]
        scores, rows = search.search(query, 4, among)
        np.testing.assert_array_equal(rows[0], among[order])
        assert_close(scores[0], expected[order])


@pytest.mark.parametrize("column", ["crc", "rows", "content"])
def test_a_damaged_block_is_refused(model, column):
    model.add(20)
    with model.file.writing() as connection:
        value = connection.execute(f"SELECT {column} FROM vectors WHERE block = 2").fetchone()[0]
        changed = value ^ 1 if isinstance(value, int) else bytes([value[0] ^ 1]) + value[1:]
        connection.execute(f"UPDATE vectors SET {column} = ? WHERE block = 2", (changed,))
    row = sorted(model.vectors)[9]
    with pytest.raises(DamagedFileError, match="the index in memory can't be read: it is damaged"):
        read(model, row)
    with pytest.raises(DamagedFileError, match="the index in memory can't be read: it is damaged"):
        refresh(model)


def read(model, row):
    with model.file.reading() as connection:
        return model.stored.read(connection, [row])


def refresh(model):
    with model.file.reading() as connection:
        model.stored.refresh(connection, model.file.state())


def test_missing_and_infinite_vectors_are_refused(model):
    with pytest.raises(DamagedFileError, match="a passage has no vector"):
        read(model, 1)
    model.add(3)
    row = model.last_row + 1
    with pytest.raises(DamagedFileError, match="a passage has no vector"):
        read(model, row)
    with model.file.writing() as connection:
        infinite = np.full((1, DIMENSION), np.inf, np.float32)
        model.stored.append(connection, np.array([row]), infinite)
    with pytest.raises(InputError, match="row 3 of the vec"):
        refresh(model)


def test_writing_needs_no_torch():
    program = (
        "import numpy, sys; from bertkit.retrieval.index_file import IndexFile\n"
        "from bertkit.retrieval.stored_vectors import StoredVectors\n"
        "with (file := IndexFile.open(None)).writing() as connection:\n"
        "    stored = StoredVectors(2, 'cosine')\n"
        "    stored.append(connection, numpy.array([1]), numpy.ones((1, 2), 'f4'))\n"
        "    stored.read(connection, [1]); stored.delete(connection, [1])\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
