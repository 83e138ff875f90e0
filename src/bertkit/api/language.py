"""Functions of models that predict or write words: one text gives one result, a list a list."""

from pathlib import Path
from typing import Any, TypeVar, overload

from bertkit.api.inputs import SeveralTexts, take_documents, take_texts
from bertkit.api.kept import ends_in_one_line, take_model, take_object
from bertkit.api.settings import build, divide, takes_settings
from bertkit.base.errors import SettingsError
from bertkit.checkpoints.hub import find_bundled
from bertkit.data.tables.settings import TableSettings
from bertkit.inference.decoding.settings import DecodingOverrides, check_seed
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.fill_mask import FilledText, FillMask
from bertkit.inference.generation.extractive import ExtractiveSummary
from bertkit.inference.generation.generator import ContinuedText, Generator
from bertkit.inference.generation.seq2seq_generator import GeneratedText
from bertkit.inference.generation.settings import GeneratorSettings, SummarySettings
from bertkit.inference.generation.summarizer import AbstractiveSummarizer, load_summarizer
from bertkit.inference.generation.translator import Translator
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.settings import EngineName, PrecisionName
from bertkit.inference.text_scorer import TextScore, TextScorer
from bertkit.reports.notebook import ResultList

Loaded = TypeVar("Loaded")


@overload
def fill_mask(texts: str) -> FilledText: ...


@overload
def fill_mask(texts: SeveralTexts) -> list[FilledText]: ...


@ends_in_one_line
def fill_mask(
    texts: str | SeveralTexts,
    *,
    model: str | Path | FillMask | None = None,
    top_k: int = 5,
    targets: list[str] | None = None,
    text_column: str | None = None,
    device: str = "auto",
    revision: str | None = None,
    engine: EngineName = "auto",
    precision: PrecisionName = "auto",
) -> FilledText | list[FilledText]:
    """Predict the most probable words for each [MASK] of texts.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `FillMask`; by default the model that comes with bertkit.
        top_k: candidates per [MASK].
        targets: consider only these words.
        text_column: column of the texts, if they are rows or a file has several.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
        engine: the inference engine; auto takes the fastest that is installed.
        precision: of matrix products.

    Returns:
        A `FilledText` with `blanks` and `filled`; for several texts, a list.

    Raises:
        BertkitError: as in `FillMask.load` and `FillMask.__call__`.

    Examples:
        >>> bertkit.fill_mask("The doctor ran to see [MASK] patient.").filled
        'The doctor ran to see the patient.'
    """
    options = {"device": device, "revision": revision, "engine": engine, "precision": precision}
    fill = _take(FillMask, model, **options)
    found = fill(
        take_texts(texts, TableSettings(text_column=text_column)), top_k=top_k, targets=targets
    )
    return found[0] if isinstance(texts, str) else found


@ends_in_one_line
def next_sentence(
    first: str,
    second: str,
    *,
    model: str | Path | NextSentence | None = None,
    device: str = "auto",
    revision: str | None = None,
    engine: EngineName = "auto",
    precision: PrecisionName = "auto",
) -> float:
    """Compute the probability that the second text follows the first.

    Args:
        first: a text.
        second: another.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `NextSentence`; by default the model that comes with bertkit.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
        engine: the inference engine; auto takes the fastest that is installed.
        precision: of matrix products.

    Raises:
        BertkitError: as in `NextSentence.load` and `NextSentence.score_pairs`.

    Examples:
        >>> 0 < bertkit.next_sentence("She opened the door.", "The room was dark.") < 1
        True
    """
    options = {"device": device, "revision": revision, "engine": engine, "precision": precision}
    return _take(NextSentence, model, **options)(first, second)


@overload
def score(texts: str) -> TextScore: ...


@overload
def score(texts: SeveralTexts) -> list[TextScore]: ...


@ends_in_one_line
def score(
    texts: str | SeveralTexts,
    *,
    model: str | Path | TextScorer | None = None,
    text_column: str | None = None,
    device: str = "auto",
    revision: str | None = None,
    engine: EngineName = "auto",
    precision: PrecisionName = "auto",
) -> TextScore | list[TextScore]:
    """Score how likely a language model finds texts.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
            `TextScorer`; by default the model that comes with bertkit.
        text_column: column of the texts, if they are rows or a file has several.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
        engine: the inference engine; auto takes the fastest that is installed.
        precision: of matrix products.

    Returns:
        A `TextScore` with `log_probability` and `perplexity`; for several texts, a list.

    Raises:
        BertkitError: as in `TextScorer.load` and `TextScorer.stream`.

    Examples:
        >>> right, wrong = bertkit.score(["The cats are asleep.", "The cats is asleep."])
        >>> right.log_probability > wrong.log_probability
        True
    """
    options = {"device": device, "revision": revision, "engine": engine, "precision": precision}
    found = _take(TextScorer, model, **options)(
        take_texts(texts, TableSettings(text_column=text_column))
    )
    return found[0] if isinstance(texts, str) else found


@overload
def generate(texts: str, *, model: str | Path | Generator, **settings: Any) -> ContinuedText: ...


@overload
def generate(
    texts: SeveralTexts, *, model: str | Path | Generator, **settings: Any
) -> list[ContinuedText]: ...


