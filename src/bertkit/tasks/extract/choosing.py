"""Selection of sentences for a summary: the most relevant ones that aren't redundant."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from bertkit.data.sentences import Candidates
from bertkit.reports.notebook import Row, Tabular
from bertkit.tasks.task import TaskPrediction
from bertkit.tokenization.words import is_character, split_words

NUM_WORDS = 3  # length of a word n-gram that counts as a repetition
NUM_CHARACTERS = 6  # the same in characters: about three words of Chinese or Japanese

Numbers = npt.NDArray[np.float64]
Run: TypeAlias = tuple[str, ...]


class Room(NamedTuple):
    """The maximum size of a summary."""

    num_sentences: int
    num_words: int | None = None  # None for no limit


@dataclass(frozen=True)
class Taken:
    """A selected sentence."""

    index: int  # among the candidates
    score: float  # relevance minus redundancy penalty when it was selected
    similarity: float  # the highest to a sentence selected before it; 0 for the first
    similar_to: int | None  # index of that sentence; None for the first


class Redundancy(Protocol):
    """Measures how much each sentence repeats the sentences selected so far."""

    def add(self, index: int) -> None:
        """Mark a sentence as selected."""

    def penalties(self) -> Numbers:
        """Return the penalty on each sentence's relevance; infinite for excluded sentences."""

    def nearest(self, index: int) -> tuple[float, int | None]:
        """Return the highest similarity to a selected sentence, and that sentence's index."""


def choose_sentences(
    relevance: Numbers, redundancy: Redundancy, word_counts: Sequence[int], room: Room
) -> list[Taken]:
    """Select sentences greedily by maximal marginal relevance, in the order of selection.

    Ties go to the first. If every sentence is too long, the shortest is selected.

    Source: Carbonell and Goldstein 1998, "The Use of MMR, Diversity-Based Reranking for Reordering
    Documents and Producing Summaries".
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


class SameRuns:
    """Trigram blocking: exclude sentences that share three consecutive words with a selected one.

    In scripts without spaces between words, six consecutive characters count instead.

    Source: Paulus et al. 2017, "A Deep Reinforced Model for Abstractive Summarization", section
    2.5; Liu 2019, section 3.4.

    """

    def __init__(self, sentences: Sequence[Sequence[str]]) -> None:
        self._runs = [find_runs(words) for words in sentences]
        self._holders: defaultdict[Run, list[int]] = defaultdict(list)
        for index, runs in enumerate(self._runs):
            for run in runs:
                self._holders[run].append(index)
        self._is_barred = np.zeros(len(sentences), dtype=bool)

    def add(self, index: int) -> None:
        """Exclude all sentences that share an n-gram with it."""
        for run in self._runs[index]:
            self._is_barred[self._holders[run]] = True

    def penalties(self) -> Numbers:
        """Return infinity for excluded sentences, 0 for others."""
        return np.where(self._is_barred, np.inf, 0.0)

    def nearest(self, index: int) -> tuple[float, int | None]:
        """Return no similarity: selected sentences share no n-gram."""
        del index
        return 0.0, None


def find_runs(words: Sequence[str]) -> set[Run]:
    """Return all n-grams: 3 words, or 6 if one of the first 3 is a single character."""
    is_short = [is_character(word) for word in words]
    runs = set()
    for start in range(len(words)):
        stop = start + (NUM_CHARACTERS if any(is_short[start : start + NUM_WORDS]) else NUM_WORDS)
        if stop <= len(words):
            runs.add(tuple(words[start:stop]))
    return runs


@dataclass(frozen=True)
class ScoredSentence(Tabular):
    """A candidate sentence with its probability."""

    text: str  # in one line
    number: int  # of the sentence in its text, from 1
    start: int  # index of its first character in the text, from 0
    stop: int
    probability: float  # that it belongs to a summary
    is_taken: bool  # whether it is in the summary


@dataclass(frozen=True)
class Extraction(TaskPrediction):
    """A text's sentences, with those of its summary marked."""

    sentences: tuple[ScoredSentence, ...]

    @property
    def summary(self) -> str:
        """The selected sentences, joined."""
        return " ".join(sentence.text for sentence in self.sentences if sentence.is_taken)

    def describe(self) -> str:
        """Return the summary."""
        return self.summary

    def to_json(self) -> dict[str, Any]:
        """Return the summary and all sentences."""
        return {"summary": self.summary, "sentences": [asdict(one) for one in self.sentences]}

    def as_row(self) -> Row:
        """Return the summary."""
        return {"summary": self.summary}

    def as_rows(self) -> Sequence[Row]:
        """Return a row for each sentence."""
        return [sentence.as_row() for sentence in self.sentences]


def extract(
    candidates: Candidates, probabilities: npt.NDArray[np.float64], num_sentences: int
) -> Extraction:
    """Select the likeliest sentences that don't repeat each other, as in `SameRuns`."""
    words = [split_words(sentence) for sentence in candidates.sentences]
    lengths = list(map(len, words))
    room = Room(num_sentences)
    taken = choose_sentences(probabilities, SameRuns(words), lengths, room)
    numbers = {one.index for one in taken}
    return Extraction(
        tuple(
            ScoredSentence(
                text=sentence,
                number=candidates.numbers[index],
                start=candidates.spans[index].start,
                stop=candidates.spans[index].stop,
                probability=float(probabilities[index]),
                is_taken=index in numbers,
            )
            for index, sentence in enumerate(candidates.sentences)
        )
    )
