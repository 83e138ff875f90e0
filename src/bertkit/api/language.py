"""Functions of models that predict or write words: one text gives one result, a list a list."""

from pathlib import Path
from typing import Any, TypeVar, overload

from bertkit.api.inputs import SeveralTexts, take_documents, take_texts
from bertkit.api.kept import LAST_LOADED, ends_in_one_line, take_object
from bertkit.api.settings import build, build_each, divide, takes_settings
from bertkit.base.settings import Settings
from bertkit.data.tables.settings import TableSettings
from bertkit.inference.decoding.settings import DecodingOverrides
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.fill_mask import FilledText, FillMask
from bertkit.inference.generation.extractive import CentralSummarizer, ExtractiveSummary
from bertkit.inference.generation.generator import ContinuedText, Generator
from bertkit.inference.generation.seq2seq_generator import GeneratedText, Translator
from bertkit.inference.generation.settings import GeneratorSettings, SummarySettings
from bertkit.inference.generation.summarizer import load_summarizer
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.pipeline import Pipeline
from bertkit.inference.settings import EngineSettings, FillOptions, LoadingSettings
from bertkit.inference.text_scorer import TextScore, TextScorer

AnyPipeline = TypeVar("AnyPipeline", bound=Pipeline[Any, Any])
Result = TypeVar("Result")


@overload
def fill_mask(texts: str) -> FilledText: ...


@overload
def fill_mask(texts: SeveralTexts) -> list[FilledText]: ...


@ends_in_one_line
@takes_settings(FillOptions, EngineSettings)
def fill_mask(
    texts: str | SeveralTexts,
    *,
    model: str | Path | FillMask | None = None,
    text_column: str | None = None,
    **settings: Any,
) -> FilledText | list[FilledText]:
    """Predict the most probable words for each [MASK] of texts.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `FillMask`; by default the model that comes with bertkit.
        text_column: column of the texts, if they are rows or a file has several.
        settings: fields of `FillOptions` (`top_k`, `targets`) and `EngineSettings`.

    Returns:
        A `FilledText` with `blanks` and `filled`; for several texts, a list.

    Raises:
        BertkitError: as in `FillMask.load` and `FillMask.__call__`.

    Examples:
        >>> bertkit.fill_mask("The doctor ran to see [MASK] patient.").filled
        'The doctor ran to see the patient.'
    """
    fill = _prepare("fill_mask", FillMask, model, settings, FillOptions)
    return _apply(fill, texts, text_column)


@ends_in_one_line
@takes_settings(EngineSettings)
def next_sentence(
    first: str, second: str, *, model: str | Path | NextSentence | None = None, **settings: Any
) -> float:
    """Compute the probability that the second text follows the first.

    Args:
        first: a text.
        second: another.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `NextSentence`; by default the model that comes with bertkit.
        settings: fields of `EngineSettings`.

    Raises:
        BertkitError: as in `NextSentence.load` and `NextSentence.__call__`.

    Examples:
        >>> 0 < bertkit.next_sentence("She opened the door.", "The room was dark.") < 1
        True
    """
    return _prepare("next_sentence", NextSentence, model, settings)((first, second))


@overload
def score(texts: str) -> TextScore: ...


@overload
def score(texts: SeveralTexts) -> list[TextScore]: ...


@ends_in_one_line
@takes_settings(EngineSettings)
def score(
    texts: str | SeveralTexts,
    *,
    model: str | Path | TextScorer | None = None,
    text_column: str | None = None,
    **settings: Any,
) -> TextScore | list[TextScore]:
    """Score how likely a language model finds texts.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `TextScorer`; by default the model that comes with bertkit.
        text_column: column of the texts, if they are rows or a file has several.
        settings: fields of `EngineSettings`.

    Returns:
        A `TextScore` with `log_probability` and `perplexity`; for several texts, a list.

    Raises:
        BertkitError: as in `TextScorer.load` and `TextScorer.stream`.

    Examples:
        >>> right, wrong = bertkit.score(["The cats are asleep.", "The cats is asleep."])
        >>> right.log_probability > wrong.log_probability
        True
    """
    return _apply(_prepare("score", TextScorer, model, settings), texts, text_column)


@overload
def generate(texts: str, *, model: str | Path | Generator, **settings: Any) -> ContinuedText: ...


@overload
def generate(
    texts: SeveralTexts, *, model: str | Path | Generator, **settings: Any
) -> list[ContinuedText]: ...