@ends_in_one_line
@takes_settings(GeneratorSettings)
def generate(
    texts: str | SeveralTexts,
    *,
    model: str | Path | Generator,
    text_column: str | None = None,
    device: str = "auto",
    revision: str | None = None,
    precision: PrecisionName = "auto",
    **settings: Any,
) -> ContinuedText | list[ContinuedText]:
    """Continue texts with a left-to-right model.

    Args:
        texts: one text, which may be empty; or a list of texts, a data frame, or the `Path` of a
            file.
        model: a run of `bertkit pretrain` with objective causal, its model folder, the id of such
            a model of the Hub, or a `Generator`.
        text_column: column of the texts, if they are rows or a file has several.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
        precision: of weights and matrix products: fp32 (auto) or bf16.
        settings: fields of `GeneratorSettings`.

    Returns:
        A `ContinuedText` with `text` and `answers`; for several texts, a list.

    Raises:
        BertkitError: as in `Generator.load` and `Generator.stream`.

    Examples:
        >>> bertkit.generate("The captain looked at", model="gpt/").text  # doctest: +SKIP
        'The captain looked at the sea.'
    """
    chosen = build(GeneratorSettings, settings, "generate")
    check_seed(chosen, chosen.seed)
    writer = _take(Generator, model, device=device, revision=revision, precision=precision)
    found = writer(take_texts(texts, TableSettings(text_column=text_column)), chosen)
    return found[0] if isinstance(texts, str) else found


@overload
def translate(texts: str, *, model: str | Path | Translator, **settings: Any) -> GeneratedText: ...


@overload
def translate(
    texts: SeveralTexts, *, model: str | Path | Translator, **settings: Any
) -> list[GeneratedText]: ...


@ends_in_one_line
@takes_settings(TableSettings, DecodingOverrides)
def translate(
    texts: str | SeveralTexts,
    *,
    model: str | Path | Translator,
    device: str = "auto",
    revision: str | None = None,
    precision: PrecisionName = "auto",
    **settings: Any,
) -> GeneratedText | list[GeneratedText]:
    """Translate texts with a model of `bertkit.finetune("translate", …)`.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file.
        model: the model's folder, the id of such a model of the Hub, or a `Translator`.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
        precision: of weights and matrix products: fp32 (auto) or bf16.
        settings: fields of `TableSettings`, which say how to read the texts, and decoding
            settings; of these, those that aren't given come from the model's folder.

    Returns:
        A `GeneratedText` with `text` and `score`; for several texts, a list.

    Raises:
        BertkitError: as in `Translator.load` and `Translator.stream`.

    Examples:
        >>> bertkit.translate("Zwei Hunde spielen.", model="de-en/").text  # doctest: +SKIP
        'Two dogs are playing.'
    """
    parts = divide({"reading": TableSettings, "decoding": DecodingOverrides}, settings)
    reading = build(TableSettings, parts["reading"], "translate")
    decoding = build(DecodingOverrides, parts["decoding"], "translate")
    options = {"device": device, "revision": revision, "precision": precision}
    translator = _take(Translator, model, **options)
    found = translator(take_texts(texts, reading), translator.settings_with(decoding))
    return found[0] if isinstance(texts, str) else found


@overload
def summarize(texts: str, **settings: Any) -> ExtractiveSummary | GeneratedText: ...


@overload
def summarize(texts: SeveralTexts, **settings: Any) -> list[ExtractiveSummary | GeneratedText]: ...


@ends_in_one_line
@takes_settings(SummarySettings, TableSettings, EmbedderSettings, DecodingOverrides)
def summarize(
    texts: str | SeveralTexts,
    *,
    model: str | Path | None = None,
    device: str = "auto",
    revision: str | None = None,
    **settings: Any,
) -> ExtractiveSummary | GeneratedText | list[ExtractiveSummary | GeneratedText]:
    """Summarize texts: extract their most central sentences, or generate new ones.

    Any encoder extracts sentences, without training; a model of `bertkit.finetune("extract", …)`
    those that it learned to choose. A model of `bertkit.finetune("summarize", …)` writes.

    Args:
        texts: one text; or a list of texts, a data frame, or the `Path` of a file. A plain text
            file is one text.
        model: a model folder, a run, or the id of a model of the Hub; by default the model that
            comes with bertkit.
        device: auto, cpu, cuda or cuda:N.
        revision: branch, tag or commit of a model of the Hub.
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
    kinds = {
        "summary": SummarySettings,
        "reading": TableSettings,
        "embedding": EmbedderSettings,
        "decoding": DecodingOverrides,
    }
    parts = divide(kinds, settings)
    chosen = build(SummarySettings, parts["summary"], "summarize")
    reading = build(TableSettings, parts["reading"], "summarize")
    embedding = build(EmbedderSettings, parts["embedding"], "summarize")
    decoding = build(DecodingOverrides, parts["decoding"], "summarize")
    place = model if model is not None else find_bundled("vectors")
    summarizer = take_model(
        load_summarizer, place, chosen, embedding, revision=revision, device=device
    )
    given = take_documents(texts, reading)
    if isinstance(summarizer, AbstractiveSummarizer):
        found: list[Any] = ResultList(summarizer.stream(given, summarizer.settings_with(decoding)))
    elif decoding.model_fields_set:
        named = ", ".join(sorted(decoding.model_fields_set))
        raise SettingsError(f"{named} is for models that write summaries; this one extracts them")
    else:
        found = ResultList(summarizer.stream(given))
    return found[0] if isinstance(texts, str) else found


def _take(kind: type[Loaded], model: str | Path | Loaded | None, **options: Any) -> Loaded:
    """Return a loaded model as it is; load another, or take that of the last call."""
    return take_object(kind, find_bundled("words") if model is None else model, **options)
