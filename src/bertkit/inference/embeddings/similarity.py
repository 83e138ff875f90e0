"""The four similarity functions of sentence-transformers folders.

Higher is always more similar; distances are negated, as they are there. Everything is computed in
float64, row by row, so that a score depends only on its two vectors.
"""

import numpy as np
from numpy.typing import NDArray

from bertkit.base.errors import InputError
from bertkit.inference.embeddings.settings import Similarity

# Between these norms, squares in float32 neither underflow nor overflow.
LEAST_NORM = 1e-18
GREATEST_NORM = 1e18

Rows = NDArray[np.float64]


def compare(
    similarity: Similarity, first: NDArray[np.floating], second: NDArray[np.floating]
) -> Rows:
    """Compute the similarity of the rows of one array to those of another, both `[..., features]`.

    The other axes are broadcast as in NumPy. A cosine is 0 where a vector is zero, or shorter than
    `LEAST_NORM`; distances are negated.
    """
    first, second = first.astype(np.float64), second.astype(np.float64)
    scores: Rows
    if similarity == "euclidean":
        scores = -np.sqrt(((first - second) ** 2).sum(axis=-1))
    elif similarity == "manhattan":
        scores = -np.abs(first - second).sum(axis=-1)
    else:
        scores = (first * second).sum(axis=-1)
    if similarity == "cosine":
        norms = [np.sqrt((rows * rows).sum(axis=-1)) for rows in (first, second)]
        is_zero = (norms[0] < LEAST_NORM) | (norms[1] < LEAST_NORM)
        scores = np.where(is_zero, 0.0, scores) / np.where(is_zero, 1.0, norms[0] * norms[1])
    return scores


def compare_all(
    similarity: Similarity, first: NDArray[np.floating], second: NDArray[np.floating]
) -> Rows:
    """Compute the similarity of each row of one array to each row of another, `[first, second]`."""
    scores = np.empty((len(first), len(second)))
    for number, row in enumerate(first):
        scores[number] = compare(similarity, second, row)
    return scores


def find_norms(
    vectors: NDArray[np.float32], name: str, *, first_row: int = 0
) -> NDArray[np.float64]:
    """Compute the Euclidean length, `[rows]`, of each vector of `[rows, features]`.

    Error messages call them `name` and number them from `first_row`.
    """
    wide = vectors.astype(np.float64)
    norms: NDArray[np.float64] = np.sqrt((wide * wide).sum(axis=-1))
    wrong = np.flatnonzero(~(norms <= GREATEST_NORM))
    if wrong.size:
        raise InputError(
            f"row {first_row + wrong[0]:,} of {name} isn't a vector that can be searched: its"
            f" length is {norms[wrong[0]]:g}, and must be finite and at most {GREATEST_NORM:g}"
        )
    return norms
