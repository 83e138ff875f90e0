"""`bertkit translate` and `bertkit summarize`: texts from texts."""

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.errors import SettingsError, pluralize
from bertkit.base.files import check_new_file, durable_file
from bertkit.base.output import check_standard_output
from bertkit.base.progress import ProgressBar, announce, show_progress
from bertkit.base.settings import replace_surrogates
from bertkit.cli.output import format_json, print_result
from bertkit.cli.texts import (
    NamedModel,
    Words,
    find_source,
    legible,
    list_problems,
    open_result,
    take_model_and_files,
)
from bertkit.data.problems import append_problems, check_unknown
from bertkit.data.tables.settings import TableSettings
from bertkit.decoders.decoding.settings import DecodingOverrides
from bertkit.decoders.generation.settings import SummarySettings
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.settings import LoadingSettings
from bertkit.reports.text import format_metric, format_number

if TYPE_CHECKING:
    from bertkit.decoders.generation.extractive import ExtractiveSummary, SummaryCounts
    from bertkit.decoders.generation.seq2seq_generator import GeneratedText, GenerationCounts
    from bertkit.decoders.generation.summarizer import Summarizer
    from bertkit.decoders.seq2seq.evaluation import GeneratedTexts, Scoring

TRANSLATION_PROBLEMS = {
    "empty": "empty",
    "cut": "truncated because they are too long",
    "unfinished": "whose translation reached the maximum length",
}


