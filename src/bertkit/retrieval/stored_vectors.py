"""Vectors in an index's file: blocks of about a megabyte, and one matrix of them in memory.

A block has the row numbers of passages, ascending, their float32 vectors, and a checksum of both.
Only the last block grows. Deleted rows are marked, and leave their block when they are over a
quarter of it. In memory, only blocks that are new or changed since the last refresh are read again.
"""

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from bertkit.base.errors import DamagedFileError
from bertkit.inference.embeddings.settings import Similarity
from bertkit.inference.embeddings.similarity import compare
from bertkit.retrieval.index_file import REMEDY
from bertkit.retrieval.vector_file import Vectors

if TYPE_CHECKING:
    from bertkit.retrieval.exact_search import ExactSearch

Rows = NDArray[np.int64]
BLOCK_BYTES = 1 << 20
MAX_DELETED = 0.25  # of a block, before it is written without them
SLACK = 8  # one more row of memory for so many, so that a few can be added without a copy of all


class StoredVectors:
    """The vectors of an index, whose file other processes may change meanwhile.

    Args:
        dimension: numbers of a vector.
        similarity: of queries and vectors.
    """

    def __init__(self, dimension: int, similarity: Similarity) -> None:
        self.dimension = dimension
        self._similarity: Similarity = similarity
        self._rows_of_a_block = max(1, BLOCK_BYTES // (4 * dimension))
        nothing = np.empty((0, dimension), np.float32)
        self._loaded = _Loaded(-1, np.empty(0, np.int64), np.empty(0, bool), nothing, nothing[:, 0])

    def append(self, connection: sqlite3.Connection, rows: Rows, vectors: Vectors) -> None:
        """Add vectors `[rows, dimension]`; rows ascend, and are greater than all before."""
        assert vectors.shape == (len(rows), self.dimension)
        (last,) = connection.execute("SELECT max(block) FROM vectors").fetchone()
        number = 0 if last is None else last + 1
        if last is not None:
            old_rows, old_vectors = self._read_block(connection, last)
            if len(old_rows) < self._rows_of_a_block:
                number = last
                rows = np.concatenate([old_rows, rows])
                vectors = np.concatenate([old_vectors, vectors])
        for start in range(0, len(rows), self._rows_of_a_block):
            part = slice(start, start + self._rows_of_a_block)
            _write_block(connection, number, rows[part], vectors[part])
            number += 1

    def delete(self, connection: sqlite3.Connection, rows: Sequence[int]) -> None:
        """Delete the vectors of rows; a row without one is ignored."""
        numbers, first_rows = _list_blocks(connection)
        gone = np.unique(np.asarray(rows, np.int64))
        gone = gone[np.searchsorted(first_rows, gone, side="right") > 0]
        connection.executemany(
            "INSERT OR IGNORE INTO deleted VALUES (?)", ((row,) for row in gone.tolist())
        )
        stops = [*first_rows[1:].tolist(), np.iinfo(np.int64).max]
        for index in np.unique(np.searchsorted(first_rows, gone, side="right") - 1).tolist():
            bounds = int(first_rows[index]), stops[index]
            self._clean(connection, int(numbers[index]), bounds)

    def _clean(self, connection: sqlite3.Connection, number: int, bounds: tuple[int, int]) -> None:
        """Write a block, whose rows lie within `bounds`, without deleted rows if there are many."""
        deleted = connection.execute(
            "SELECT row FROM deleted WHERE row >= ? AND row < ?", bounds
        ).fetchall()
        (num_rows,) = connection.execute(
            "SELECT length(rows) / 8 FROM vectors WHERE block = ?", (number,)
        ).fetchone()
        if len(deleted) <= MAX_DELETED * num_rows:
            return
        rows, vectors = self._read_block(connection, number)
        is_kept = ~np.isin(rows, deleted)
        connection.execute("DELETE FROM deleted WHERE row >= ? AND row < ?", bounds)
        if is_kept.any():
            _write_block(connection, number, rows[is_kept], vectors[is_kept])
        else:
            connection.execute("DELETE FROM vectors WHERE block = ?", (number,))

    def read(self, connection: sqlite3.Connection, rows: Sequence[int]) -> Vectors:
        """Read the vectors of rows, `[rows, dimension]`, from the file.

        Raises:
            DamagedFileError: one is missing, or its block is damaged.
        """
        numbers, first_rows = _list_blocks(connection)
        wanted = np.asarray(rows, np.int64)
        vectors = np.empty((len(wanted), self.dimension), np.float32)
        indexes = np.searchsorted(first_rows, wanted, side="right") - 1
        for index in np.unique(indexes).tolist():
            found, content = np.empty(0, np.int64), vectors
            if index >= 0:
                found, content = self._read_block(connection, int(numbers[index]))
            is_there = indexes == index
            vectors[is_there] = content[_find(found, wanted[is_there], _name(connection))]
        return vectors

    def refresh(self, connection: sqlite3.Connection, state: int) -> None:
        """Load what has changed in the file since the last refresh.

        Args:
            connection: in a transaction, in which the index is in `state`.
            state: if it is that of the last refresh, nothing is read.
        """
        from bertkit.retrieval.exact_search import ExactSearch

        old = self._loaded
        if old.state == state:
            return
        blocks = connection.execute(
            "SELECT block, CAST(ifnull(rows, '') AS BLOB) FROM vectors ORDER BY block"
        ).fetchall()
        joined = b"".join(part for _, part in blocks)
        stored = np.frombuffer(joined, "<i8", len(joined) // 8)
        if (np.diff(stored) <= 0).any():
            raise DamagedFileError(f"the rows of {_name(connection)} aren't in order; {REMEDY}")
        num_known = int(np.searchsorted(stored, old.rows[-1], "right")) if len(old.rows) else 0
        old = old.make_room(len(stored) - num_known, np.isin(old.rows, stored))
        rows = np.concatenate([old.rows, stored[num_known:]])
        start = len(old.rows) - num_known
        for number, part in blocks:
            stop = start + len(part) // 8
            first = max(start, len(old.rows))
            if first < stop:
                old.matrix[first:stop] = self._read_block(connection, number)[1][first - start :]
            start = stop
        deleted = np.array(connection.execute("SELECT row FROM deleted").fetchall(), np.int64)
        is_alive = np.isin(rows, stored) & ~np.isin(rows, deleted)
        exact = ExactSearch(old.matrix[: len(rows)], self._similarity, old.norms)
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
        from bertkit.retrieval.exact_search import NUM_QUERIES_AT_ONCE

        loaded = self._loaded
        assert loaded.exact is not None, "it has to be refreshed first"
        indexes = loaded.choose(among)
        num_found = min(top_k, len(loaded.rows) if indexes is None else len(indexes))
        if not num_found:
            return [(np.empty(0, np.int64), np.empty(0)) for _ in queries]
        found: list[tuple[Rows, NDArray[np.float64]]] = []
        for start in range(0, len(queries), NUM_QUERIES_AT_ONCE):
            part = queries[start : start + NUM_QUERIES_AT_ONCE]
            best = loaded.exact.find(part, num_found, indexes)
            rows = loaded.rows[best.rows].reshape(len(part), -1)
            found += zip(rows, best.scores.reshape(len(part), -1), strict=True)
        return found

    def score(self, query: Vectors, rows: Sequence[int]) -> list[float]:
        """Return the similarities of a query `[dimension]` and the vectors of rows.

        Raises:
            DamagedFileError: a row has no vector.
        """
        loaded = self._loaded
        indexes = _find(loaded.rows, np.asarray(rows, np.int64), "the index")
        scores: list[float] = compare(self._similarity, loaded.matrix[indexes], query).tolist()
        return scores

    def _read_block(self, connection: sqlite3.Connection, number: int) -> tuple[Rows, Vectors]:
        first_row, crc, rows, content = connection.execute(
            "SELECT first_row, crc, CAST(ifnull(rows, '') AS BLOB),"
            " CAST(ifnull(content, '') AS BLOB) FROM vectors WHERE block = ?",
            (number,),
        ).fetchone()
        size = len(rows) // 8
        sizes = len(rows), len(content)
        is_whole = sizes == (8 * size, 4 * size * self.dimension) and crc == _checksum(
            rows, content
        )
        if not is_whole or first_row != int.from_bytes(rows[:8], "little"):
            raise DamagedFileError(
                f"block {number} of the vectors of {_name(connection)} is damaged; {REMEDY}"
            )
        vectors = np.frombuffer(content, "<f4").reshape(size, self.dimension)
        return np.frombuffer(rows, "<i8"), vectors


class _Loaded(NamedTuple):
    """What is in memory of one state of the index."""

    state: int
    rows: Rows
    is_alive: NDArray[np.bool_]
    matrix: Vectors  # of the rows, and room for more
    norms: NDArray[np.float32]
    exact: "ExactSearch | None" = None

    def make_room(self, num_added: int, is_kept: NDArray[np.bool_]) -> "_Loaded":
        """Return the same with room for more, or with fewer rows that aren't stored any more.

        Memory that is in use is never overwritten, since another thread may search it.
        """
        num_kept, num_rows = int(is_kept.sum()), len(self.rows)
        has_room = num_rows + num_added <= len(self.matrix)
        if has_room and num_rows - num_kept <= MAX_DELETED * num_rows:
            return self
        num_needed = num_kept + num_added
        matrix = np.empty((num_needed + num_needed // SLACK, self.matrix.shape[1]), np.float32)
        np.compress(is_kept, self.matrix[:num_rows], axis=0, out=matrix[:num_kept])
        return self._replace(rows=self.rows[is_kept], matrix=matrix, norms=self.norms[is_kept])

    def choose(self, among: Rows | None) -> Rows | None:
        """Return the indexes of the rows to search, ascending; None for all."""
        if among is None and self.is_alive.all():
            return None
        if among is None:
            return np.flatnonzero(self.is_alive)
        return np.flatnonzero(np.isin(self.rows, among) & self.is_alive)


def _list_blocks(connection: sqlite3.Connection) -> tuple[Rows, Rows]:
    """Return the numbers and first rows of all blocks, in order."""
    listed = connection.execute(
        "SELECT block, CAST(ifnull(first_row, 0) AS INTEGER) FROM vectors ORDER BY block"
    ).fetchall()
    numbers, first_rows = np.array(listed, np.int64).reshape(-1, 2).T
    return numbers, first_rows


def _write_block(connection: sqlite3.Connection, number: int, rows: Rows, vectors: Vectors) -> None:
    row_bytes, content = rows.astype("<i8").tobytes(), vectors.astype("<f4").tobytes()
    connection.execute(
        "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)",
        (number, int(rows[0]), _checksum(row_bytes, content), row_bytes, content),
    )


def _checksum(rows: bytes, content: bytes) -> int:
    checksum: int = google_crc32c.extend(google_crc32c.value(rows), content)
    return checksum


def _find(rows: Rows, wanted: Rows, name: str) -> Rows:
    """Return the indexes of some rows among ascending ones; it is an error if one is missing."""
    indexes = np.searchsorted(rows, wanted)
    if (indexes == len(rows)).any() or not np.array_equal(rows[indexes], wanted):
        raise DamagedFileError(f"{name} is damaged: a passage has no vector; {REMEDY}")
    return indexes


def _name(connection: sqlite3.Connection) -> str:
    path: str = connection.execute("PRAGMA database_list").fetchone()[2]
    return path or "the index in memory"
