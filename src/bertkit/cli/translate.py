"""`bertkit translate`: texts in one language → texts in another."""

import json as json_module
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.files import check_new_file, durable_file
from bertkit.base.output import open_output
from bertkit.base.progress import ProgressBar, announce, show_progress
from bertkit.base.surrogates import replace_surrogates
from bertkit.base.wording import pluralize
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import Words, is_fed, legible
from bertkit.data.tables.settings import TableSettings
from bertkit.decoding.overrides import DecodingOverrides

if TYPE_CHECKING:
    from bertkit.recipes.seq2seq.generated_texts import GeneratedTexts, Scoring

STANDARD_INPUT = "-"
ODDITIES = {
    "empty": "empty, given empty translations",
    "cut": "cut, being too long",
    "unfinished": "stopped without an end",
}


def translate(
    model: str,
    /,
    *texts: Words,
    file: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    references: Path | None = None,
    reference_field: str | None = None,
    output: Path | None = None,
    overwrite: bool = False,
    table: Annotated[TableSettings, Parameter(name="*")] = TableSettings(),  # noqa: B008
    decoding: Annotated[DecodingOverrides, Parameter(name="*")] = DecodingOverrides(),  # noqa: B008
    device: str = "auto",
    revision: str | None = None,
    json: bool = False,
) -> None:
    """Translate texts with a model of `bertkit finetune translate`.

    Line n of what is written belongs to text n, or to row n of the file; with --num-answers each
    has so many lines. How the translation is searched for is as the model's folder says, but for
    the flags that are given; after training that is a beam search with 5 beams.

    **Examples**

        bertkit translate de-en/ "Ein Mann fährt Fahrrad."

        bertkit translate de-en/ --file texts.de --beams 1 --output texts.en

        bertkit translate de-en/ --file test.de --references test.en

        bertkit translate de-en/ --file t.tsv --field de --references t.tsv --reference-field en

        bertkit translate de-en/ "Zwei Hunde spielen." --num-answers 3 --json

    Args:
        model: A folder of `bertkit finetune translate`, or the id of such a model of the Hub.
        texts: Texts; - alone reads standard input, a text a line.
        file: File of texts: a text a line, JSONL, CSV, TSV or Parquet; also .gz, .bz2 or .zst.
        references: File of right translations, row n for row n; BLEU and chrF are told, with their
            signatures, in place of the translations.
        reference_field: Column, or field of JSONL, that has them; by default that of the texts.
        output: File for the translations, a line each, or with --json an object each; it is written
            whole or not at all.
        overwrite: Replace an existing output.
        table: How the file is read.
        decoding: How the translation is searched for.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print one JSON object a text, or one with the metrics.
    """
    if output is None:
        check_standard_output()
    source = find_source(texts, file)
    check_flags(output, references, overwrite=overwrite)
    check_scoring(references, reference_field, decoding)
    from bertkit.data.tables.texts import open_texts
    from bertkit.generation.translator import Translator
    from bertkit.recipes.seq2seq.generated_texts import GeneratedTexts, count_texts, read_references

    given = list(replace_surrogates(texts)) if source is None else open_texts(source, table)
    right = None
    if references is not None:
        own = {} if reference_field is None else {"field": reference_field}
        right = read_references("translate", references, table.model_copy(update=own), given)
    with hold(output, source, overwrite=overwrite) as place:
        if place is not None:
            count_texts(given)  # a row that can't be read is found before hours of writing
        translator = Translator.load(model, device=device, revision=revision)
        work = GeneratedTexts(translator, given, translator.settings_with(decoding))
        if right is not None:
            print(describe_scoring(score(work, right), json=json))
        else:
            write(work, place, json=json)
    if odd := list_warnings(work, is_file=source is not None):
        announce(odd)


def find_source(texts: Sequence[str], file: str | None) -> str | None:
    """The file to be read, - being standard input; None where texts were given.

    Raises:
        SettingsError: there are both, or standard input is one among several.
        InputError: there is neither.
    """
    if file is None and (tuple(texts) == (STANDARD_INPUT,) or (not texts and is_fed())):
        return STANDARD_INPUT
    if texts and (file is not None or STANDARD_INPUT in texts):
        raise SettingsError("give texts or a file, not both; - alone is standard input")
    if file is None and not texts:
        raise InputError("there is no text: give one, --file, or - for standard input")
    return file


