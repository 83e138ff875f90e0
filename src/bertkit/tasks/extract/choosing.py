"""Choosing sentences for a summary: the best ones that don't say the same again."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from bertkit.metrics.words import is_character

NUM_WORDS = 3  # in a row, that say the same again
NUM_CHARACTERS = 6  # where those are words: about three words of Chinese or Japanese

Numbers = npt.NDArray[np.float64]
Run: TypeAlias = tuple[str, ...]


class Room(NamedTuple):
    """How much a summary may have.

    Attributes:
        num_sentences: most sentences.
        num_words: most words; None for any number.
    """

    num_sentences: int
    num_words: int | None = None


@dataclass(frozen=True)
class Taken:
    """A sentence that was taken.

    Attributes:
        index: of the sentence among those that could be taken.
        score: its relevance less what it repeats, when it was taken.
        similarity: how alike it is to the sentence before it in the list that it is most alike to;
            0 for the first.
        similar_to: index of that one; None for the first.
    """

    index: int
    score: float
    similarity: float
    similar_to: int | None


class Redundancy(Protocol):
    """What sentences repeat of those that were taken."""

    def add(self, index: int) -> None:
        """Take a sentence."""

    def penalties(self) -> Numbers:
        """What each sentence's relevance is lessened by; infinite where it mustn't be taken."""

    def nearest(self, index: int) -> tuple[float, int | None]:
        """How alike a sentence is to that of the taken ones it is most alike to, and which."""


def choose_sentences(
    relevance: Numbers, redundancy: Redundancy, word_counts: Sequence[int], room: Room
) -> list[Taken]:
    """Take sentences one after the other, each the best beside those before it.

    Source: Carbonell and Goldstein 1998, "The Use of MMR, Diversity-Based Reranking for Reordering
    Documents and Producing Summaries".

    Args:
        relevance: of each sentence; more is better. Of equal ones the first is taken.
        redundancy: what those that were taken make the others worth less.
        word_counts: words of each sentence.
        room: how much is taken. Where no sentence is short enough, the shortest is taken.

    Returns:
        Sentences, in the order in which they were taken.
    """
    taken: list[Taken] = []
    is_free = np.ones(len(relevance), dtype=bool)
    words = np.asarray(word_counts)
    left = room.num_words
    while len(taken) < room.num_sentences:
        fits = is_free if left is None else is_free & (words <= left)
        scores = np.where(fits, relevance - redundancy.penalties(), -np.inf)
        if not np.isfinite(scores.max(initial=-np.inf)):
            break
        index = int(scores.argmax())
        taken.append(Taken(index, float(scores[index]), *redundancy.nearest(index)))
        redundancy.add(index)
        is_free[index] = False
        left = None if left is None else left - int(words[index])
    if not taken and len(relevance):
        shortest = int(words.argmin())
        taken.append(Taken(shortest, float(relevance[shortest]), 0.0, None))
    return taken


class SameDirection:
    """A sentence repeats another as far as their vectors point the same way.

    Args:
        vectors: of each sentence, `[sentences, features]`, of length 1.
        weight: of the highest cosine to a sentence that was taken.
    """

    def __init__(self, vectors: npt.NDArray[np.float32], weight: float) -> None:
        self._vectors, self._weight = vectors, weight
        self._highest: Numbers | None = None
        self._nearest = np.zeros(len(vectors), dtype=np.int64)

    def add(self, index: int) -> None:
        """Compare all sentences with it."""
        cosines = (self._vectors @ self._vectors[index]).astype(np.float64)
        if self._highest is None:
            self._highest = np.full(len(cosines), -np.inf)
        self._nearest = np.where(cosines > self._highest, index, self._nearest)
        self._highest = np.maximum(cosines, self._highest)

    def penalties(self) -> Numbers:
        """The highest cosines, weighted; none before the first is taken."""
        if self._highest is None:
            return np.zeros(len(self._vectors))
        return self._weight * self._highest

    def nearest(self, index: int) -> tuple[float, int | None]:
        """The highest cosine, and whose it is."""
        if self._highest is None:
            return 0.0, None
        return float(self._highest[index]), int(self._nearest[index])


class SameRuns:
    """A sentence that has three words in a row with another in common isn't taken beside it.

    In scripts that put no blanks between words it is six characters in a row.

    Source: Paulus et al. 2017, "A Deep Reinforced Model for Abstractive Summarization", section
    2.5; Liu 2019, section 3.4.

    Args:
        sentences: the words of each, in small letters.
    """

    def __init__(self, sentences: Sequence[Sequence[str]]) -> None:
        self._runs = [find_runs(words) for words in sentences]
        self._holders: defaultdict[Run, list[int]] = defaultdict(list)
        for index, runs in enumerate(self._runs):
            for run in runs:
                self._holders[run].append(index)
        self._is_barred = np.zeros(len(sentences), dtype=bool)

    def add(self, index: int) -> None:
        """Bar all that have a run of it."""
        for run in self._runs[index]:
            self._is_barred[self._holders[run]] = True

    def penalties(self) -> Numbers:
        """Infinite for what is barred."""
        return np.where(self._is_barred, np.inf, 0.0)

    def nearest(self, index: int) -> tuple[float, int | None]:
        """Nothing: what is taken has no run of another."""
        del index
        return 0.0, None


def find_runs(words: Sequence[str]) -> set[Run]:
    """Words in a row, as many as say the same again: more where one of the first is a character."""
    is_short = [is_character(word) for word in words]
    runs = set()
    for start in range(len(words)):
        stop = start + (NUM_CHARACTERS if any(is_short[start : start + NUM_WORDS]) else NUM_WORDS)
        if stop <= len(words):
            runs.add(tuple(words[start:stop]))
    return runs
