"""Functions of models that predict or write words: one text gives one result, a list a list."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import GenericAlias
from typing import Any, Protocol, TypeVar, cast, get_args, overload

from pydantic import SkipValidation

from bertkit.api.inputs import SeveralTexts, take_documents, take_texts
from bertkit.api.kept import LAST_LOADED, take_object
from bertkit.api.settings import AnyCall, Call, Keywords, TextsCall, takes, takes_any
from bertkit.base.settings import Settings, select
from bertkit.data.tables.settings import TableSettings
from bertkit.decoders.decoding.settings import DecodingOverrides
from bertkit.decoders.generation.extractive import CentralSummarizer, ExtractiveSummary
from bertkit.decoders.generation.generator import ContinuedText, Generator
from bertkit.decoders.generation.seq2seq_generator import GeneratedText, Translator
from bertkit.decoders.generation.settings import GeneratorSettings, SummarySettings
from bertkit.decoders.generation.summarizer import load_summarizer
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.fill_mask import FilledText, FillMask
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.pipeline import Pipeline
from bertkit.inference.settings import EngineSettings, FillOptions, LoadingSettings
from bertkit.inference.text_scorer import TextScore, TextScorer

AnyPipeline = TypeVar("AnyPipeline", bound=Pipeline[Any, Any])
Result = TypeVar("Result")


class OfTexts(Protocol[Keywords, Result]):
    """A function of one text, which gives its result, or of several, which gives a list."""

    @overload
    def __call__(
        self, texts: str, /, *arguments: Keywords.args, **values: Keywords.kwargs
    ) -> Result: ...

    @overload
    def __call__(
        self, texts: SeveralTexts, /, *arguments: Keywords.args, **values: Keywords.kwargs
    ) -> list[Result]: ...


def takes_texts(
    kind: Callable[Keywords, AnyCall],
    read: Callable[[str | SeveralTexts, TableSettings], list[str]] = take_texts,
) -> Callable[[Callable[[AnyCall], Pipeline[str, Result]]], OfTexts[Keywords, Result]]:
    """Apply the pipeline that a function prepares for a call to one text or several."""

    def decorate(prepare: Callable[[AnyCall], Pipeline[str, Result]]) -> OfTexts[Keywords, Result]:
        @wraps(prepare)
        def apply(call: AnyCall, texts: str | SeveralTexts) -> Result | list[Result]:
            pipeline = prepare(call)
            given = read(texts, select(TableSettings, call))
            return pipeline(given[0]) if isinstance(texts, str) else pipeline(given)

        _, result = get_args(prepare.__annotations__["return"])
        shown = {"texts": str | SeveralTexts, "return": result | GenericAlias(list, result)}
        apply.__annotations__ = prepare.__annotations__ | shown
        return cast("OfTexts[Keywords, Result]", takes_any(cast("type[AnyCall]", kind))(apply))

    return decorate


class FillMaskCall(FillOptions, EngineSettings, TextsCall):
    """The keyword arguments of `fill_mask`."""

    model: SkipValidation[str | Path | FillMask | None] = None


@takes_texts(FillMaskCall)
def fill_mask(call: FillMaskCall) -> Pipeline[str, FilledText]:
    """Predict the most probable words for each [MASK] of texts.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `FillMask`; by default the model that comes with bertkit.
        text_column: column of the texts, if they are rows or a file has several.

    Further keyword arguments: fields of `FillOptions` (`top_k`, `targets`) and `EngineSettings`.

    Returns:
        A `FilledText` with `blanks` and `filled`; for several texts, a list.

    Raises:
        BertkitError: as in `FillMask.load` and `FillMask.__call__`.

    Examples:
        >>> bertkit.fill_mask("The doctor ran to see [MASK] patient.").filled
        'The doctor ran to see the patient.'
    """
    return _prepare(FillMask, call.model, call, FillOptions)


class NextSentenceCall(EngineSettings, Call):
    """The keyword arguments of `next_sentence`."""

    model: SkipValidation[str | Path | NextSentence | None] = None


@takes(NextSentenceCall)
def next_sentence(call: NextSentenceCall, first: str, second: str) -> float:
    """Compute the probability that the second text follows the first.

    Args:
        first: a text.
        second: another.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `NextSentence`; by default the model that comes with bertkit.

    Further keyword arguments: fields of `EngineSettings`.

    Raises:
        BertkitError: as in `NextSentence.load` and `NextSentence.__call__`.

    Examples:
        >>> 0 < bertkit.next_sentence("She opened the door.", "The room was dark.") < 1
        True
    """
    return _prepare(NextSentence, call.model, call)((first, second))


class ScoreCall(EngineSettings, TextsCall):
    """The keyword arguments of `score`."""

    model: SkipValidation[str | Path | TextScorer | None] = None


@takes_texts(ScoreCall)
def score(call: ScoreCall) -> Pipeline[str, TextScore]:
    """Score how likely a language model finds texts.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `TextScorer`; by default the model that comes with bertkit.
        text_column: column of the texts, if they are rows or a file has several.

    Further keyword arguments: fields of `EngineSettings`.

    Returns:
        A `TextScore` with `log_probability` and `perplexity`; for several texts, a list.

    Raises:
        BertkitError: as in `TextScorer.load` and `TextScorer.stream`.

    Examples:
        >>> right, wrong = bertkit.score(["The cats are asleep.", "The cats is asleep."])
        >>> right.log_probability > wrong.log_probability
        True
    """
    return _prepare(TextScorer, call.model, call)


class GenerateCall(GeneratorSettings, LoadingSettings, TextsCall):
    """The keyword arguments of `generate`."""

    model: SkipValidation[str | Path | Generator]


@takes_texts(GenerateCall)
def generate(call: GenerateCall) -> Pipeline[str, ContinuedText]:
    """Continue texts with a left-to-right model.

    Args:
        texts: one text, which may be empty; or a list of texts, a data frame, or the `Path` of a
            file.
        model: a run of `bertkit pretrain` with objective causal, its model folder, the id of such
            a model of the Hub, or a `Generator`.
        text_column: column of the texts, if they are rows or a file has several.

    Further keyword arguments: fields of `GeneratorSettings` and `LoadingSettings`.

    Returns:
        A `ContinuedText` with `text` and `answers`; for several texts, a list.

    Raises:
        BertkitError: as in `Generator.load` and `Generator.stream`.

    Examples:
        >>> bertkit.generate("The captain looked at", model="gpt/").text  # doctest: +SKIP
        'The captain looked at the sea.'
    """
    return _prepare(Generator, call.model, call, GeneratorSettings)


class TranslateCall(DecodingOverrides, TableSettings, LoadingSettings, Call):
    """The keyword arguments of `translate`."""

    model: SkipValidation[str | Path | Translator]


@takes_texts(TranslateCall)
def translate(call: TranslateCall) -> Pipeline[str, GeneratedText]:
    """Translate texts with a model of `bertkit.finetune("translate", …)`.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        model: the model's folder, the id of such a model of the Hub, or a `Translator`.

    Further keyword arguments: fields of `LoadingSettings`, of `TableSettings`, which say how to
    read the texts, and decoding settings; of these, those that aren't given come from the model's
    folder.

    Returns:
        A `GeneratedText` with `text` and `score`; for several texts, a list.

    Raises:
        BertkitError: as in `Translator.load` and `Translator.stream`.

    Examples:
        >>> bertkit.translate("Zwei Hunde spielen.", model="de-en/").text  # doctest: +SKIP
        'Two dogs are playing.'
    """
    return _prepare(Translator, call.model, call, DecodingOverrides)


class SummarizeCall(SummarySettings, DecodingOverrides, TableSettings, EmbedderSettings, Call):
    """The keyword arguments of `summarize`."""

    model: SkipValidation[str | Path | None] = None


@takes_texts(SummarizeCall, take_documents)
def summarize(call: SummarizeCall) -> Pipeline[str, ExtractiveSummary | GeneratedText]:
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
        >>> bertkit.summarize(text, sentences=1).text
        'My cat sleeps in the sun all day.'
    """
    embedding = select(EmbedderSettings, call)
    folder = CentralSummarizer.find(call.model, embedding.revision).path
    embedding = embedding.model_copy(update={"revision": None})
    options = select(SummarySettings, call), select(DecodingOverrides, call)
    summarizer: Pipeline[str, Any]
    summarizer = LAST_LOADED.take(load_summarizer, [folder], embedding, *options)
    return summarizer


def _prepare(
    kind: type[AnyPipeline],
    model: str | Path | AnyPipeline | None,
    call: Call,
    options_kind: type[Settings] = Settings,
) -> AnyPipeline:
    """Load a pipeline, or take that of the last call, with the settings of a call."""
    pipeline = take_object(kind, model, select(kind.loading_kind, call))
    return pipeline.with_options(select(options_kind, call))
