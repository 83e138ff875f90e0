"""Extractive summaries with a model that was trained on reference summaries."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from bertkit.base.errors import SettingsError
from bertkit.generation.summary import ExtractiveSummary, SummaryCounts, add_position, compose
from bertkit.generation.summary_settings import DEFAULT_LANGUAGE, SummarySettings
from bertkit.inference.engines.names import EngineName, PrecisionName
from bertkit.inference.prediction_counts import PredictionCounts
from bertkit.inference.predictor import Predictor
from bertkit.inference.stream import check_each
from bertkit.metrics.words import split_words
from bertkit.tasks.extract.choosing import SameRuns
from bertkit.tasks.extract.examples import ExtractExample, make_example
from bertkit.tasks.extract.extraction import Extraction
from bertkit.tasks.extract.task import Extract


class Extractor(Predictor[str, ExtractExample, Extraction]):
    """Selects the sentences of a text that form its summary.

    Called with a text, it returns an `Extraction`; with a list of texts, a list.

    Examples:
        >>> extract = Extractor.load("news/")  # doctest: +SKIP
        >>> extract(article).summary  # doctest: +SKIP
        'A storm closed the harbour on Monday. Two ships are still missing.'
    """

    task_kind: ClassVar = Extract


@dataclass(frozen=True)
class TrainedSummarizer:
    """Summarizes texts with the sentences that a model of `bertkit finetune extract` selects.

    Attributes:
        extractor: the model.
        settings: the length of summaries.
    """

    extractor: Extractor
    settings: SummarySettings = field(default_factory=SummarySettings)

    @classmethod
    def load(
        cls,
        path: str | Path,
        settings: SummarySettings | None = None,
        *,
        device: str = "auto",
        revision: str | None = None,
        engine: EngineName = "auto",
        precision: PrecisionName = "auto",
    ) -> Self:
        """Load a folder of `bertkit finetune extract`.

        Args:
            path: the folder, or the id of such a model of the Hub.
            settings: the length of summaries; by default as in training.
            device: auto, cpu, cuda or cuda:N.
            revision: a branch, tag or commit of a model of the Hub.
            engine: the inference engine; auto selects the fastest one installed.
            precision: of the weights and matrix products, as in `choose_engine`.
        """
        settings = settings or SummarySettings()
        if settings.diversity is not None:
            raise SettingsError(
                "diversity is for encoders; a model of `bertkit finetune extract` never takes two"
                " sentences that share three consecutive words"
            )
        extractor = Extractor.load(
            path, device=device, revision=revision, engine=engine, precision=precision
        )
        usual = extractor.task.settings
        changes: dict[str, Any] = {"language": settings.language or usual.language}
        if not settings.has_length:
            changes["sentences"] = usual.sentences
        return cls(extractor, settings.model_copy(update=changes))

    def __call__(self, text: str) -> ExtractiveSummary:
        """Summarize a text; errors as in `stream`."""
        (summary,) = self.stream([text])
        return summary

    def stream(
        self, texts: Iterable[str], counts: SummaryCounts | None = None
    ) -> Iterator[ExtractiveSummary]:
        """Summarize any number of texts, in input order and bounded memory.

        Args:
            texts: consumed a few at a time.
            counts: updated as summaries are yielded.
        """
        counts, read = SummaryCounts() if counts is None else counts, PredictionCounts()
        already_truncated = counts.truncated
        language = self.settings.language or DEFAULT_LANGUAGE
        examples = (make_example(text, "the input", language) for text in check_each(texts))
        for example, found in self.extractor.stream_examples(examples, read):
            counts.truncated = already_truncated + read.truncated
            summary = self._summarize(example, found)
            counts.add_summary(summary)
            yield summary

    def _summarize(self, example: ExtractExample, found: Extraction) -> ExtractiveSummary:
        relevance = np.array([sentence.probability for sentence in found.sentences])
        scores = add_position(relevance, self.settings.position)
        words = [split_words(sentence.text) for sentence in found.sentences]
        redundancy = SameRuns(words)
        return compose(example.candidates, relevance, scores, redundancy, self.settings)
