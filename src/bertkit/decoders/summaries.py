"""The function of `import bertkit` that summarizes texts; only models that write need PyTorch."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from bertkit.api.inputs import SeveralTexts, take_texts
from bertkit.api.language import apply
from bertkit.api.settings import build, takes
from bertkit.data.tables.rows import name_files
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.texts import open_texts
from bertkit.decoders.decoding.settings import DecodingOverrides
from bertkit.decoders.generation.extractive import CentralSummarizer
from bertkit.decoders.generation.settings import SummarySettings
from bertkit.decoders.generation.summarizer import load_summarizer
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.kept import LAST_LOADED
from bertkit.inference.pipeline import Pipeline

if TYPE_CHECKING:
    from bertkit.decoders.generation.extractive import ExtractiveSummary
    from bertkit.decoders.generation.seq2seq_generator import GeneratedText
    from bertkit.decoders.keywords import SummarizeKeywords

    Summary = ExtractiveSummary | GeneratedText


@overload
def summarize(
    texts: str, *, model: str | Path | None = None, **settings: "Unpack[SummarizeKeywords]"
) -> "Summary": ...


@overload
def summarize(
    texts: SeveralTexts, *, model: str | Path | None = None, **settings: "Unpack[SummarizeKeywords]"
) -> "list[Summary]": ...


@takes(SummarySettings, DecodingOverrides, EmbedderSettings, TableSettings)
def summarize(
    texts: str | SeveralTexts,
    *,
    model: str | Path | None = None,
    **settings: "Unpack[SummarizeKeywords]",
) -> "Summary | list[Summary]":
    """Summarize texts: extract their most central sentences, or generate new ones.

    Any encoder extracts sentences, without training; a model of
    `bertkit.finetune("summarize", …)` writes.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file. A plain text
            file is one text.
        model: a model folder, a run, or the id of a model of the Hub; by default the model that
            comes with bertkit.

    Further keyword arguments: fields of `SummarySettings`, `EmbedderSettings` and `TableSettings`,
    which say how to read the texts, and for a model that writes decoding settings.

    Returns:
        An `ExtractiveSummary` or, of a model that writes, a `GeneratedText`; both have `text`. For
        several texts, a list.

    Raises:
        SettingsError: a setting is for another kind of model.
        BertkitError: the texts can't be read, or the model can't be loaded.

    Examples:
        >>> text = "Cats sleep all day. My cat sleeps in the sun all day. Rain fell on Monday."
        >>> bertkit.summarize(text, length=1).text
        'My cat sleeps in the sun all day.'
    """
    options = build(SummarySettings, settings), build(DecodingOverrides, settings)
    embedding, reading = build(EmbedderSettings, settings), build(TableSettings, settings)
    folder = CentralSummarizer.find(model, embedding.revision).path
    embedding = embedding.model_copy(update={"revision": None})
    summarizer: Pipeline[str, Any]
    summarizer = LAST_LOADED.take(load_summarizer, [folder], embedding, *options)
    return apply(summarizer, texts, reading, _take_documents)


def _take_documents(texts: str | SeveralTexts, reading: TableSettings) -> list[str]:
    """Return the texts as `take_texts`, but a plain text file as one."""
    names = None if isinstance(texts, str) else name_files(texts)
    if names is None:
        return take_texts(texts, reading)
    return [row.text for name in names for row in open_texts(name, reading).documents()]
