"""Vectors in an index's file: blocks of about a megabyte, and one matrix of them in memory.

A block has the row numbers of passages, ascending, their float32 vectors, and a checksum of both.
Only the last block grows. Deleted rows are marked, and leave their block when they are over a
quarter of it. In memory, only vectors that are new since the last refresh are read.

Damage is raised as an error of SQLite, which the index's file turns into one that names it.
"""

import sqlite3
from collections.abc import Sequence
from mmap import ACCESS_COPY, mmap
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from bertkit.inference.embeddings.settings import Similarity
from bertkit.inference.embeddings.similarity import compare
from bertkit.retrieval.vector_file import Vectors

if TYPE_CHECKING:
    from bertkit.inference.embeddings.exact_search import ExactSearch

Rows = NDArray[np.int64]
BLOCK_BYTES = 1 << 20
MAX_DELETED = 0.25  # of a block in the file, or of the rows in memory
SLACK = 8  # room for one more row in so many, so that a few are added without a copy of all


class StoredVectors:
    """The vectors of an index, whose file other processes may change meanwhile."""

    def __init__(self, dimension: int, similarity: Similarity) -> None:
        self.dimension = dimension
        self._similarity: Similarity = similarity
        self._rows_of_a_block = max(1, BLOCK_BYTES // (4 * dimension))
        nothing = np.empty((0, dimension), np.float32)
        self._loaded = _Loaded(-1, np.empty(0, np.int64), np.empty(0, bool), nothing, nothing[:, 0])

    def append(self, connection: sqlite3.Connection, rows: Rows, vectors: Vectors) -> None:
        """Add vectors `[rows, dimension]`; rows ascend, and are greater than all before."""
        assert vectors.shape == (len(rows), self.dimension)
        (number,) = connection.execute("SELECT ifnull(max(block), 0) FROM vectors").fetchone()
        if number:
            old_rows, old_vectors = self._read_block(connection, number)
            if len(old_rows) < self._rows_of_a_block:
                rows, vectors = np.append(old_rows, rows), np.append(old_vectors, vectors, axis=0)
                number -= 1
        for start in range(0, len(rows), self._rows_of_a_block):
            number += 1
            part = slice(start, start + self._rows_of_a_block)
            _write_block(connection, number, rows[part], vectors[part])

    def delete(self, connection: sqlite3.Connection, rows: Sequence[int]) -> None:
        """Delete the vectors of rows; a row without one is ignored."""
        connection.executemany(
            "INSERT OR IGNORE INTO deleted VALUES (?)", ((int(row),) for row in rows)
        )
        numbers, first_rows, sizes = _list_blocks(connection)
        deleted = _list_deleted(connection)
        places = np.append(np.searchsorted(deleted, first_rows), len(deleted))
        for index in np.flatnonzero(np.diff(places) > MAX_DELETED * sizes).tolist():
            gone, number = deleted[places[index] : places[index + 1]], int(numbers[index])
            stored, vectors = self._read_block(connection, number)
            is_kept = ~np.isin(stored, gone)
            connection.execute("DELETE FROM vectors WHERE block = ?", (number,))
            if is_kept.any():
                _write_block(connection, number, stored[is_kept], vectors[is_kept])
            connection.executemany(
                "DELETE FROM deleted WHERE row = ?", ((row,) for row in gone.tolist())
            )

    def read(self, connection: sqlite3.Connection, rows: Sequence[int]) -> Vectors:
        """Read the vectors of rows, `[rows, dimension]`, from the file."""
        numbers, first_rows, _ = _list_blocks(connection)
        wanted = np.asarray(rows, np.int64)
        vectors = np.empty((len(wanted), self.dimension), np.float32)
        indexes = np.searchsorted(first_rows, wanted, side="right") - 1
        if (indexes < 0).any():
            raise sqlite3.DatabaseError("a passage has no vector")
        for index in np.unique(indexes).tolist():
            stored, content = self._read_block(connection, int(numbers[index]))
            vectors[indexes == index] = content[_find(stored, wanted[indexes == index])]
        return vectors

    def refresh(self, connection: sqlite3.Connection, state: int) -> None:
        """Load what is new since the last refresh, in a transaction that sees the index in a state.

        Nothing is read if that is the state of the last refresh.
        """
        from bertkit.inference.embeddings.exact_search import ExactSearch

        old = self._loaded
        if old.state == state:
            return
        numbers, first_rows, _ = _list_blocks(connection)
        joined = b"".join(_read_blob(connection, "rows", number) for number in numbers.tolist())
        stored = np.frombuffer(joined, "<i8", len(joined) // 8)
        if (np.diff(stored) <= 0).any():
            raise sqlite3.DatabaseError("the rows of vectors aren't in order")
        last = old.rows[-1] if len(old.rows) else -1
        old = old.make_room(int((stored > last).sum()), np.isin(old.rows, stored))
        parts, start = [old.rows], len(old.rows)
        for number in numbers[max(np.searchsorted(first_rows, last, "right") - 1, 0) :].tolist():
            block_rows, vectors = self._read_block(connection, number)
            added = block_rows[block_rows > last]
            stop = start + len(added)
            old.matrix[start:stop] = vectors[len(vectors) - len(added) :]
            parts.append(added)
            start = stop
        rows = np.concatenate(parts)
        is_alive = np.isin(rows, stored) & ~np.isin(rows, _list_deleted(connection))
        exact = ExactSearch(old.matrix[:start], self._similarity, old.norms)
        self._loaded = _Loaded(state, rows, is_alive, old.matrix, exact.norms, exact)

    def search(
        self, queries: Vectors, top_k: int, among: Rows | None = None
    ) -> list[tuple[Rows, NDArray[np.float64]]]:
        """Find the rows of the vectors most similar to each query `[queries, dimension]`.

        Args:
            queries: each is searched for on its own.
            top_k: at most so many rows a query.
            among: if given, only these rows are searched, in any order.

        Returns:
            For each query, rows and similarities, best first, lower rows first among ties.
        """
        loaded = self._loaded
        assert loaded.exact is not None, "it has to be refreshed first"
        is_chosen = loaded.is_alive
        if among is not None:
            is_chosen = is_chosen & np.isin(loaded.rows, among)
        indexes = None if is_chosen.all() else np.flatnonzero(is_chosen)
        scores, found = loaded.exact.search(queries, top_k, indexes)
        return list(zip(loaded.rows[found], scores, strict=True))

    def score(self, query: Vectors, rows: Sequence[int]) -> list[float]:
        """Return the similarities of a query `[dimension]` and the vectors of rows."""
        loaded = self._loaded
        indexes = _find(loaded.rows, np.asarray(rows, np.int64))
        scores: list[float] = compare(self._similarity, loaded.matrix[indexes], query).tolist()
        return scores

    def _read_block(self, connection: sqlite3.Connection, number: int) -> tuple[Rows, Vectors]:
        (crc,) = connection.execute("SELECT crc FROM vectors WHERE block = ?", (number,)).fetchone()
        rows, content = (_read_blob(connection, name, number) for name in ("rows", "content"))
        shape = len(rows) // 8, self.dimension
        is_whole = 8 * shape[0] == len(rows) and 4 * shape[0] * shape[1] == len(content)
        if not is_whole or crc != _checksum(rows, content):
            raise sqlite3.DatabaseError(f"block {number} of vectors has another checksum")
        return np.frombuffer(rows, "<i8"), np.frombuffer(content, "<f4").reshape(shape)


class _Loaded(NamedTuple):
    """What is in memory of one state of the index."""

    state: int
    rows: Rows
    is_alive: NDArray[np.bool_]
    matrix: Vectors  # of the rows, and room for more
    norms: NDArray[np.float32]
    exact: "ExactSearch | None" = None

    def make_room(self, num_added: int, is_kept: NDArray[np.bool_]) -> "_Loaded":
        """Return the same with room for more, or without rows that aren't stored any more.

        Memory that is in use is never overwritten, since another thread may search it.
        """
        num_kept, num_rows = int(is_kept.sum()), len(self.rows)
        num_needed = num_kept + num_added
        if num_rows + num_added <= len(self.matrix) and num_kept >= (1 - MAX_DELETED) * num_rows:
            return self
        shape = (num_needed + num_needed // SLACK, self.matrix.shape[1])
        # Pages of the usual size: NumPy's huge ones may take several times as long to get.
        memory = mmap(-1, max(1, 4 * shape[0] * shape[1]), access=ACCESS_COPY)
        matrix = np.ndarray(shape, np.float32, memory)
        np.compress(is_kept, self.matrix[:num_rows], axis=0, out=matrix[:num_kept])
        return self._replace(rows=self.rows[is_kept], matrix=matrix, norms=self.norms[is_kept])


def _list_blocks(connection: sqlite3.Connection) -> tuple[Rows, Rows, Rows]:
    """Return the number, the first row and the size of each block, in order."""
    found = connection.execute(
        "SELECT block, CAST(ifnull(first_row, 0) AS INTEGER), ifnull(length(rows), 0) / 8"
        " FROM vectors ORDER BY block"
    ).fetchall()
    numbers, first_rows, sizes = np.array(found, np.int64).reshape(-1, 3).T
    return numbers, first_rows, sizes


def _list_deleted(connection: sqlite3.Connection) -> Rows:
    found = connection.execute("SELECT row FROM deleted ORDER BY row")
    return np.fromiter((row for (row,) in found), np.int64)


def _read_blob(connection: sqlite3.Connection, column: str, block: int) -> bytes:
    with connection.blobopen("vectors", column, block, readonly=True) as blob:
        return blob.read()


def _write_block(connection: sqlite3.Connection, number: int, rows: Rows, vectors: Vectors) -> None:
    row_bytes, content = rows.astype("<i8").tobytes(), vectors.astype("<f4").tobytes()
    connection.execute(
        "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)",
        (number, int(rows[0]), _checksum(row_bytes, content), row_bytes, content),
    )


def _checksum(rows: bytes, content: bytes) -> int:
    checksum: int = google_crc32c.extend(google_crc32c.value(rows), content)
    return checksum


def _find(rows: Rows, wanted: Rows) -> Rows:
    """Return the indexes of some rows among ascending ones."""
    indexes = np.searchsorted(rows, wanted)
    if (indexes == len(rows)).any() or not np.array_equal(rows[indexes], wanted):
        raise sqlite3.DatabaseError("a passage has no vector")
    return indexes
