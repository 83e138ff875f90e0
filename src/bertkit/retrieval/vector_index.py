"""Vector search: the rows most similar to a query, with their scores."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertkit.base.errors import InputError, SettingsError
from bertkit.inference.embeddings.exact_search import ExactSearch
from bertkit.inference.embeddings.settings import SIMILARITIES, Similarity
from bertkit.inference.embeddings.similarity import find_norms


class VectorIndex:
    """Finds the vectors most similar to queries.

    Scores are computed in float64 and don't depend on the other queries of a call. Higher scores
    come first, lower row numbers first among ties.

    Args:
        vectors: `[rows, features]`; float32 is used without a copy, in memory or mapped by
            `np.load(path, mmap_mode="r")`; other types are copied.
        similarity: cosine, dot, euclidean or manhattan; distances are negated, so that higher is
            always more similar.

    Raises:
        InputError: the vectors aren't a matrix with features, or one isn't finite.
        SettingsError: the similarity is unknown.

    Examples:
        >>> index = VectorIndex([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> scores, rows = index.search([2.0, 0.0], top_k=2)
        >>> rows
        array([0, 2])
    """

    def __init__(self, vectors: ArrayLike, similarity: Similarity = "cosine") -> None:
        if similarity not in SIMILARITIES:
            raise SettingsError(
                f"similarity must be one of {', '.join(SIMILARITIES)}, got {similarity!r}"
            )
        self.similarity: Similarity = similarity
        self.vectors = _as_matrix(vectors, "the vectors")
        self._exact = ExactSearch(self.vectors, similarity)

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
        found, rows = self._exact.search(matrix, top_k)
        scores = found.astype(np.float32)
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
