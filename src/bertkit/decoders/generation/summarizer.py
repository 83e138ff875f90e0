"""Summarizers of all kinds by the model's folder; those that were trained on summaries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from bertkit.base.errors import SettingsError
from bertkit.base.members import find_member, has_member
from bertkit.base.settings import Settings
from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.decoders.generation.extractive import (
    CentralSummarizer,
    ExtractiveSummarizer,
    ExtractiveSummary,
    SummaryWindow,
    add_position,
    compose,
)
from bertkit.decoders.generation.seq2seq_generator import Seq2SeqGenerator
from bertkit.decoders.generation.settings import KindName, SummarySettings
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.engines.engine import Engine
from bertkit.inference.pipeline import NamedInput, WindowSize
from bertkit.inference.predictor import EncodedExamples, Predictor
from bertkit.inference.settings import EngineSettings, LoadingSettings
from bertkit.models.open_model import OpenModel
from bertkit.tasks.extract.choosing import Extraction, SameRuns
from bertkit.tasks.extract.task import Extract, ExtractExample
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
class TrainedSummarizer(ExtractiveSummarizer):
    """Summarizes texts with the sentences that a model of `bertkit finetune extract` selects.

    A call with a text returns an `ExtractiveSummary`; a call with a list, a list. Options are
    fields of `SummarySettings`; the length is by default as in training.

    Attributes:
        extractor: the model.
        options: the length of summaries.
    """

    extractor: Extractor
    options: SummarySettings = field(default_factory=SummarySettings)

    @property
    def engine(self) -> Engine:
        """The runtime of the model's encoder."""
        return self.extractor.engine

    @classmethod
    def build(cls, opened: OpenModel, loading: EngineSettings) -> Self:
        """Load a folder of `bertkit finetune extract`."""
        extractor = Extractor.build(opened, loading)
        usual = extractor.task.settings
        return cls(extractor, SummarySettings(language=usual.language, sentences=usual.sentences))

    def change_options(self, changes: dict[str, Any]) -> SummarySettings:
        """Return the options with some of them changed; diversity is none of them."""
        if changes.get("diversity") is not None:
            raise SettingsError(
                "diversity is for encoders; a model of `bertkit finetune extract` never takes two"
                " sentences that share three consecutive words"
            )
        return super().change_options(changes)

    def encode_window(self, inputs: list[NamedInput]) -> EncodedExamples[ExtractExample]:
        """Split texts into sentences, and encode them."""
        settings = self.extractor.task.settings.model_copy(update={"language": self.language})
        examples = [ExtractExample.from_value(each.value, each.name, settings) for each in inputs]
        return self.extractor.encode_window(examples)

    def divide(
        self, encoded: EncodedExamples[ExtractExample]
    ) -> Iterator[EncodedExamples[ExtractExample]]:
        """Divide a window as the extractor does."""
        return self.extractor.divide(encoded)

    def join_windows(
        self, windows: Sequence[EncodedExamples[ExtractExample]]
    ) -> EncodedExamples[ExtractExample]:
        """Join windows as the extractor does."""
        return self.extractor.join_windows(windows)

    def size(self, encoded: EncodedExamples[ExtractExample]) -> WindowSize:
        """Return the size of a window."""
        return self.extractor.size(encoded)

    def compute_window(self, encoded: EncodedExamples[ExtractExample]) -> SummaryWindow:
        """Select the sentences of each text."""
        found = self.extractor.decode_window(encoded, self.extractor.compute_window(encoded))
        summaries = list(map(self._summarize, encoded.examples, found))
        return SummaryWindow(summaries, self.extractor.count(encoded, None))

    def _summarize(self, example: ExtractExample, found: Extraction) -> ExtractiveSummary:
        relevance = np.array([sentence.probability for sentence in found.sentences])
        scores = add_position(relevance, self.options.position)
        words = [split_words(sentence.text) for sentence in found.sentences]
        redundancy = SameRuns(words)
        return compose(example.candidates, relevance, scores, redundancy, self.options)


class AbstractiveSummarizer(Seq2SeqGenerator):
    """Writes abstractive summaries with a model of `bertkit finetune summarize`."""

    kind: ClassVar[KindName | None] = "summarize"


Summarizer: TypeAlias = CentralSummarizer | TrainedSummarizer | AbstractiveSummarizer


def load_summarizer(
    model: str | Path | None = None,
    embedding: EmbedderSettings | None = None,
    summary: SummarySettings | None = None,
    decoding: Settings | None = None,
) -> Summarizer:
    """Load a summarizer: abstractive, trained extractive, or extractive with any encoder.

    Args:
        model: a model folder, a run of `bertkit pretrain`, or the id of a model of the Hub; by
            default the model that comes with bertkit.
        embedding: how the model is loaded, and, for encoders only, how sentences are embedded.
        summary: summary length and how sentences are selected; for extractive models only.
        decoding: `DecodingOverrides`, for abstractive models only.

    Raises:
        SettingsError: a setting doesn't apply to this kind of model.
        BertkitError: the model can't be loaded.
    """
    embedding = embedding or EmbedderSettings()
    opened = CentralSummarizer.find(model, embedding.revision)
    folder, embedding = opened.path, embedding.model_copy(update={"revision": None})
    if opened.is_encoder_decoder:
        _refuse(summary, f"{folder} generates summaries, so it takes no")
        _refuse_embedding(embedding, folder, LoadingSettings)
        return AbstractiveSummarizer.load(opened, embedding).with_options(decoding)
    writers = "only models of `bertkit finetune summarize` write"
    _refuse(decoding, f"{writers}, and {folder} extracts sentences, so it takes no")
    if is_extractor(folder):
        _refuse_embedding(embedding, folder, EngineSettings)
        return TrainedSummarizer.load(opened, embedding).with_options(summary)
    return CentralSummarizer.load(opened, embedding).with_options(summary)


def is_extractor(folder: Path) -> bool:
    """Whether `bertkit finetune extract` wrote this folder."""
    if not has_member(folder, TASK_FILE):
        return False
    return SavedTask.load(find_member(folder, TASK_FILE)).task == Extract.name


def _refuse_embedding(
    embedding: EmbedderSettings, folder: Path, loading_kind: type[LoadingSettings]
) -> None:
    """Raise SettingsError for settings of embeddings, which a model doesn't compute."""
    usual = {name: info.default for name, info in loading_kind.model_fields.items()}
    others = embedding.model_copy(update=usual)
    _refuse(others, f"{folder} doesn't compute sentence embeddings, so it takes no")


def _refuse(settings: Settings | None, words: str) -> None:
    """Raise SettingsError if any setting differs from its default."""
    if settings is None:
        return
    usual = type(settings)()
    given = [name for name, value in settings if value != getattr(usual, name)]
    if given:
        raise SettingsError(f"{words} {', '.join(given)}; leave that out")
