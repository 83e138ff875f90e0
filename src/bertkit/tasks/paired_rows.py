"""Rows of a query and its passage, or of two texts and a score: their columns, without torch.

Columns are found by their usual names, or are the only ones that are left; a note in the table's
report says which they are.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from bertkit.base.errors import InputError
from bertkit.data.tables.decoder import look_up, show_names
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import ROWS_FORMAT, RecordTable
from bertkit.reports.text import show
from bertkit.tasks.columns import (
    TEXT,
    find_column,
    find_usual,
    read_list,
    read_number,
    take_number,
    take_text,
)
from bertkit.tasks.settings import PairedSettings

NEGATIVE = re.compile(r"(hard[_ ]?)?neg(ative)?s?[_ ]?\d*", re.ASCII | re.IGNORECASE)
TRIPLES = ("text", "pair", "label")  # names of what tuples from Python have
SHOWN_NAMES = 4  # of usual columns, in an error
SHOWN_CHARS = 40  # of a label, in an error
USUAL_SCORES = ("score", "label", "similarity", "similarity_score", "relevance")


class PairedRow(NamedTuple):
    """A row: a query and a passage, or the two texts of a pair with a score."""

    query: str
    passage: str
    negatives: tuple[str, ...]  # passages that don't answer the query
    score: float | None  # None if rows have none


@dataclass(frozen=True)
class PairedColumns:
    """The columns of queries and passages in a table."""

    query: str
    passage: str
    negatives: tuple[str, ...] = ()  # each a text or a list of texts
    score: str | None = None
    decimal: str = "."  # of scores

    @classmethod
    def find(
        cls, settings: PairedSettings, table: RecordTable, *, needs_answer: bool = True
    ) -> Self:
        """Find the columns by the settings or their names.

        Raises:
            InputError: a column isn't clear, or answers are needed and the labels are words.
        """
        _find_left(settings, table)
        usual = settings.usual_columns
        query = find_column(table, "text", settings.text_column, usual["text"])
        passage = find_column(table, "pair", settings.pair_column, usual["pair"])
        others = [name for name in table.columns or () if name not in {query, passage}]
        negatives, score = _find_negatives(settings, others), settings.label_column
        if score is not None:
            score = find_column(table, "label", score)
        elif (usual_score := find_usual(others, USUAL_SCORES)) is not None:
            word = _find_word(table, usual_score)
            if word is None:
                score = usual_score
            elif not negatives and table.format == ROWS_FORMAT and table.columns == TRIPLES:
                negatives = (usual_score,)
            elif not negatives and needs_answer and word.strip():
                raise _describe_words(table, usual_score, word)
        found = cls(query, passage, negatives, score, table.settings.decimal)
        if (note := found.describe()) not in table.report.notes:
            table.report.notes.append(note)
        return found

    def describe(self) -> str:
        """Say which columns are read."""
        texts = f"query {show(self.query)}, passage {show(self.passage)}"
        if self.score is not None:
            texts = f"texts {show(self.query)} and {show(self.passage)}, score {show(self.score)}"
        negatives = ", ".join(map(show, self.negatives))
        return f"columns: {texts}{f', negatives {negatives}' if negatives else ''}"

    def read(self, record: Record) -> PairedRow:
        """Read a row; BrokenRowError if a text is empty, or a score isn't a number."""
        query, passage = take_text(record, self.query), take_text(record, self.passage)
        for text, column in ((query, self.query), (passage, self.passage)):
            if not text.strip():
                raise BrokenRowError(f"{record.place} has an empty text in {column}")
        negatives = [text for name in self.negatives for text in _take_texts(record, name)]
        score = None if self.score is None else take_number(record, self.score, self.decimal)
        return PairedRow(query, passage, tuple(negatives), score)


def _find_left(settings: PairedSettings, table: RecordTable) -> None:
    """Find texts without a usual name, if they are the only columns that are left."""
    columns, roles = table.columns or (), {**table.roles, **table.found}
    known: dict[str, str] = {}
    for role, usual in settings.usual_columns.items():
        named = getattr(settings, f"{role}_column") or roles.get(role) or find_usual(columns, usual)
        if named is not None:
            known[role] = named
    missing = [role for role in settings.usual_columns if role not in known]
    taken = {*known.values(), *_find_negatives(settings, columns)}
    left = [name for name in columns if name not in taken]
    if len(left) > len(missing):  # a score isn't a text
        left = [name for name in left if name.casefold() not in USUAL_SCORES]
    if missing and len(left) == len(missing):
        table.found |= dict(zip(missing, left, strict=True))
    elif missing and columns and table.format != TEXT:
        role = {"text": "queries", "pair": "passages"}[missing[0]]
        usually = ", ".join(settings.usual_columns[missing[0]][:SHOWN_NAMES])
        raise InputError(
            f"{table.name} has no column of {role}, such as {usually}; name both columns with"
            f" --text-column and --pair-column: {show_names(columns)}"
        )


def _find_negatives(settings: PairedSettings, columns: Sequence[str]) -> tuple[str, ...]:
    if settings.negative_column is not None:
        return (settings.negative_column,)
    return tuple(name for name in columns if NEGATIVE.fullmatch(name))


def _find_word(table: RecordTable, column: str) -> str | None:
    """Return the first value that isn't a number, if most of the first ones aren't; else None.

    It is empty if all of them are.
    """
    values = (record.values.get(column) for record in table.look())
    texts = ["" if value is None else str(value) for value in values]
    decimal = table.settings.decimal
    words = [text for text in texts if math.isnan(read_number(text.replace(decimal, ".")))]
    return max(words, key=lambda text: bool(text.strip())) if 2 * len(words) > len(texts) else None


def _describe_words(table: RecordTable, column: str, word: str) -> InputError:
    return InputError(
        f"{table.name}: {show(column)} has words, such as {show(word, SHOWN_CHARS)}, and labels"
        " aren't scores; write a number for each (1 if the texts belong together, 0 if not, or how"
        " similar they are), name a column of numbers with --label-column, or keep the rows whose"
        " texts belong together and leave the column out"
    )


def _take_texts(record: Record, column: str) -> list[str]:
    """Return the texts of a cell, one or a list; empty ones are left out, and it may be missing."""
    try:
        value = look_up(record.values, column)
    except KeyError:
        return []
    if isinstance(value, str):
        found = read_list(value)
        value = value if found is None else found
    given: list[object] = value if isinstance(value, list) else [value]
    texts = [text for text in given if isinstance(text, str)]
    if any(text is not None and not isinstance(text, str) for text in given):
        raise BrokenRowError(
            f"{record.place} has {value!r:.40} in {column} where a text or a list of them should be"
        )
    return [text for text in texts if text.strip()]
