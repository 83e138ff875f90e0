"""Exact nearest-neighbor search that compares each query with all rows.

Rows are scored in blocks by one float32 matrix product, which is fast and needs little memory; a
memory-mapped file never has to fit. Rows whose float32 score is below the best so far by more than
the rounding error bound are dropped; the few others are rescored in float64. So the result is that
of float64 over all rows, at hardly more than the cost of the product.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bertkit.inference.embeddings.settings import Similarity
from bertkit.inference.embeddings.similarity import LEAST_NORM, compare, find_norms

NUM_ROWS_AT_ONCE = 8192  # 25 MB at 384 features
NUM_ROWS_OF_A_BLOCK = 65_536  # times 64 queries: 17 MB of rough scores
NUM_ROWS_OF_THE_FIRST_BLOCK = 4096  # cheap to sort whole; its best rows exclude most later rows
NUM_QUERIES_AT_ONCE = 64
NUM_DIFFERENCES_AT_ONCE = 65_536  # 256 KB, which the cache of a core holds
ROUNDING = 2.0**-24  # the unit roundoff of float32
NO_NORMS = np.empty(0, np.float32)
MOST = 4  # a range of at most so many times the wanted rows is scored whole
LEAST_USUAL_NORM, GREATEST_USUAL_NORM = 1e-12, 1e12  # float32 squares don't under- or overflow


@dataclass(frozen=True)
class SearchCandidates:
    """Candidate rows of all queries, concatenated."""

    queries: NDArray[np.int64]
    rows: NDArray[np.int64]
    scores: NDArray[np.float64]  # as returned by `compare`

    @classmethod
    def score(
        cls,
        similarity: Similarity,
        queries: NDArray[np.float32],
        vectors: NDArray[np.float32],
        pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> Self:
        """Score pairs of a row of `queries` and one of `vectors`, each `[rows, features]`.

        `pairs` has the numbers of both, equally many.
        """
        scores = np.empty(len(pairs[0]))
        for start in range(0, len(scores), NUM_ROWS_AT_ONCE):
            part = slice(start, start + NUM_ROWS_AT_ONCE)
            scores[part] = compare(similarity, vectors[pairs[1][part]], queries[pairs[0][part]])
        return cls(*pairs, scores)

    def keep_best(self, top_k: int, older: Self | None = None) -> Self:
        """Return the best `top_k` of each query, in order, among these and older candidates."""
        joined = self
        if older is not None:
            joined = type(self)(
                np.concatenate([self.queries, older.queries]),
                np.concatenate([self.rows, older.rows]),
                np.concatenate([self.scores, older.scores]),
            )
        order = np.lexsort((joined.rows, -joined.scores, joined.queries))
        queries = joined.queries[order]
        places = np.arange(len(order)) - np.searchsorted(queries, queries)
        best = order[places < top_k]
        return type(self)(joined.queries[best], joined.rows[best], joined.scores[best])


Queries = NDArray[np.float32]  # `[queries, features]`
QueryNorms = NDArray[np.float32]  # `[queries, 1]`
Rows = NDArray[np.float32]  # `[rows, features]`
RowNorms = NDArray[np.float32]  # `[rows]`
Scores = NDArray[np.float32]  # `[queries, rows]`


def _rank(
    similarity: Similarity, queries: Queries, query_norms: QueryNorms, rows: Rows, norms: RowNorms
) -> Scores:
    """Score rows in float32; a Euclidean distance as its negative square."""
    if similarity == "manhattan":
        return _add_differences(queries, rows)
    if similarity == "cosine":
        queries = queries * _invert(query_norms)
    elif similarity == "euclidean":
        queries = 2 * queries
    products: Scores = queries @ rows.T
    if similarity == "cosine":
        products *= _invert(norms)
    elif similarity == "euclidean":
        products -= norms * norms
        products -= query_norms * query_norms
    return products


def _invert(norms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 1 divided by norms; 0 for those that are as good as 0."""
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms >= LEAST_NORM)


