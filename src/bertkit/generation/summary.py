"""What an extractive summary is, whatever chose its sentences."""

from dataclasses import dataclass

import numpy as np

from bertkit.data.sentence_spans import Candidates
from bertkit.generation.summary_settings import DEFAULT_SENTENCES, MAX_SENTENCES, SummarySettings
from bertkit.metrics.words import split_words
from bertkit.tasks.extract.choosing import Numbers, Redundancy, Room, choose_sentences


@dataclass(frozen=True)
class SummarySentence:
    """A sentence of a summary, and why it is there.

    Attributes:
        text: the sentence, in one line.
        number: which sentence of its text it is, from 1.
        start: its first character in the text, from 0.
        stop: the one behind its last.
        rank: when it was taken: 1 for the first.
        score: by which it was taken then: its relevance, less what it repeats.
        relevance: how much it says of the text by itself: its cosine to the mean of all sentences,
            or the trained model's probability.
        similarity: the highest cosine to a sentence that was taken before; 0 for the first, and
            where a trained model chose.
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
class ExtractiveSummary:
    """Sentences of a text that say the most of it.

    Attributes:
        sentences: in the order of the text.
        num_sentences: of the text, those that can't stand in a summary included.
        num_candidates: sentences that it was chosen from.
        is_limited: whether it would have more sentences, if any summary might.
        is_short: whether it has fewer sentences than asked for, since the others repeat one.
    """

    sentences: tuple[SummarySentence, ...]
    num_sentences: int
    num_candidates: int
    is_limited: bool = False
    is_short: bool = False

    @property
    def text(self) -> str:
        """The sentences as running text; empty where a text has none."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def is_whole(self) -> bool:
        """Whether all sentences that could be taken were."""
        return len(self.sentences) == self.num_candidates


@dataclass
class SummaryCounts:
    """What was met among texts that were summarized.

    Attributes:
        texts: all of them.
        empty: texts without a sentence that has letters; their summaries are empty.
        whole: texts that have no more sentences than were asked for.
        short: texts of which no more sentences were left that don't repeat one.
        limited: texts whose summary would have had more sentences than any may have.
        truncated: sentences whose end wasn't read, being longer than the model takes; of a trained
            model, texts with such sentences.
    """

    texts: int = 0
    empty: int = 0
    whole: int = 0
    short: int = 0
    limited: int = 0
    truncated: int = 0

    def add_summary(self, summary: ExtractiveSummary) -> None:
        """Count a text that was summarized."""
        self.texts += 1
        self.empty += not summary.num_candidates
        self.whole += summary.is_whole and summary.num_candidates > 0
        self.short += summary.is_short
        self.limited += summary.is_limited


def count_wanted(settings: SummarySettings, num_candidates: int) -> int:
    """How many sentences are asked for, before any limit; of words, as many as there are."""
    if settings.words is not None:
        return num_candidates
    if settings.share is not None:
        return max(1, round(settings.share * num_candidates))
    return settings.sentences or DEFAULT_SENTENCES


def add_position(relevance: Numbers, weight: float) -> Numbers:
    """Relevance, and what it counts that a sentence stands early: from 1 for the first to 0."""
    return (1.0 - weight) * relevance + weight * np.linspace(1.0, 0.0, len(relevance))


def compose(
    candidates: Candidates,
    relevance: Numbers,
    scores: Numbers,
    redundancy: Redundancy,
    settings: SummarySettings,
) -> ExtractiveSummary:
    """Choose sentences.

    Args:
        candidates: what there is.
        relevance: how much each says.
        scores: by which they are chosen, what they repeat being taken off.
        redundancy: what they repeat.
        settings: how many are taken.
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
