"""`bertkit finetune translate` and `bertkit finetune summarize`: training on pairs of texts."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.errors import pluralize
from bertkit.base.extras import require_torch
from bertkit.base.signals import stop_at_once
from bertkit.cli.next_step import choose_arguments, repeat_flags, suggest
from bertkit.cli.output import print_result
from bertkit.cli.predict import TRAINING, list_facts
from bertkit.cli.texts import legible
from bertkit.data.tables.settings import TableSettings
from bertkit.decoders.seq2seq.settings import Seq2SeqSettings, SummarizeSettings, TranslateSettings
from bertkit.reports.text import format_metric

if TYPE_CHECKING:
    from bertkit.decoders.seq2seq.pairs import Pair
    from bertkit.decoders.seq2seq.run import Seq2SeqResult


def finetune_translate(
    *,
    train: Annotated[list[Path], Parameter(consume_multiple=True, negative="")],
    dev: Annotated[list[Path] | None, Parameter(consume_multiple=True, negative="")] = None,
    output: Path,
    settings: Annotated[TranslateSettings, Parameter(group=TRAINING)] = TranslateSettings(),
    json: bool = False,
) -> None:
    """Train a translation model on parallel text.

    Trains an encoder and a decoder, from scratch or from an encoder's weights, and writes a folder
    with the model, a model card and a report. Without a budget it takes at most about 50 minutes,
    or as long as it takes to translate all held-out pairs. The same command resumes an interrupted
    run.

    **Examples**

        bertkit finetune translate --train train.de train.en --dev val.de val.en --output de-en/

        bertkit finetune translate --train a.tsv --source-column de --target-column en --output m/

        bertkit finetune translate --model bert/ --train train.de train.en --output warm/

    Args:
        train: Two files, line n of one belonging to line n of the other, or one with a column for
            each side; also .gz, .bz2 or .zst.
        dev: Held-out pairs, in the same format; by default, a share of the training pairs.
        output: Folder for the model.
        settings: Settings.
        json: Print the result as one JSON object.
    """
    train_pairs(train, dev, output, settings, json=json)


def finetune_summarize(
    *,
    train: Annotated[list[Path], Parameter(consume_multiple=True, negative="")],
    dev: Annotated[list[Path] | None, Parameter(consume_multiple=True, negative="")] = None,
    output: Path,
    settings: Annotated[SummarizeSettings, Parameter(group=TRAINING)] = SummarizeSettings(),
    json: bool = False,
) -> None:
    """Train a summarization model on texts with reference summaries.

    Trains an encoder and a decoder, from scratch or from an encoder's weights, and writes a folder
    with the model, a model card and a report. The same command resumes an interrupted run.
    `bertkit summarize` with any encoder extracts sentences without training.

    **Examples**

        bertkit finetune summarize --model bert/ --train articles.jsonl --output summaries/

        bertkit finetune summarize --train train.jsonl --dev dev.jsonl --output five/ --epochs 5

        bertkit finetune summarize --train a.csv --source-column article --output table/

    Args:
        train: One file with a column for each side, or two files, line n of one belonging to line
            n of the other; also .gz, .bz2 or .zst.
        dev: Held-out pairs, in the same format; by default, a share of the training pairs.
        output: Folder for the model.
        settings: Settings.
        json: Print the result as one JSON object.
    """
    train_pairs(train, dev, output, settings, json=json)


def train_pairs(
    train: Sequence[Path],
    dev: Sequence[Path] | None,
    output: Path,
    settings: Seq2SeqSettings,
    *,
    json: bool,
) -> None:
    """Train a model on pairs of texts, and print its metrics and a command that tries it."""
    require_torch(f"`bertkit finetune {settings.kind}`")
    with stop_at_once(lambda: "stopped while loading; run the same command again"):
        from bertkit.decoders.seq2seq.examples import PairFiles
        from bertkit.decoders.seq2seq.run import train_seq2seq

    files = PairFiles(tuple(train), None if dev is None else tuple(dev))
    result = train_seq2seq(files, output, settings)
    print_result(result, describe_pairs, json=json, facts=list_facts(result, "signatures"))
    given = [] if json else choose_source(train, settings, result.pairs)
    named: list[str | Path]
    named = [output, *given] if settings.kind == "translate" else [*given, "--model", output]
    suggest(settings.kind, *named, json=not given)


def describe_pairs(result: "Seq2SeqResult") -> str:
    """Describe a model that writes: its training, its metrics and the command that tries it."""
    saved = result.saved
    shown = ", ".join(
        f"{name} {format_metric(name, value)}"
        for name, value in saved.metrics.items()
        if math.isfinite(value)
    )
    line = (
        f"{result.output}: {pluralize(saved.num_steps, 'step')},"
        f" {pluralize(saved.num_epochs, 'epoch')}: {shown}"
    )
    return legible("\n".join((line, *saved.warnings)))


def choose_source(
    train: Sequence[Path], settings: Seq2SeqSettings, pairs: Sequence["Pair"]
) -> list[str]:
    """Choose what a model that writes is tried with: a source text, or their file."""
    column = settings.source_column
    if settings.kind == "translate":
        return choose_arguments([("", pair.source)] for pair in pairs)
    if len(train) > 1:
        return [str(train[0])]
    if "." in column or not settings.header:  # `bertkit summarize` doesn't read such a table
        return []
    reading = repeat_flags(settings, TableSettings)
    return [str(train[0]), "--text-column", column, *reading]
