"""Summarizers of both kinds by the model's folder; PyTorch is loaded for those that write."""

from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.base.errors import SettingsError
from bertkit.base.settings import Settings, name_flag
from bertkit.checkpoints.formats import describe_model
from bertkit.decoders.generation.extractive import CentralSummarizer
from bertkit.decoders.generation.settings import SummarySettings
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.settings import LoadingSettings

if TYPE_CHECKING:
    from bertkit.decoders.generation.abstractive import AbstractiveSummarizer


def load_summarizer(
    model: str | Path | None = None,
    embedding: EmbedderSettings | None = None,
    summary: SummarySettings | None = None,
    decoding: Settings | None = None,
) -> "CentralSummarizer | AbstractiveSummarizer":
    """Load a summarizer: abstractive, or extractive with any encoder.

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
    name, embedding = describe_model(opened.path), embedding.model_copy(update={"revision": None})
    if not opened.is_bert:
        _refuse(summary, f"{name} generates summaries, so it takes no")
        loading = {name: info.default for name, info in LoadingSettings.model_fields.items()}
        others = embedding.model_copy(update=loading)
        _refuse(others, f"{name} doesn't compute sentence embeddings, so it takes no")
        from bertkit.decoders.generation.abstractive import AbstractiveSummarizer

        return AbstractiveSummarizer.load(opened, embedding).with_options(decoding)
    writers = "only models of `bertkit finetune summarize` write"
    _refuse(decoding, f"{writers}, and {name} extracts sentences, so it takes no")
    return CentralSummarizer.load(opened, embedding).with_options(summary)


def _refuse(settings: Settings | None, words: str) -> None:
    """Raise SettingsError if any setting differs from its default."""
    if settings is None:
        return
    usual = type(settings)()
    given = [name_flag(name) for name, value in settings if value != getattr(usual, name)]
    if given:
        raise SettingsError(f"{words} {', '.join(given)}; leave that out")
