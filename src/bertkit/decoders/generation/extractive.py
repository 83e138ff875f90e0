"""Extractive summaries, their statistics, and the summarizer that needs no training."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import ClassVar, Self

import numpy as np
from pydantic import JsonValue

from bertkit.base.errors import NonFiniteError
from bertkit.decoders.generation.sentence_selection import Numbers, SummaryLimits, select_sentences
from bertkit.decoders.generation.sentences import Candidates
from bertkit.decoders.generation.settings import MAX_SENTENCES, SummarySettings
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.embeddings.similarity import LEAST_NORM
from bertkit.inference.embeddings.transformer import Vectors
from bertkit.inference.pipeline import NamedInput, Pipeline
from bertkit.inference.stream import InputCounts, TextCounts
from bertkit.models.open_model import OpenModel
from bertkit.reports.notebook import Row, Tabular
from bertkit.tokenization.words import split_words


@dataclass(frozen=True)
class SummarySentence(Tabular):
    """A sentence of a summary, with the scores that led to its selection."""

    text: str  # on one line
    number: int  # its position among the text's sentences, from 1
    start: int  # offset of its first character in the text, from 0
    stop: int  # offset after its last character
    rank: int  # the order of selection, from 1
    score: float  # relevance minus redundancy when it was selected
    relevance: float  # its cosine to the mean of all
    similarity: float = 0.0  # highest cosine to one selected earlier; 0 if first
    similar_to: int | None = None  # that sentence's number


@dataclass(frozen=True)
class ExtractiveSummary(Tabular):
    """The most relevant sentences of a text."""

    sentences: tuple[SummarySentence, ...]  # in text order
    num_sentences: int  # of the text, including those that can't be selected
    num_candidates: int  # sentences that could be selected
    is_limited: bool = False  # whether `MAX_SENTENCES` cut the summary short

    @property
    def text(self) -> str:
        """The sentences joined by spaces; empty if there are none."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def is_whole(self) -> bool:
        """Whether every candidate was selected."""
        return len(self.sentences) == self.num_candidates

    def to_json(self) -> dict[str, JsonValue]:
        """Return the summary and the other fields, with its sentences."""
        return {"text": self.text, **asdict(self)}

    def as_row(self) -> Row:
        """Return the summary and the other fields."""
        return {"text": self.text, **super().as_row()}

    def as_rows(self) -> Sequence[Row]:
        """Return a row for each sentence."""
        return [sentence.as_row() for sentence in self.sentences]


@dataclass
class SummaryCounts(InputCounts):
    """Statistics of the summarized texts."""

    texts: int = 0
    empty: int = 0  # without a candidate sentence; their summaries are empty
    whole: int = 0  # of which every candidate was selected
    limited: int = 0  # cut at `MAX_SENTENCES`
    truncated_sentences: int = 0  # cut at the model's maximum length
    text_tokens: int = 0
    unknown_tokens: int = 0  # of these, [UNK]


def summarize_vectors(
    candidates: Candidates, vectors: Vectors, settings: SummarySettings
) -> ExtractiveSummary:
    """Summarize a text, given the vectors of its sentences."""
    directions = normalize(vectors)
    relevance = find_centrality(directions)
    word_counts = [len(split_words(sentence)) for sentence in candidates.sentences]
    length = settings.parse_length()
    wanted = length.sentences or len(candidates)  # before limits
    if length.share is not None:
        wanted = max(1, round(length.share * len(candidates)))
    limits = SummaryLimits(min(wanted, MAX_SENTENCES), length.words)
    taken = select_sentences(relevance, directions, settings.diversity, word_counts, limits)
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
    )


@dataclass(frozen=True)
class CentralSummarizer(Pipeline[str, ExtractiveSummary]):
    """Summarizes texts by their most central sentences, with any encoder.

    A call with a text returns an `ExtractiveSummary`; a call with a list, a list. Options are
    fields of `SummarySettings`.

    Examples:
        >>> summarize = CentralSummarizer.load("all-MiniLM-L6-v2/")  # doctest: +SKIP
        >>> summarize(open("article.txt").read(), length=2).text  # doctest: +SKIP
        'A storm closed the harbour on Monday. Two ships are still missing.'

    Attributes:
        embedder: computes the sentence vectors.
        options: summary length and how sentences are selected.
    """

    embedder: Embedder
    options: SummarySettings = field(default_factory=SummarySettings)

    counts_kind: ClassVar[type[SummaryCounts]] = SummaryCounts
    bundled = "vectors"
    loading_kind = EmbedderSettings
    most_tokens = sys.maxsize  # the whole text

    @classmethod
    def build(cls, opened: OpenModel, loading: EmbedderSettings) -> Self:
        """Load any encoder, as an embedder of sentences."""
        return cls(Embedder.build(opened, loading))

    def encode_window(self, inputs: list[NamedInput]) -> list[Candidates]:
        """Split texts into sentences."""
        return [Candidates.find(named.value, self.options.language) for named in inputs]

    def compute_window(
        self, encoded: list[Candidates]
    ) -> tuple[list[ExtractiveSummary], TextCounts]:
        """Embed all sentences, and select those of each text."""
        counts, sentences = TextCounts(), [text for each in encoded for text in each.sentences]
        windows = self.embedder.stream_windows(self.embedder.read(sentences), counts)
        vectors = np.concatenate(
            [np.empty((0, self.embedder.dimension), np.float32), *(rows for _, rows in windows)]
        )
        stops = accumulate(map(len, encoded))
        summaries = [
            summarize_vectors(candidates, vectors[stop - len(candidates) : stop], self.options)
            for candidates, stop in zip(encoded, stops, strict=True)
        ]
        return summaries, counts

    def decode_window(
        self, encoded: object, computed: tuple[list[ExtractiveSummary], TextCounts]
    ) -> list[ExtractiveSummary]:
        """Return the summaries as they are."""
        return computed[0]

    def count(
        self, encoded: object, computed: tuple[list[ExtractiveSummary], TextCounts] | None = None
    ) -> SummaryCounts:
        """Return the statistics of some texts."""
        summaries, read = computed or ([], TextCounts())
        return SummaryCounts(
            texts=len(summaries),
            empty=sum(not summary.num_candidates for summary in summaries),
            whole=sum(summary.is_whole and summary.num_candidates > 0 for summary in summaries),
            limited=sum(summary.is_limited for summary in summaries),
            truncated_sentences=read.truncated,
            text_tokens=read.text_tokens,
            unknown_tokens=read.unknown_tokens,
        )


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

    The directions are `[sentences, features]`, rows of length 1.
    """
    center = directions.sum(axis=0, dtype=np.float64)
    length = np.sqrt((center * center).sum())
    if length <= LEAST_NORM:
        return np.zeros(len(directions))
    centrality: Numbers = directions @ (center / length)
    return centrality
