"""Sentences as words with tags."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertkit.base.errors import InputError
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import RecordTable
from bertkit.tasks.columns import find_column
from bertkit.tasks.tag.settings import TagSettings

USUAL_WORDS = ("tokens", "words")
USUAL_TAGS = ("tags", "ner_tags", "pos_tags")
TEXT = "text"


@dataclass(frozen=True)
class TagExample:
    """A sentence.

    Attributes:
        words: its words; None where a text is still to be cut into words.
        text: that text.
        tags: one for each word; None where they are to be found.
        place: file and line, for messages.
    """

    words: tuple[str, ...] | None = None
    text: str | None = None
    tags: tuple[str, ...] | None = None
    place: str = ""


def build_parser(
    settings: TagSettings, table: RecordTable, *, needs_answer: bool
) -> Callable[[Record], TagExample]:
    """Look for words and tags in their columns; without an answer a text will do.

    Raises:
        InputError: columns are missing.
    """
    columns = table.columns or ()
    has_text = TEXT in columns and not any(name in columns for name in USUAL_WORDS)
    if not needs_answer and settings.words_column is None and has_text:
        return _parse_text
    words_column = find_column(table, "words", settings.words_column, USUAL_WORDS)
    tags_column = None
    if needs_answer:
        tags_column = find_column(table, "tags", settings.tags_column, USUAL_TAGS)

    def parse(record: Record) -> TagExample:
        words = _take_list(record, words_column)
        tags = None if tags_column is None else _take_list(record, tags_column)
        if tags is not None and len(tags) != len(words):
            raise BrokenRowError(f"{record.place} has {len(words)} words and {len(tags)} tags")
        if not words:
            raise BrokenRowError(f"{record.place} has no words")
        if tags is not None and not all(tags):
            raise BrokenRowError(f"{record.place} has an empty tag")
        return TagExample(words=words, tags=tags, place=record.place)

    return parse


def make_example(value: Any, place: str) -> TagExample:
    """Of a text, or a list of words.

    Raises:
        InputError: it is something else.
    """
    if isinstance(value, str):
        return TagExample(text=value, place=place)
    if isinstance(value, Mapping):
        value = next((value[name] for name in USUAL_WORDS if name in value), None)
    if isinstance(value, Sequence) and all(isinstance(word, str) for word in value):
        return TagExample(words=tuple(value), place=place)
    raise InputError(f"{place}: expected a text or a list of words, got {value!r:.80}")


def _parse_text(record: Record) -> TagExample:
    value = record.values.get(TEXT)
    if not isinstance(value, str):
        raise BrokenRowError(f"{record.place} has no text")
    return TagExample(text=value, place=record.place)


def _take_list(record: Record, column: str) -> tuple[str, ...]:
    """A list of texts; tags may be whole numbers too.

    Raises:
        BrokenRowError: it is something else.
    """
    value = record.values.get(column)
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise BrokenRowError(f"{record.place} has no list in {column}: {value!r:.40}")
    if not all(isinstance(item, str | int) and not isinstance(item, bool) for item in value):
        raise BrokenRowError(f"{record.place} has something else than texts in {column}")
    return tuple(str(item) for item in value)
