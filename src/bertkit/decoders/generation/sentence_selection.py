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


def select_sentences(
    relevance: Numbers,
    directions: npt.NDArray[np.float32],
    diversity: float,
    word_counts: Sequence[int],
    limits: SummaryLimits,
) -> list[SelectedSentence]:
    """Select sentences greedily by maximal marginal relevance, in the order of selection.

    Ties go to the first. If every sentence is too long, the shortest is selected.

    Args:
        directions: the sentences' vectors, of length 1.
        diversity: the weight of the highest cosine to a sentence selected before, beside which
            relevance has the rest.

    Source: Carbonell and Goldstein 1998, "The Use of MMR, Diversity-Based Reranking for Reordering
    Documents and Producing Summaries".
    """
    taken: list[SelectedSentence] = []
    is_free = np.ones(len(relevance), dtype=bool)
    words, left = np.asarray(word_counts), limits.num_words
    plain = worth = (1.0 - diversity) * relevance
    highest = np.full(len(relevance), -np.inf)  # cosine to a sentence selected before
    nearest = np.zeros(len(relevance), dtype=np.int64)  # that sentence
    while len(taken) < limits.num_sentences:
        fits = is_free if left is None else is_free & (words <= left)
        scores = np.where(fits, worth, -np.inf)
        if not np.isfinite(scores.max(initial=-np.inf)):
            break
        index = int(scores.argmax())
        similar = (float(highest[index]), int(nearest[index])) if taken else (0.0, None)
        taken.append(SelectedSentence(index, float(scores[index]), *similar))
        cosines = (directions @ directions[index]).astype(np.float64)
        nearest = np.where(cosines > highest, index, nearest)
        highest = np.maximum(cosines, highest)
        worth = plain - diversity * highest
        is_free[index] = False
        left = None if left is None else left - int(words[index])
    if not taken and len(relevance):
        shortest = int(words.argmin())
        taken.append(SelectedSentence(shortest, float(plain[shortest]), 0.0, None))
    return taken
