"""Functions of `import bertkit` that continue or translate texts, or train a model that writes."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from bertkit.api.inputs import SeveralTexts, Texts, choose_output
from bertkit.api.language import apply
from bertkit.api.settings import build, check_names, takes
from bertkit.data.input_files import name_input
from bertkit.data.tables.rows import Table
from bertkit.data.tables.settings import TableSettings
from bertkit.decoders.decoding.settings import DecodingOverrides
from bertkit.decoders.generation.abstractive import AbstractiveSummarizer
from bertkit.decoders.generation.generator import ContinuedText, Generator
from bertkit.decoders.generation.seq2seq_generator import (
    GeneratedText,
    Seq2SeqGenerator,
    Translator,
)
from bertkit.decoders.generation.settings import GeneratorSettings
from bertkit.decoders.seq2seq.examples import PairFiles, Pairs
from bertkit.decoders.seq2seq.run import train_seq2seq
from bertkit.decoders.seq2seq.settings import KINDS
from bertkit.inference.settings import LoadingSettings

if TYPE_CHECKING:
    from bertkit.decoders.keywords import GenerateKeywords, TranslateKeywords

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
