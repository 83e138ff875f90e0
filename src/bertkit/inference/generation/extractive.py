"""Extractive summaries and their statistics, independent of how sentences are scored."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from bertkit.base.errors import NonFiniteError
from bertkit.data.sentences import Candidates
from bertkit.inference.embeddings.embedder import Embedder, Vectors
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.embeddings.similarity import LEAST_NORM
from bertkit.inference.generation.settings import (
    DEFAULT_DIVERSITY,
    DEFAULT_LANGUAGE,
    DEFAULT_SENTENCES,
    MAX_SENTENCES,
    SummarySettings,
)
from bertkit.inference.stream import TextCounts, check_each
from bertkit.reports.notebook import Row, Tabular
from bertkit.tasks.extract.choosing import (
    Numbers,
    Redundancy,
    Room,
    SameDirection,
    choose_sentences,
)
from bertkit.tokenization.words import split_words


@dataclass(frozen=True)
class SummarySentence(Tabular):
    """A sentence of a summary, with the scores that led to its selection.

    Attributes:
        text: the sentence, on one line.
        number: its position among the text's sentences, from 1.
        start: offset of its first character in the text, from 0.
        stop: offset after its last character.
        rank: the order of selection, from 1.
        score: its score when it was selected: relevance minus redundancy.
        relevance: its cosine to the mean of all sentences, or the trained model's probability.
        similarity: its highest cosine to a sentence selected earlier; 0 for the first sentence, and
            with a trained model.
        similar_to: the number of that sentence.
    """

    text: str
    number: int
    start: int
    stop: int
    rank: int
    score: float
    relevance: float
    similarity: float = 0.0
    similar_to: int | None = None


@dataclass(frozen=True)
class ExtractiveSummary(Tabular):
    """The most relevant sentences of a text.

    Attributes:
        sentences: the selected sentences, in text order.
        num_sentences: sentences of the text, including those that can't be selected.
        num_candidates: sentences that could be selected.
        is_limited: whether `MAX_SENTENCES` cut the summary short.
        is_short: whether it has fewer sentences than requested because the others are redundant.
    """

    sentences: tuple[SummarySentence, ...]
    num_sentences: int
    num_candidates: int
    is_limited: bool = False
    is_short: bool = False

    @property
    def text(self) -> str:
        """The sentences joined by spaces; empty if there are none."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def is_whole(self) -> bool:
        """Whether every candidate was selected."""
        return len(self.sentences) == self.num_candidates

    def as_row(self) -> Row:
        """Return the summary and the other fields."""
        return {"text": self.text, **super().as_row()}

    def as_rows(self) -> Sequence[Row]:
        """Return a row for each sentence."""
        return [sentence.as_row() for sentence in self.sentences]


@dataclass
class SummaryCounts:
    """Statistics of the summarized texts.

    Attributes:
        texts: all texts.
        empty: texts without a candidate sentence; their summaries are empty.
        whole: texts of which every candidate was selected.
        short: texts whose summary is short because the remaining sentences are redundant.
        limited: texts whose summary was cut at `MAX_SENTENCES`.
        truncated: sentences truncated to the model's maximum length; with a trained model, texts
            with such sentences.
    """

    texts: int = 0
    empty: int = 0
    whole: int = 0
    short: int = 0
    limited: int = 0
    truncated: int = 0

    def add_summary(self, summary: ExtractiveSummary) -> None:
        """Add one summary to the statistics."""
        self.texts += 1
        self.empty += not summary.num_candidates
        self.whole += summary.is_whole and summary.num_candidates > 0
        self.short += summary.is_short
        self.limited += summary.is_limited


def count_wanted(settings: SummarySettings, num_candidates: int) -> int:
    """Return the requested number of sentences before limits; all of them if words are limited."""
    if settings.words is not None:
        return num_candidates
    if settings.share is not None:
        return max(1, round(settings.share * num_candidates))
    return settings.sentences or DEFAULT_SENTENCES


def add_position(relevance: Numbers, weight: float) -> Numbers:
    """Blend relevance with position, which falls linearly from 1 (first sentence) to 0 (last)."""
    return (1.0 - weight) * relevance + weight * np.linspace(1.0, 0.0, len(relevance))


def compose(
    candidates: Candidates,
    relevance: Numbers,
    scores: Numbers,
    redundancy: Redundancy,
    settings: SummarySettings,
) -> ExtractiveSummary:
    """Select sentences and build the summary.

    Args:
        candidates: the sentences to select from.
        relevance: the relevance of each.
        scores: the score of each before redundancy is subtracted.
        redundancy: measures how much a sentence repeats those already selected.
        settings: the length of the summary.
    """
    word_counts = [len(split_words(sentence)) for sentence in candidates.sentences]
    wanted = count_wanted(settings, len(candidates))
    room = Room(min(wanted, MAX_SENTENCES), settings.words)
    taken = choose_sentences(scores, redundancy, word_counts, room)
    sentences = [
        SummarySentence(
            text=candidates.sentences[one.index],
            number=candidates.numbers[one.index],
            start=candidates.spans[one.index].start,
            stop=candidates.spans[one.index].stop,
            rank=rank,
            score=one.score,
            relevance=float(relevance[one.index]),
            similarity=one.similarity,
            similar_to=None if one.similar_to is None else candidates.numbers[one.similar_to],
        )
        for rank, one in enumerate(taken, start=1)
    ]
    return ExtractiveSummary(
        sentences=tuple(sorted(sentences, key=lambda sentence: sentence.start)),
        num_sentences=candidates.num_sentences,
        num_candidates=len(candidates),
        is_limited=len(taken) == MAX_SENTENCES < wanted,
        is_short=settings.words is None and len(taken) < min(room.num_sentences, len(candidates)),
    )


