"""Extractive summaries with a model that was trained on reference summaries."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from bertkit.base.errors import SettingsError
from bertkit.base.members import find_member, has_member
from bertkit.base.settings import Settings
from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.generation.extractive import (
    CentralSummarizer,
    ExtractiveSummary,
    SummaryCounts,
    add_position,
    compose,
)
from bertkit.inference.generation.seq2seq_generator import Seq2SeqGenerator
from bertkit.inference.generation.settings import DEFAULT_LANGUAGE, KindName, SummarySettings
from bertkit.inference.predictor import PredictionCounts, Predictor
from bertkit.inference.settings import EngineName, PrecisionName
from bertkit.inference.stream import check_each
from bertkit.models.open_model import OpenModel
from bertkit.tasks.extract.choosing import Extraction, SameRuns
from bertkit.tasks.extract.task import Extract, ExtractExample, make_example
from bertkit.tasks.saved import SavedTask
from bertkit.tokenization.words import split_words


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


class AbstractiveSummarizer(Seq2SeqGenerator):
    """Writes abstractive summaries with a model of `bertkit finetune summarize`."""

    kind: ClassVar[KindName | None] = "summarize"


Summarizer: TypeAlias = CentralSummarizer | TrainedSummarizer | AbstractiveSummarizer


def load_summarizer(
    path: str | Path,
    settings: SummarySettings | None = None,
    embedding: EmbedderSettings | None = None,
    *,
    device: str = "auto",
    revision: str | None = None,
) -> Summarizer:
    """Load a summarizer: abstractive, trained extractive, or extractive with any encoder.

    Args:
        path: a model folder, a run of `bertkit pretrain`, or the id of a model of the Hub.
        settings: summary length and how sentences are selected; for extractive models only.
        embedding: how sentences are embedded; for encoders only.
        device: auto, cpu, cuda or cuda:N.
        revision: a branch, tag or commit of a model of the Hub.

    Raises:
        SettingsError: a setting doesn't apply to this kind of model.
        BertkitError: the model can't be loaded.
    """
    opened = OpenModel.open(path, revision=revision)
    folder = opened.path
    settings, embedding = settings or SummarySettings(), embedding or EmbedderSettings()
    if opened.is_encoder_decoder:
        _refuse(settings, f"{folder} generates summaries, so it takes no")
        others = embedding.model_copy(update={"precision": "auto"})
        _refuse(others, f"{folder} doesn't compute sentence embeddings, so it takes no")
        return AbstractiveSummarizer.load(folder, device=device, precision=embedding.precision)
    if is_extractor(folder):
        others = embedding.model_copy(update={"engine": "auto", "precision": "auto"})
        _refuse(others, f"{folder} doesn't compute sentence embeddings, so it takes no")
        return TrainedSummarizer.load(
            folder,
            settings,
            device=device,
            engine=embedding.engine,
            precision=embedding.precision,
        )
    return CentralSummarizer.load(folder, settings, embedding, device=device)


def is_extractor(folder: Path) -> bool:
    """Whether `bertkit finetune extract` wrote this folder."""
    if not has_member(folder, TASK_FILE):
        return False
    return SavedTask.load(find_member(folder, TASK_FILE)).task == Extract.name


def _refuse(settings: Settings, words: str) -> None:
    """Raise SettingsError if any setting differs from its default."""
    usual = type(settings)()
    given = [
        name
        for name in type(settings).model_fields
        if getattr(settings, name) != getattr(usual, name)
    ]
    if given:
        raise SettingsError(f"{words} {', '.join(given)}; leave that out")
