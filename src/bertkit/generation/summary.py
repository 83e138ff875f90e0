"""Extractive summaries and their statistics, independent of how sentences are scored."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertkit.data.sentence_spans import Candidates
from bertkit.generation.summary_settings import DEFAULT_SENTENCES, MAX_SENTENCES, SummarySettings
from bertkit.metrics.words import split_words
from bertkit.reports.notebook import Row, Tabular
from bertkit.tasks.extract.choosing import Numbers, Redundancy, Room, choose_sentences


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
