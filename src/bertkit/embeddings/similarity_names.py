"""Names of the similarity functions, for settings, which don't import NumPy."""

from typing import Literal, get_args

Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
