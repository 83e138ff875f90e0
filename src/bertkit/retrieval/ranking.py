"""The best rows of each query, told by exact scores.

What finds candidates may be fast and rough; the order comes from here: the higher score first, and
of equal scores the lower row. Scores are those of `compare`, so neither the other queries of a call
nor the place of a row in the corpus changes them.
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
    """Rows that may be among the best, of all queries end to end.

    Attributes:
        queries: which query each belongs to.
        rows: which vector it is.
        scores: as `compare` gives them.
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
            similarity: the measure.
            queries: `[queries, features]`.
            vectors: `[rows, features]`.
            pairs: numbers of queries, and as many of rows.
        """
        scores = np.empty(len(pairs[0]))
        for start in range(0, len(scores), NUM_ROWS_AT_ONCE):
            part = slice(start, start + NUM_ROWS_AT_ONCE)
            scores[part] = compare(similarity, vectors[pairs[1][part]], queries[pairs[0][part]])
        return cls(*pairs, scores)

    def keep_best(self, top_k: int, older: Self | None = None) -> Self:
        """The best `top_k` of each query, in order, of these and of older ones."""
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