@ends_in_one_line
@takes_settings(GeneratorSettings, LoadingSettings)
def generate(
    texts: str | SeveralTexts,
    *,
    model: str | Path | Generator,
    text_column: str | None = None,
    **settings: Any,
) -> ContinuedText | list[ContinuedText]:
    """Continue texts with a left-to-right model.

    Args:
        texts: one text, which may be empty; or a list of texts, a data frame, or the `Path` of a
            file.
        model: a run of `bertkit pretrain` with objective causal, its model folder, the id of such
            a model of the Hub, or a `Generator`.
        text_column: column of the texts, if they are rows or a file has several.
        settings: fields of `GeneratorSettings` and `LoadingSettings`.

    Returns:
        A `ContinuedText` with `text` and `answers`; for several texts, a list.

    Raises:
        BertkitError: as in `Generator.load` and `Generator.stream`.

    Examples:
        >>> bertkit.generate("The captain looked at", model="gpt/").text  # doctest: +SKIP
        'The captain looked at the sea.'
    """
    write = _prepare("generate", Generator, model, settings, GeneratorSettings)
    return _apply(write, texts, text_column)


@overload
def translate(texts: str, *, model: str | Path | Translator, **settings: Any) -> GeneratedText: ...


@overload
def translate(
    texts: SeveralTexts, *, model: str | Path | Translator, **settings: Any
) -> list[GeneratedText]: ...


@ends_in_one_line
@takes_settings(TableSettings, DecodingOverrides, LoadingSettings)
def translate(
    texts: str | SeveralTexts, *, model: str | Path | Translator, **settings: Any
) -> GeneratedText | list[GeneratedText]:
    """Translate texts with a model of `bertkit.finetune("translate", …)`.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        model: the model's folder, the id of such a model of the Hub, or a `Translator`.
        settings: fields of `LoadingSettings`, of `TableSettings`, which say how to read the texts,
            and decoding settings; of these, those that aren't given come from the model's folder.

    Returns:
        A `GeneratedText` with `text` and `score`; for several texts, a list.

    Raises:
        BertkitError: as in `Translator.load` and `Translator.stream`.

    Examples:
        >>> bertkit.translate("Zwei Hunde spielen.", model="de-en/").text  # doctest: +SKIP
        'Two dogs are playing.'
    """
    values, others = divide(settings, TableSettings, Settings)
    reading = build(TableSettings, values, "translate")
    pipeline = _prepare("translate", Translator, model, others, DecodingOverrides)
    return _give(pipeline, texts, take_texts(texts, reading))


@overload
def summarize(texts: str, **settings: Any) -> ExtractiveSummary | GeneratedText: ...


@overload
def summarize(texts: SeveralTexts, **settings: Any) -> list[ExtractiveSummary | GeneratedText]: ...


@ends_in_one_line
@takes_settings(SummarySettings, TableSettings, EmbedderSettings, DecodingOverrides)
def summarize(
    texts: str | SeveralTexts, *, model: str | Path | None = None, **settings: Any
) -> ExtractiveSummary | GeneratedText | list[ExtractiveSummary | GeneratedText]:
    """Summarize texts: extract their most central sentences, or generate new ones.

    Any encoder extracts sentences, without training; a model of `bertkit.finetune("extract", …)`
    those that it learned to choose. A model of `bertkit.finetune("summarize", …)` writes.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file. A plain text
            file is one text.
        model: a model folder, a run, or the id of a model of the Hub; by default the model that
            comes with bertkit.
        settings: fields of `SummarySettings`, `EmbedderSettings` and `TableSettings`, which say how
            to read the texts, and for a model that writes decoding settings.

    Returns:
        An `ExtractiveSummary` or, of a model that writes, a `GeneratedText`; both have `text`. For
        several texts, a list.

    Raises:
        SettingsError: a setting is for another kind of model.
        BertkitError: the texts can't be read, or the model can't be loaded.

    Examples:
        >>> text = "Cats sleep all day. My cat sleeps in the sun all day. Rain fell on Monday."
        >>> bertkit.summarize(text, sentences=1).text
        'My cat sleeps in the sun all day.'
    """
    kinds = (SummarySettings, TableSettings, EmbedderSettings, DecodingOverrides)
    summary, reading, embedding, decoding = build_each("summarize", settings, *kinds)
    folder = CentralSummarizer.find(model, embedding.revision).path
    embedding = embedding.model_copy(update={"revision": None})
    summarizer: Pipeline[str, Any]
    summarizer = LAST_LOADED.take(load_summarizer, [folder], embedding, summary, decoding)
    return _give(summarizer, texts, take_documents(texts, reading))


def _prepare(
    name: str,
    kind: type[AnyPipeline],
    model: str | Path | AnyPipeline | None,
    settings: dict[str, Any],
    options_kind: type[Settings] = Settings,
) -> AnyPipeline:
    """Load a pipeline, or take that of the last call, with the settings of a function."""
    options, loading = build_each(name, settings, options_kind, kind.loading_kind)
    return take_object(kind, model, loading).with_options(options)


def _apply(
    pipeline: Pipeline[str, Result], texts: str | SeveralTexts, text_column: str | None
) -> Result | list[Result]:
    return _give(pipeline, texts, take_texts(texts, TableSettings(text_column=text_column)))


def _give(
    pipeline: Pipeline[str, Result], texts: str | SeveralTexts, given: list[str]
) -> Result | list[Result]:
    """Return the result of one text, or the list of the results of several."""
    return pipeline(given[0]) if isinstance(texts, str) else pipeline(given)
