"""Vector search: the rows most similar to a query, with their scores."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertkit.base.errors import InputError, SettingsError
from bertkit.inference.embeddings.settings import SIMILARITIES, Similarity
from bertkit.inference.embeddings.similarity import find_norms
from bertkit.retrieval.approximate_search import ApproximateSearch, Cells
from bertkit.retrieval.exact_search import NUM_QUERIES_AT_ONCE, ExactSearch


class VectorIndex:
    """Finds the vectors most similar to queries.

    Scores are computed in float64 and don't depend on the other queries of a call. Higher scores
    come first, lower row numbers first among ties.

    Args:
        vectors: `[rows, features]`; float32 is used without a copy, in memory or mapped by
            `np.load(path, mmap_mode="r")`; other types are copied.
        similarity: cosine, dot, euclidean or manhattan; distances are negated, so that higher is
            always more similar.
        cells: the cells of an approximate index of the same vectors, as built by `approximate`.

    Raises:
        InputError: the vectors aren't a matrix with features, or one isn't finite.
        SettingsError: the similarity is unknown.

    Examples:
        >>> index = VectorIndex([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> scores, rows = index.search([2.0, 0.0], top_k=2)
        >>> rows
        array([0, 2])
    """

    def __init__(
        self,
        vectors: ArrayLike,
        similarity: Similarity = "cosine",
        *,
        cells: Cells | None = None,
    ) -> None:
        if similarity not in SIMILARITIES:
            raise SettingsError(
                f"similarity must be one of {', '.join(SIMILARITIES)}, got {similarity!r}"
            )
        self.similarity: Similarity = similarity
        self.vectors = _as_matrix(vectors, "the vectors")
        self._exact = ExactSearch(self.vectors, similarity)
        self._approximate = None
        if cells is not None:
            self._approximate = ApproximateSearch(cells, self.vectors, similarity)

    @property
    def cells(self) -> Cells | None:
        """The cells of an approximate index; None for exact search."""
        return None if self._approximate is None else self._approximate.cells

    def approximate(self) -> Self:
        """Build an approximate index of the same vectors.

        `cells.recall` is its measured recall.

        Raises:
            MissingExtraError: faiss isn't installed.
            SettingsError: the similarity is manhattan.
            InputError: there are no vectors.
        """
        if not len(self):
            raise InputError("there are no vectors for an approximate index")
        built = ApproximateSearch.build(self.vectors, self.similarity, self._exact)
        return type(self)(self.vectors, self.similarity, cells=built.cells)

    @property
    def dimension(self) -> int:
        """The number of features per vector."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self.vectors)

    def search(
        self, queries: ArrayLike, top_k: int = 10
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Find the rows most similar to one query, or to each of several.

        Args:
            queries: `[features]` or `[queries, features]`.
            top_k: rows per query; all rows if there are fewer vectors.

        Returns:
            Scores and rows, each `[found]` or `[queries, found]`, best first.

        Raises:
            InputError: a query has the wrong number of features or isn't finite, or `top_k` < 1.
        """
        if top_k < 1:
            raise InputError(f"top_k must be at least 1, got {top_k}")
        given = np.asarray(queries)
        matrix = _as_matrix(given[None] if given.ndim == 1 else given, "the queries")
        if matrix.shape[1] != self.dimension:
            raise InputError(
                f"a query has {matrix.shape[1]} features and the vectors {self.dimension}; embed"
                " both with the same model and settings"
            )
        find_norms(matrix, "the queries")
        num_found = min(top_k, len(self))
        scores = np.empty((len(matrix), num_found), np.float32)
        rows = np.empty((len(matrix), num_found), np.int64)
        for start in range(0, len(matrix) if num_found else 0, NUM_QUERIES_AT_ONCE):
            part = slice(start, start + NUM_QUERIES_AT_ONCE)
            best = None
            if self._approximate is not None:
                best = self._approximate.find(matrix[part], num_found)
            if best is None or len(best.rows) < len(matrix[part]) * num_found:
                best = self._exact.find(matrix[part], num_found)
            scores[part] = best.scores.reshape(-1, num_found)
            rows[part] = best.rows.reshape(-1, num_found)
        return (scores[0], rows[0]) if given.ndim == 1 else (scores, rows)


def _as_matrix(values: ArrayLike, name: str) -> NDArray[np.float32]:
    """Convert values to float32 `[rows, features]`, without a copy if they already are."""
    try:
        with np.errstate(over="ignore"):  # infinite values are refused later, with their row
            matrix = np.ascontiguousarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} aren't an array of numbers: {error}") from None
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise InputError(f"{name} must be [rows, features], and have the shape {matrix.shape}")
    return matrix
