"""Summarize texts with any of three kinds of models; the model folder decides which."""

from pathlib import Path
from typing import ClassVar, TypeAlias

from bertkit.base.errors import SettingsError
from bertkit.base.members import find_member, has_member
from bertkit.base.settings import Settings
from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.huggingface import is_encoder_decoder
from bertkit.embeddings.settings import EmbedderSettings
from bertkit.generation.extractive import CentralSummarizer
from bertkit.generation.seq2seq_file import KindName
from bertkit.generation.seq2seq_generator import Seq2SeqGenerator
from bertkit.generation.summary_settings import SummarySettings
from bertkit.generation.trained_summarizer import TrainedSummarizer
from bertkit.tasks.extract.task import Extract
from bertkit.tasks.saved import SavedTask


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
    folder = resolve_model(path, revision=revision)
    settings, embedding = settings or SummarySettings(), embedding or EmbedderSettings()
    if is_encoder_decoder(open_checkpoint(folder).config):
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