@dataclass(frozen=True)
class CentralSummarizer:
    """Summarizes texts by their most central sentences.

    Examples:
        >>> summarize = CentralSummarizer.load("all-MiniLM-L6-v2/")  # doctest: +SKIP
        >>> summarize(open("article.txt").read()).text  # doctest: +SKIP
        'A storm closed the harbour on Monday. Two ships are still missing.'

    Attributes:
        embedder: computes the sentence vectors.
        settings: summary length and how sentences are selected.
    """

    embedder: Embedder
    settings: SummarySettings = field(default_factory=SummarySettings)

    @classmethod
    def load(
        cls,
        path: str | Path,
        settings: SummarySettings | None = None,
        embedding: EmbedderSettings | None = None,
        *,
        device: str = "auto",
        revision: str | None = None,
    ) -> Self:
        """Load any encoder; raises the errors of `Embedder.load`.

        Args:
            path: as in `Embedder.load`.
            settings: summary length and how sentences are selected.
            embedding: how sentences are embedded.
            device: as in `Embedder.load`.
            revision: as in `Embedder.load`.
        """
        embedder = Embedder.load(path, embedding, device=device, revision=revision)
        return cls(embedder, settings or SummarySettings())

    def __call__(self, text: str) -> ExtractiveSummary:
        """Summarize a text; errors as in `stream`."""
        (summary,) = self.stream([text])
        return summary

    def stream(
        self, texts: Iterable[str], counts: SummaryCounts | None = None
    ) -> Iterator[ExtractiveSummary]:
        """Summarize any number of texts, in input order; memory depends on the longest text only.

        Args:
            texts: consumed a few at a time.
            counts: updated as summaries are yielded.

        Raises:
            InputError: an input isn't a string.
            NonFiniteError: the model's vectors aren't finite.
        """
        counts = SummaryCounts() if counts is None else counts
        already_truncated = counts.truncated
        read, waiting = TextCounts(), deque[Candidates]()
        rows: list[Vectors] = []
        for more in self.embedder.stream(self._read(texts, waiting), read):
            rows.append(more)
            counts.truncated = already_truncated + read.truncated
            num_rows = sum(map(len, rows))
            if waiting and count_rows(waiting[0]) <= num_rows:
                vectors = np.concatenate(rows)
                start = 0
                while waiting and count_rows(waiting[0]) <= num_rows - start:
                    candidates = waiting.popleft()
                    own = vectors[start : start + len(candidates)]
                    yield self._summarize(candidates, own, counts)
                    start += count_rows(candidates)
                rows = [vectors[start:]]

    def _read(self, texts: Iterable[str], waiting: deque[Candidates]) -> Iterator[str]:
        """Yield the sentences of all texts, and queue each text's candidates in `waiting`."""
        for text in check_each(texts):
            candidates = Candidates.find(text, self.settings.language or DEFAULT_LANGUAGE)
            waiting.append(candidates)
            yield from candidates.sentences or [""]

    def _summarize(
        self, candidates: Candidates, vectors: Vectors, counts: SummaryCounts
    ) -> ExtractiveSummary:
        directions = normalize(vectors)
        relevance = find_centrality(directions)
        settings = self.settings
        diversity = DEFAULT_DIVERSITY if settings.diversity is None else settings.diversity
        scores = (1.0 - diversity) * add_position(relevance, settings.position)
        redundancy = SameDirection(directions, diversity)
        summary = compose(candidates, relevance, scores, redundancy, settings)
        counts.add_summary(summary)
        return summary


def count_rows(candidates: Candidates) -> int:
    """Return the number of vectors of a text; one without sentences has an unused vector."""
    return max(1, len(candidates))


def normalize(vectors: Vectors) -> Vectors:
    """Scale vectors to length 1; zero vectors stay zero."""
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    if not np.isfinite(norms).all():
        raise NonFiniteError(
            "the model gives vectors that aren't finite; see what `bertkit inspect` says of it"
        )
    scales = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > LEAST_NORM)
    directions: Vectors = vectors * scales.astype(np.float32)[:, None]
    return directions


def find_centrality(directions: Vectors) -> Numbers:
    """Return each sentence's cosine to the mean; it ranks like the mean cosine to all sentences.

    Args:
        directions: `[sentences, features]`, rows of length 1.
    """
    center = directions.sum(axis=0, dtype=np.float64)
    length = np.sqrt((center * center).sum())
    if length <= LEAST_NORM:
        return np.zeros(len(directions))
    centrality: Numbers = directions @ (center / length)
    return centrality
