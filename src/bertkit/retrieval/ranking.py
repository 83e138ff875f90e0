"""Rank candidate rows of each query by exact scores.

Candidates may come from a fast, approximate search; this module decides their order: higher scores
first, lower row numbers first among ties. Scores are those of `compare`, so they depend neither on
the other queries of a call nor on the position of a row in the corpus.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bertkit.embeddings.similarity import compare
from bertkit.embeddings.similarity_names import Similarity

NUM_ROWS_AT_ONCE = 8192  # 25 MB at 384 features


@dataclass(frozen=True)
class Candidates:
    """Candidate rows of all queries, concatenated.

    Attributes:
        queries: the query number of each candidate.
        rows: the row number of each candidate.
        scores: its score, as returned by `compare`.
    """

    queries: NDArray[np.int64]
    rows: NDArray[np.int64]
    scores: NDArray[np.float64]

    @classmethod
    def score(
        cls,
        similarity: Similarity,
        queries: NDArray[np.float32],
        vectors: NDArray[np.float32],
        pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> Self:
        """Score pairs of a query and a row.

        Args:
            similarity: the similarity measure.
            queries: `[queries, features]`.
            vectors: `[rows, features]`.
            pairs: query numbers and row numbers, of equal length.
        """
        scores = np.empty(len(pairs[0]))
        for start in range(0, len(scores), NUM_ROWS_AT_ONCE):
            part = slice(start, start + NUM_ROWS_AT_ONCE)
            scores[part] = compare(similarity, vectors[pairs[1][part]], queries[pairs[0][part]])
        return cls(*pairs, scores)

    def keep_best(self, top_k: int, older: Self | None = None) -> Self:
        """Return the best `top_k` of each query, in order, among these and older candidates."""
        joined = self if older is None else self._join(older)
        order = np.lexsort((joined.rows, -joined.scores, joined.queries))
        queries = joined.queries[order]
        places = np.arange(len(order)) - np.searchsorted(queries, queries)
        best = order[places < top_k]
        return type(self)(joined.queries[best], joined.rows[best], joined.scores[best])

    def _join(self, other: Self) -> Self:
        return type(self)(
            np.concatenate([self.queries, other.queries]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.scores, other.scores]),
        )
