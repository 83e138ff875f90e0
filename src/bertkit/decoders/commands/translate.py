"""`bertkit translate`: translations of texts, or their scores beside references."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.base.errors import SettingsError, pluralize
from bertkit.base.extras import require_torch
from bertkit.base.files import check_new_file, durable_file
from bertkit.base.progress import ProgressBar, announce, show_progress
from bertkit.cli.output import format_json, print_result
from bertkit.cli.texts import TextFile, Words, legible, list_problems, open_input, open_result
from bertkit.data.problems import append_problems
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.texts import MEMORY
from bertkit.decoders.decoding.settings import DecodingOverrides
from bertkit.inference.settings import LoadingSettings
from bertkit.reports.text import format_metric

if TYPE_CHECKING:
    from bertkit.decoders.seq2seq.scoring import GeneratedTexts, Scoring

TRANSLATION_PROBLEMS = {
    "empty": "empty",
    "truncated": "truncated because they are too long",
    "unfinished": "whose translation reached the maximum length",
}


def translate(
    model: str,
    /,
    *texts: Words,
    file: TextFile = None,
    references: Path | None = None,
    target_column: str | None = None,
    output: Path | None = None,
    overwrite: bool = False,
    table: TableSettings = TableSettings(),
    decoding: DecodingOverrides = DecodingOverrides(),
    loading: LoadingSettings = LoadingSettings(),
    json: bool = False,
) -> None:
    """Translate texts with a model of `bertkit finetune translate`.

    Line n of the output belongs to text n, or to row n of the file; with --num-answers, each text
    has that many lines. Decoding settings that aren't given come from the model's folder; after
    training that is a beam search with 5 beams. --max-tokens is by default three times the tokens
    of the text and 20 more.

    **Examples**

        bertkit translate de-en/ "Ein Mann fährt Fahrrad."

        bertkit translate de-en/ --file texts.de --beams 1 --output texts.en

        bertkit translate de-en/ --file test.de --references test.en

        bertkit translate de-en/ --file t.tsv --text-column de --references en.txt

        bertkit translate de-en/ "Zwei Hunde spielen." --num-answers 3 --json

    Args:
        model: A folder of `bertkit finetune translate`, or the id of such a model of the Hub.
        texts: Texts; - alone reads standard input, one text per line.
        references: File of reference translations, row n for row n; prints BLEU and chrF with their
            signatures instead of the translations. --target-column is theirs; by default it is
            that of the texts.
        target_column: Column of the target texts.
        output: File for the translations, one line each, or with --json one object each; written
            atomically.
        overwrite: Replace an existing output.
        json: Print one JSON object per text, or one with the metrics.
    """
    require_torch("`bertkit translate`")
    given = open_input(texts, file, table)
    check_scoring(output, references, target_column, decoding)
    place_holder = open_result(
        output, "writing translations into", file, check_new_file, overwrite=overwrite
    )
    from bertkit.decoders.generation.seq2seq_generator import Translator
    from bertkit.decoders.seq2seq.scoring import (
        GeneratedTexts,
        count_texts,
        read_references,
        score_texts,
    )

    right = None
    if references is not None:
        own = {} if target_column is None else {"text_column": target_column}
        right = read_references("translate", references, table.model_copy(update=own), given)
    with place_holder as place:
        if place is not None:
            count_texts(given)  # finds unreadable rows before hours of work
        translator = Translator.load(model, loading).with_options(decoding)
        work = GeneratedTexts(translator, given)
        if right is not None:
            with show_bar(work) as progress:
                scoring = score_texts("translate", work.read(progress), right)
            print_result(scoring, describe_scores, json=json)
        else:
            write(work, place, json=json)
    if summary := describe_counts(work):
        announce(summary)


def describe_scores(scoring: "Scoring") -> str:
    """List the metrics, with their signatures."""
    lines = (
        f"{name} {format_metric(name, value)}\t{scoring.signatures.get(name, '')}".rstrip()
        for name, value in scoring.metrics.items()
    )
    return "\n".join(lines)


def check_scoring(
    output: Path | None,
    references: Path | None,
    target_column: str | None,
    decoding: DecodingOverrides,
) -> None:
    """Check that the flags of scoring fit each other."""
    if references is None:
        if target_column is not None:
            raise SettingsError("--target-column needs --references")
        return
    if output is not None:
        raise SettingsError("--references prints metrics instead of translations; remove --output")
    if (decoding.num_answers or 1) > 1:
        raise SettingsError("--references compares one translation per text; remove --num-answers")


def write(work: "GeneratedTexts", output: Path | None, *, json: bool) -> None:
    """Print all translations, or write them to a file atomically."""
    with show_bar(work, is_printing=output is None) as progress:
        lines = format_lines(work, progress, json=json)
        if output is None:
            for line in lines:
                sys.stdout.write(line)
            return
        with durable_file(output) as stream:
            for line in lines:
                stream.write(line.encode())


def show_bar(
    work: "GeneratedTexts", *, is_printing: bool = False
) -> AbstractContextManager[ProgressBar]:
    """Show the progress through a file, unless printed translations show it."""
    is_hidden = work.texts.format == MEMORY or (is_printing and sys.stdout.isatty())
    size = work.texts.size_bytes
    return show_progress("Translating", size, is_bytes=True, is_hidden=is_hidden)


def format_lines(work: "GeneratedTexts", progress: ProgressBar, *, json: bool) -> Iterator[str]:
    """Yield `num_answers` lines for each text, the best first; empty where it has fewer."""
    for answer in work.read(progress):
        if json:
            yield format_json(answer)
        else:
            written = [one.text for one in (answer, *answer.others)]
            missing = [""] * (work.generator.options.num_answers - len(written))
            for text in written + missing:
                yield " ".join(legible(text).split()) + "\n"


def describe_counts(work: "GeneratedTexts") -> str:
    """Describe the counts of a file, and the problems of texts; may be empty."""
    counts = work.counts
    undecodable = work.texts.num_undecodable
    problems = list_problems(counts, TRANSLATION_PROBLEMS, num_undecodable=undecodable)
    if work.texts.format == MEMORY:
        return append_problems("", problems)
    rate = counts.tokens_written / max(work.elapsed_seconds, 1e-9)
    written = f"{pluralize(counts.tokens_written, 'token')} generated, {rate:,.0f} per second"
    return append_problems(f"{counts.texts:,} translated, {written}", problems)