def translate(
    model: str,
    /,
    *texts: Words,
    file: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    references: Path | None = None,
    reference_column: str | None = None,
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
    training that is a beam search with 5 beams.

    **Examples**

        bertkit translate de-en/ "Ein Mann fährt Fahrrad."

        bertkit translate de-en/ --file texts.de --beams 1 --output texts.en

        bertkit translate de-en/ --file test.de --references test.en

        bertkit translate de-en/ --file t.tsv --text-column de --references en.txt

        bertkit translate de-en/ "Zwei Hunde spielen." --num-answers 3 --json

    Args:
        model: A folder of `bertkit finetune translate`, or the id of such a model of the Hub.
        texts: Texts; - alone reads standard input, one text per line.
        file: File of texts: plain text (one per line), JSONL, CSV, TSV or Parquet; also .gz, .bz2
            or .zst.
        references: File of reference translations, row n for row n; prints BLEU and chrF with their
            signatures instead of the translations.
        reference_column: Column, or field of JSONL, of the references; by default that of the
            texts.
        output: File for the translations, one line each, or with --json one object each; written
            atomically.
        overwrite: Replace an existing output.
        json: Print one JSON object per text, or one with the metrics.
    """
    source = find_source(texts, file)
    if source is None and "-" in texts:
        raise SettingsError("give texts or --file, not both; - alone is standard input")
    check_scoring(output, references, reference_column, decoding)
    place_holder = open_result(
        output, "writing translations into", source, check_new_file, overwrite=overwrite
    )
    from bertkit.data.tables.texts import open_texts
    from bertkit.decoders.generation.seq2seq_generator import Translator
    from bertkit.decoders.seq2seq.evaluation import (
        GeneratedTexts,
        count_texts,
        read_references,
        score_texts,
    )

    given = list(replace_surrogates(texts)) if source is None else open_texts(source, table)
    right = None
    if references is not None:
        own = {} if reference_column is None else {"text_column": reference_column}
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
    if summary := describe_counts(work, is_file=source is not None):
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
    reference_column: str | None,
    decoding: DecodingOverrides,
) -> None:
    """Check that the flags of scoring fit each other."""
    if references is None:
        if reference_column is not None:
            raise SettingsError("--reference-column needs --references")
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
    from bertkit.data.tables.texts import TextTable

    size = work.texts.size_bytes if isinstance(work.texts, TextTable) else None
    is_hidden = not isinstance(work.texts, TextTable) or (is_printing and sys.stdout.isatty())
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


def describe_counts(work: "GeneratedTexts", *, is_file: bool) -> str:
    """Describe the counts of a file, and the problems of texts; may be empty."""
    counts = work.counts
    num_undecodable = getattr(work.texts, "num_undecodable", 0)
    problems = list_problems(counts, TRANSLATION_PROBLEMS, num_undecodable=num_undecodable)
    if not is_file:
        return append_problems("", problems)
    rate = counts.tokens_written / max(work.elapsed_seconds, 1e-9)
    written = f"{pluralize(counts.tokens_written, 'token')} generated, {rate:,.0f} per second"
    return append_problems(f"{counts.texts:,} translated, {written}", problems)


SUMMARY_PROBLEMS = {
    "empty": "without a sentence",
    "whole": "with no more sentences than requested, left whole",
    "limited": "whose summary was limited to 1,000 sentences",
    "truncated": "sentences truncated because they are too long for the model",
    "cut": "truncated because they are too long for the model",
    "unfinished": "whose summary reached the maximum length",
}
SIMILARITY_CHARS = 18


def summarize(
    *inputs: Words,
    model: NamedModel = None,
    settings: SummarySettings = SummarySettings(),
    table: TableSettings = TableSettings(),
    embedding: EmbedderSettings = EmbedderSettings(),
    decoding: DecodingOverrides = DecodingOverrides(),
    why: bool = False,
    json: bool = False,
) -> None:
    """Summarize texts: extract their most central sentences, or generate new ones.

    Any encoder extracts the sentences that are nearest to all others, without training. A model of
    `bertkit finetune summarize` generates a summary; with --num-answers, several per text, one per
    line, the best first.

    A plain text file is one text; in JSONL, CSV, TSV and Parquet, each row is one. All may be .gz,
    .bz2 or .zst.

    **Examples**

        bertkit summarize article.txt --sentences 3

        bertkit summarize all-MiniLM-L6-v2/ report.txt --words 100 --diversity 0.5 --why

        bertkit summarize news/ articles.jsonl --text-column body --json

        zcat speech.txt.gz | bertkit summarize run/ - --share 0.05

    Args:
        inputs: Files of texts, or - for standard input; of several arguments, the first is the
            model, unless --model names it.
        why: Show before each sentence its number in the text, its rank, its score, and its
            similarity to the most similar sentence chosen before it.
        json: Print one JSON object per text, with the same details and character positions.
    """
    check_standard_output()
    model, files = take_model_and_files(inputs, model)
    texts = SummarizedTexts(files, table)
    from bertkit.decoders.generation.summarizer import load_summarizer

    summarizer = load_summarizer(model, embedding, settings, decoding)
    summaries, counts = stream_summaries(summarizer, texts, why=why)
    with show_progress("Summarizing", None, is_hidden=sys.stdout.isatty()) as bar:
        for summary in summaries:
            file, row = texts.places.popleft()
            if json:
                facts = {"file": file, "row": row, "summary": summary.text, **asdict(summary)}
                facts.pop("text", None)
                sys.stdout.write(format_json(facts))
            else:
                place = file if row is None else f"{file}, row {row + 1}"
                heading = "" if len(files) == 1 and row is None else f"{place}\n"
                sys.stdout.write(legible(heading + describe_summary(summary, why=why)))
            bar.advance(1)
    check_unknown("the input", counts.unknown_tokens, counts.text_tokens)
    problems = list_problems(counts, SUMMARY_PROBLEMS, num_undecodable=texts.num_undecodable)
    if problems or counts.texts > 1:
        announce(append_problems(f"{counts.texts:,} summarized", problems))


class SummarizedTexts:
    """The texts of some files, and where they came from until their summaries are there."""

    def __init__(self, files: list[str], table: TableSettings) -> None:
        from bertkit.data.tables.texts import open_texts

        self._files, self._table = files, table
        # file and row, from 0, of those without a summary yet; no row if the file is the text
        self.places: deque[tuple[str, int | None]] = deque()
        self.num_undecodable = 0
        for file in files:
            open_texts(file, table)  # an error comes before a model is loaded

    def __iter__(self) -> Iterator[str]:
        """Yield one text after the other."""
        from bertkit.data.tables.texts import read_documents

        for file in self._files:
            for document in read_documents(file, self._table):
                self.places.append((document.name, document.row))
                self.num_undecodable += document.is_undecodable
                yield document.text


def stream_summaries(
    summarizer: "Summarizer", texts: SummarizedTexts, *, why: bool
) -> "tuple[Iterator[ExtractiveSummary | GeneratedText], SummaryCounts | GenerationCounts]":
    """Return a stream of summaries, and the counts that it updates."""
    from bertkit.decoders.generation.extractive import SummaryCounts
    from bertkit.decoders.generation.seq2seq_generator import GenerationCounts
    from bertkit.decoders.generation.summarizer import AbstractiveSummarizer

    if isinstance(summarizer, AbstractiveSummarizer):
        if why:
            raise SettingsError("--why is for extracted sentences; this model generates its own")
        return summarizer.stream(texts, counts=(written := GenerationCounts())), written
    counts = SummaryCounts()
    return summarizer.stream(texts, counts=counts), counts


def describe_summary(summary: "ExtractiveSummary | GeneratedText", *, why: bool) -> str:
    """Show a summary: a sentence a line, or the generated summaries, best first."""
    from bertkit.decoders.generation.extractive import ExtractiveSummary

    if not isinstance(summary, ExtractiveSummary):
        return "".join(f"{one.text}\n" for one in (summary, *summary.others))
    lines = []
    for sentence in summary.sentences:
        reasons = f"{sentence.number:6,} {sentence.rank:4,}. {format_number(sentence.score):>8}"
        if sentence.similar_to is None:
            reasons += " " * SIMILARITY_CHARS
        else:
            reasons += f"{format_number(sentence.similarity):>8} to {sentence.similar_to:<6,}"
        lines.append(f"{reasons}  {sentence.text}" if why else sentence.text)
    return "".join(f"{line}\n" for line in lines)
