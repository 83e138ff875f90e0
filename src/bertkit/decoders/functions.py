"""Functions of `import bertkit` that write texts, or train a model that does."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from bertkit.api.inputs import SeveralTexts, choose_output, take_texts
from bertkit.api.language import apply
from bertkit.api.settings import build, check_names, takes
from bertkit.api.training import Texts
from bertkit.data.input_files import name_input
from bertkit.data.tables.rows import Table, name_files
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.texts import open_texts
from bertkit.decoders.decoding.settings import DecodingOverrides
from bertkit.decoders.generation.abstractive import AbstractiveSummarizer
from bertkit.decoders.generation.extractive import CentralSummarizer, ExtractiveSummary
from bertkit.decoders.generation.generator import ContinuedText, Generator
from bertkit.decoders.generation.seq2seq_generator import (
    GeneratedText,
    Seq2SeqGenerator,
    Translator,
)
from bertkit.decoders.generation.settings import GeneratorSettings, SummarySettings
from bertkit.decoders.generation.summarizer import load_summarizer
from bertkit.decoders.seq2seq.examples import PairFiles, Pairs
from bertkit.decoders.seq2seq.run import train_seq2seq
from bertkit.decoders.seq2seq.settings import KINDS
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.kept import LAST_LOADED
from bertkit.inference.pipeline import Pipeline
from bertkit.inference.settings import LoadingSettings

if TYPE_CHECKING:
    from bertkit.decoders.keywords import GenerateKeywords, SummarizeKeywords, TranslateKeywords

Summary = ExtractiveSummary | GeneratedText
GENERATORS: Mapping[str, type[Seq2SeqGenerator]] = {
    "translate": Translator,
    "summarize": AbstractiveSummarizer,
}


@overload
def generate(
    texts: str, *, model: str | Path | Generator, **settings: "Unpack[GenerateKeywords]"
) -> ContinuedText: ...


@overload
def generate(
    texts: SeveralTexts, *, model: str | Path | Generator, **settings: "Unpack[GenerateKeywords]"
) -> list[ContinuedText]: ...


@takes(GeneratorSettings, LoadingSettings, TableSettings)
def generate(
    texts: str | SeveralTexts,
    *,
    model: str | Path | Generator,
    **settings: "Unpack[GenerateKeywords]",
) -> ContinuedText | list[ContinuedText]:
    """Continue texts with a left-to-right model.

    Args:
        texts: one text, which may be empty; or a list of texts, a data frame, or the `Path` of a
            file.
        model: a run of `bertkit pretrain` with objective causal, its model folder, the id of such
            a model of the Hub, or a `Generator`.

    Further keyword arguments: fields of `GeneratorSettings`, of `LoadingSettings`, and of
    `TableSettings`, which say how to read the texts.

    Returns:
        A `ContinuedText` with `text` and `answers`; for several texts, a list.

    Raises:
        BertkitError: as in `Generator.load` and `Generator.stream`.

    Examples:
        >>> bertkit.generate("The captain looked at", model="gpt/").text  # doctest: +SKIP
        'The captain looked at the sea.'
    """
    options, reading = build(GeneratorSettings, settings), build(TableSettings, settings)
    continue_text = Generator.take(model, build(LoadingSettings, settings)).with_options(options)
    return apply(continue_text, texts, reading)


@overload
def translate(
    texts: str, *, model: str | Path | Translator, **settings: "Unpack[TranslateKeywords]"
) -> GeneratedText: ...


@overload
def translate(
    texts: SeveralTexts, *, model: str | Path | Translator, **settings: "Unpack[TranslateKeywords]"
) -> list[GeneratedText]: ...


@takes(DecodingOverrides, LoadingSettings, TableSettings)
def translate(
    texts: str | SeveralTexts,
    *,
    model: str | Path | Translator,
    **settings: "Unpack[TranslateKeywords]",
) -> GeneratedText | list[GeneratedText]:
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
    options, reading = build(DecodingOverrides, settings), build(TableSettings, settings)
    translator = Translator.take(model, build(LoadingSettings, settings)).with_options(options)
    return apply(translator, texts, reading)


@overload
def summarize(
    texts: str, *, model: str | Path | None = None, **settings: "Unpack[SummarizeKeywords]"
) -> Summary: ...


@overload
def summarize(
    texts: SeveralTexts, *, model: str | Path | None = None, **settings: "Unpack[SummarizeKeywords]"
) -> list[Summary]: ...


@takes(SummarySettings, DecodingOverrides, EmbedderSettings, TableSettings)
def summarize(
    texts: str | SeveralTexts,
    *,
    model: str | Path | None = None,
    **settings: "Unpack[SummarizeKeywords]",
) -> Summary | list[Summary]:
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


def finetune_pairs(
    task: str, train: Texts, dev: Texts | None, output: str | Path | None, values: Mapping[str, Any]
) -> Seq2SeqGenerator:
    """Train a model that writes, as `bertkit.finetune` for such a task, and load it."""
    kind = KINDS[task].settings
    check_names(values, kind.model_fields, "finetune")
    settings, place = build(kind, values), choose_output(output, task)
    pairs = PairFiles(_take_pairs(train), None if dev is None else _take_pairs(dev))
    train_seq2seq(pairs, place, settings)
    return GENERATORS[task].load(place, device=settings.device)


def _take_pairs(given: Texts) -> Pairs:
    """Return the files of pairs, or rows that can be read more than once."""
    if isinstance(given, str | Path):
        return (Path(name_input(given)),)
    if isinstance(given, list | tuple):
        names = [one for one in given if isinstance(one, str | Path)]
        if names and len(names) == len(given):
            return tuple(Path(name_input(name)) for name in names)
    return list(given) if isinstance(given, tuple | Iterator) else cast("Table", given)
