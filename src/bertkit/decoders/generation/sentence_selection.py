"""Selection of sentences for a summary: the most relevant ones that aren't redundant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


class SummaryLimits(NamedTuple):
    """The maximum size of a summary."""

    num_sentences: int
    num_words: int | None = None  # None for no limit


@dataclass(frozen=True)
class SelectedSentence:
    """A selected sentence."""

    index: int  # among the candidates
    score: float  # relevance minus redundancy penalty when it was selected
    similarity: float  # the highest to a sentence selected before it; 0 for the first
    similar_to: int | None  # index of that sentence; None for the first


class CosineRedundancy:
    """Redundancy: `weight` times the highest cosine similarity to a selected sentence."""

    def __init__(self, vectors: npt.NDArray[np.float32], weight: float) -> None:
        self._vectors, self._weight = vectors, weight
        self._highest: Numbers | None = None
        self._nearest = np.zeros(len(vectors), dtype=np.int64)

    def add(self, index: int) -> None:
        """Update the highest cosines with a selected sentence."""
        cosines = (self._vectors @ self._vectors[index]).astype(np.float64)
        if self._highest is None:
            self._highest = np.full(len(cosines), -np.inf)
        self._nearest = np.where(cosines > self._highest, index, self._nearest)
        self._highest = np.maximum(cosines, self._highest)

    def penalties(self) -> Numbers:
        """Return the weighted highest cosines; zeros before the first selection."""
        if self._highest is None:
            return np.zeros(len(self._vectors))
        return self._weight * self._highest

    def nearest(self, index: int) -> tuple[float, int | None]:
        """Return the highest cosine, and the index of that selected sentence."""
        if self._highest is None:
            return 0.0, None
        return float(self._highest[index]), int(self._nearest[index])


def select_sentences(
    relevance: Numbers,
    redundancy: CosineRedundancy,
    word_counts: Sequence[int],
    limits: SummaryLimits,
) -> list[SelectedSentence]:
    """Select sentences greedily by maximal marginal relevance, in the order of selection.

    Ties go to the first. If every sentence is too long, the shortest is selected.

    Source: Carbonell and Goldstein 1998, "The Use of MMR, Diversity-Based Reranking for Reordering
    Documents and Producing Summaries".
    """
    taken: list[SelectedSentence] = []
    is_free = np.ones(len(relevance), dtype=bool)
    words = np.asarray(word_counts)
    left = limits.num_words
    while len(taken) < limits.num_sentences:
        fits = is_free if left is None else is_free & (words <= left)
        scores = np.where(fits, relevance - redundancy.penalties(), -np.inf)
        if not np.isfinite(scores.max(initial=-np.inf)):
            break
        index = int(scores.argmax())
        taken.append(SelectedSentence(index, float(scores[index]), *redundancy.nearest(index)))
        redundancy.add(index)
        is_free[index] = False
        left = None if left is None else left - int(words[index])
    if not taken and len(relevance):
        shortest = int(words.argmin())
        taken.append(SelectedSentence(shortest, float(relevance[shortest]), 0.0, None))
    return taken
