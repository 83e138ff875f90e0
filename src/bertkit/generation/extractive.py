"""Extractive summaries with any encoder, without training: the sentences closest to the centroid.

A sentence is relevant if its vector is similar to those of all others. Its mean cosine to them is,
up to scale, its cosine to their mean, so no similarity matrix is needed: memory and time grow with
the number of sentences, not with its square.

Source: Radev et al. 2004, "Centroid-based summarization of multiple documents", for the centroid;
Carbonell and Goldstein 1998 for redundancy (`tasks/extract/choosing.py`).
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from bertkit.base.errors import NonFiniteError
from bertkit.data.sentence_spans import Candidates
from bertkit.embeddings.embedder import Embedder, Vectors
from bertkit.embeddings.settings import EmbedderSettings
from bertkit.embeddings.similarity import LEAST_NORM
from bertkit.generation.summary import ExtractiveSummary, SummaryCounts, add_position, compose
from bertkit.generation.summary_settings import DEFAULT_DIVERSITY, DEFAULT_LANGUAGE, SummarySettings
from bertkit.inference.stream import check_each
from bertkit.inference.text_encoder import TextCounts
from bertkit.tasks.extract.choosing import Numbers, SameDirection


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
