"""The measures of similarity, for settings, which load no numbers."""

from typing import Literal, get_args

Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