def _add_differences(queries: Queries, rows: Rows) -> Scores:
    """Return the negative sum of the absolute differences from each query to each row."""
    scores = np.empty((len(queries), len(rows)), np.float32)
    num_at_once = max(1, NUM_DIFFERENCES_AT_ONCE // rows.shape[1])
    for start in range(0, len(rows), num_at_once):
        part = rows[start : start + num_at_once]
        differences, stop = np.empty_like(part), start + len(part)
        for query, own in zip(queries, scores, strict=True):
            np.subtract(part, query, out=differences)
            np.abs(differences, out=differences).sum(axis=1, out=own[start:stop])
    return np.negative(scores, out=scores)


class ExactSearch:
    """Searches by comparing queries with all vectors, float32 `[rows, features]`.

    They may be memory-mapped. It is an `InputError` if one isn't finite, or its norm overflows
    float32. The norms of the first ones may be given; the others are measured.
    """

    def __init__(
        self,
        vectors: NDArray[np.float32],
        similarity: Similarity,
        norms: NDArray[np.float32] = NO_NORMS,
    ) -> None:
        self._vectors: Rows = np.asarray(vectors)
        self._similarity = similarity
        new = _measure_norms(self._vectors[len(norms) :], len(norms))
        self.norms: RowNorms = np.concatenate([norms, new])
        self._greatest_norm = self.norms.max(initial=np.float32(0.0))

    def search(
        self,
        queries: NDArray[np.float32],
        top_k: int,
        among: NDArray[np.int64] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the scores and rows of the best of each query, `[queries, found]`, in order.

        The queries are float32 `[queries, features]`, each finite. With `among`, only these rows
        are searched; they ascend. All are found where there are fewer than `top_k`.
        """
        num_found = min(top_k, len(self._vectors) if among is None else len(among))
        best = [
            self._find(queries[start : start + NUM_QUERIES_AT_ONCE], num_found, among)
            for start in range(0, len(queries) if num_found else 0, NUM_QUERIES_AT_ONCE)
        ]
        scores = np.concatenate([np.empty(0), *(each.scores for each in best)])
        rows = np.concatenate([np.empty(0, np.int64), *(each.rows for each in best)])
        shape = len(queries), num_found
        return scores.reshape(shape), rows.reshape(shape)

    def score_all(self, queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """Score all vectors for a few queries in float32, `[queries, rows]`.

        A Euclidean distance is its negative square, which ranks alike.
        """
        norms = find_norms(queries, "the queries").astype(np.float32)[:, None]
        return self._rank((queries, norms), slice(None), None)

    def _find(
        self, queries: NDArray[np.float32], top_k: int, among: NDArray[np.int64] | None
    ) -> SearchCandidates:
        """Find the best of few queries, at least one; there are at least `top_k` rows."""
        norms = find_norms(queries, "the queries").astype(np.float32)[:, None]
        margins = self._find_margins(norms)
        best: SearchCandidates | None = None
        num_rows = len(self._vectors) if among is None else len(among)
        for start, stop in _list_blocks(num_rows, 4 * top_k):
            ranks = self._rank((queries, norms), slice(start, stop), among)
            if best is None:
                place = ranks.shape[1] - top_k
                lowest = np.partition(ranks, place, axis=1)[:, place, None] - 2 * margins
            else:
                scores = best.scores.reshape(len(queries), -1)[:, -1:]
                if self._similarity == "euclidean":  # ranks are negative squares
                    scores = -(scores**2)
                lowest = scores.astype(np.float32) - margins
            numbers, places = np.divmod(np.flatnonzero(ranks >= lowest), ranks.shape[1])
            rows = start + places if among is None else among[start + places]
            pairs = numbers, rows
            found = SearchCandidates.score(self._similarity, queries, self._vectors, pairs)
            best = found.keep_best(top_k, best)
        assert best is not None
        return best

    def _rank(
        self,
        inputs: tuple[Queries, QueryNorms],
        part: slice,
        among: NDArray[np.int64] | None,
    ) -> Scores:
        """Score rows in float32; if most of a range are among them, without a copy of these."""
        if among is None:
            return _rank(self._similarity, *inputs, self._vectors[part], self.norms[part])
        wanted = among[part]
        start, stop = int(wanted[0]), int(wanted[-1]) + 1
        if stop - start > MOST * len(wanted):
            return _rank(self._similarity, *inputs, self._vectors[wanted], self.norms[wanted])
        return self._rank(inputs, slice(start, stop), None)[:, wanted - start]

    def _find_margins(self, query_norms: QueryNorms) -> QueryNorms:
        """Return a bound, with some slack, on the error of float32 ranks.

        A sum of n float32 products errs by at most n roundings of the sum of their magnitudes.
        Source: Higham, Accuracy and Stability of Numerical Algorithms, section 3.1.
        """
        num_features = self._vectors.shape[1]
        greatest = self._greatest_norm
        scales: dict[Similarity, QueryNorms] = {
            "cosine": np.ones_like(query_norms),
            "dot": query_norms * greatest,
            "euclidean": (query_norms + greatest) ** 2,
            "manhattan": (query_norms + greatest) * num_features**0.5,
        }
        margins: QueryNorms = scales[self._similarity] * (4 * ROUNDING * (num_features + 8))
        return margins


def _measure_norms(vectors: NDArray[np.float32], first_row: int) -> NDArray[np.float32]:
    """Compute the norms of vectors, and refuse one that isn't finite by its number."""
    with np.errstate(over="ignore", invalid="ignore"):  # those rows are looked at one by one
        norms: RowNorms = np.sqrt(np.einsum("rf,rf->r", vectors, vectors))
    is_usual = (norms > LEAST_USUAL_NORM) & (norms < GREATEST_USUAL_NORM)
    for row in np.flatnonzero(~is_usual).tolist():
        norm = find_norms(vectors[row : row + 1], "the vectors", first_row=first_row + row)
        norms[row] = norm[0]
    return norms


def _list_blocks(num_rows: int, num_first: int) -> Iterator[tuple[int, int]]:
    """Yield start and stop of blocks, each as large as all before it, so that few rows pass."""
    stop = min(num_rows, max(num_first, NUM_ROWS_OF_THE_FIRST_BLOCK))
    yield 0, stop
    while stop < num_rows:
        start, stop = stop, min(num_rows, stop + min(stop, NUM_ROWS_OF_A_BLOCK))
        yield start, stop