def check_flags(output: Path | None, references: Path | None, *, overwrite: bool) -> None:
    """Refuse flags that contradict each other, before any work.

    Raises:
        SettingsError: they do.
    """
    if output is None and overwrite:
        raise SettingsError("--overwrite needs --output")
    if output is not None and references is not None:
        raise SettingsError(
            "--references prints metrics instead of translations; leave out --output"
        )


def hold(
    output: Path | None, source: str | None, *, overwrite: bool
) -> AbstractContextManager[Path | None]:
    """Hold the file for the translations, where there is to be one; errors as in `open_output`."""
    if output is None:
        return nullcontext()
    return open_output(
        output,
        "writing translations into",
        inputs=() if source is None else (source,),
        check=partial(check_new_file, overwrite=overwrite),
    )


def check_scoring(
    references: Path | None, reference_field: str | None, decoding: DecodingOverrides
) -> None:
    """Refuse flags that mean nothing with, or without, references.

    Raises:
        SettingsError: there are some.
    """
    if references is None and reference_field is not None:
        raise SettingsError("--reference-field needs --references")
    if references is not None and (decoding.num_answers or 1) > 1:
        raise SettingsError("--references are compared with one answer; leave out --num-answers")


def score(work: "GeneratedTexts", right: list[str]) -> "Scoring":
    """Translate all, and hold them against what is right; errors as in `score_texts`."""
    from bertkit.recipes.seq2seq.generated_texts import score_texts

    with show_bar(work) as progress:
        return score_texts("translate", work.read(progress), right)


def write(work: "GeneratedTexts", output: Path | None, *, json: bool) -> None:
    """Print all translations, or write them into a file that appears whole or not at all.

    Raises:
        StorageError: writing failed.
    """
    if output is None:
        with show_bar(work, is_printing=True) as progress:
            for line in format_lines(work, progress, json=json):
                sys.stdout.write(line)
        return
    with show_bar(work) as progress, durable_file(output) as stream:
        for line in format_lines(work, progress, json=json):
            stream.write(line.encode())


def show_bar(
    work: "GeneratedTexts", *, is_printing: bool = False
) -> AbstractContextManager[ProgressBar | None]:
    """How far a file is read; nothing where what is printed shows that."""
    from bertkit.data.tables.texts import TextTable

    if not isinstance(work.texts, TextTable) or (is_printing and sys.stdout.isatty()):
        return nullcontext()
    return show_progress("Translating", work.texts.size_bytes, is_bytes=True)


def format_lines(
    work: "GeneratedTexts", progress: ProgressBar | None, *, json: bool
) -> Iterator[str]:
    """Each answer as a line; of several answers to a text each one, the best first.

    Every text has as many lines as there should be answers, blank ones where it has fewer.
    """
    for answer in work.read(progress):
        if json:
            yield json_module.dumps(asdict(answer), ensure_ascii=False, allow_nan=False) + "\n"
        else:
            written = [one.text for one in (answer, *answer.others)]
            missing = [""] * (work.settings.num_answers - len(written))
            for text in written + missing:
                yield " ".join(legible(text).split()) + "\n"


def describe_scoring(scoring: "Scoring", *, json: bool) -> str:
    """Metrics for programs or for people."""
    if json:
        return json_module.dumps(asdict(scoring))
    lines = [
        f"{name} {value:.2f}\t{scoring.signatures.get(name, '')}".rstrip()
        for name, value in scoring.metrics.items()
    ]
    return "\n".join(lines)


def list_warnings(work: "GeneratedTexts", *, is_file: bool) -> str:
    """What a file had, and what was odd of any texts; empty where there is nothing to tell."""
    counts = work.counts
    odd = [
        f"{number:,} {words}"
        for name, words in ODDITIES.items()
        if (number := getattr(counts, name))
    ]
    if num_undecodable := getattr(work.texts, "num_undecodable", 0):
        odd.append(f"{num_undecodable:,} with bytes that aren't UTF-8, read as \ufffd")
    if not is_file:
        return "; ".join(odd)
    rate = counts.tokens_written / max(work.elapsed_seconds, 1e-9)
    written = f"{pluralize(counts.tokens_written, 'token')} written, {rate:,.0f} a second"
    return "; ".join([f"{counts.texts:,} translated, {written}", *odd])
