"""Examples for extractive summarization: texts with reference summaries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bertkit.base.errors import InputError
from bertkit.data.sentence_spans import Candidates
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import RecordTable
from bertkit.metrics.words import split_words
from bertkit.tasks.columns import find_column, take_text
from bertkit.tasks.extract.settings import ExtractSettings

TEXT = "text"
USUAL_TEXT = (TEXT, "article", "document")
USUAL_SUMMARY = ("summary", "highlights", "abstract")


@dataclass(frozen=True, slots=True)
class ExtractExample:
    """A text, with an optional reference summary.

    Attributes:
        candidates: its sentences.
        num_chars: number of characters of the text.
        summary: reference summary written by a person; None if unknown.
        place: file and line, for messages.
    """

    candidates: Candidates
    num_chars: int
    summary: str | None = None
    place: str = ""


def build_parser(
    settings: ExtractSettings, table: RecordTable, *, needs_answer: bool
) -> Callable[[Record], ExtractExample]:
    """Build a function that reads text and summary from a record."""
    # A file with one text per line has this column, whatever it was called in training.
    wanted = None if table.format == TEXT else settings.text_column
    text_column = find_column(table, "text", wanted, USUAL_TEXT)
    if not needs_answer:
        return lambda record: make_example(
            take_text(record, text_column), record.place, settings.language
        )
    summary_column = find_column(table, "summary", settings.summary_column, USUAL_SUMMARY)
    return lambda record: _parse(record, text_column, summary_column, settings.language)


def make_example(value: Any, place: str, language: str) -> ExtractExample:
    """Build an example from a text."""
    if not isinstance(value, str):
        raise InputError(f"{place}: expected a text, got {value!r:.80}")
    return ExtractExample(Candidates.find(value, language), len(value), place=place)


def list_warnings(examples: Sequence[ExtractExample], num_sentences: int) -> list[str]:
    """Warn of texts that have no more sentences than a summary."""
    short = [example for example in examples if len(example.candidates) <= num_sentences]
    if not short:
        return []
    count = "1 text has" if len(short) == 1 else f"{len(short):,} texts have"
    line = (
        f"{count} no more sentences than a summary ({num_sentences}), so nothing is chosen there;"
        f" first {short[0].place}"
    )
    return [line]


def _parse(record: Record, text_column: str, summary_column: str, language: str) -> ExtractExample:
    """Read a text with its summary."""
    text, summary = take_text(record, text_column), take_text(record, summary_column)
    candidates = Candidates.find(text, language)
    if not len(candidates):
        raise BrokenRowError(f"{record.place} has no sentence in {text_column}")
    if not split_words(summary):
        raise BrokenRowError(f"{record.place} has no word in {summary_column}")
    return ExtractExample(candidates, len(text), summary, record.place)
