"""Tagging examples: words with tags, read from records or from a caller."""

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self, TypeVar
from unicodedata import category

from bertkit.base.errors import InputError, pluralize
from bertkit.data.problems import RowReport
from bertkit.data.tables.record import BrokenRowError, ClassName, Record
from bertkit.data.tables.records import RecordTable
from bertkit.reports.text import show
from bertkit.tasks.columns import (
    TEXT,
    check_label,
    find_column,
    name_labels,
    settle_class,
    take_value,
)
from bertkit.tasks.metrics.entities import OUTSIDE, Scheme, repair_tags
from bertkit.tasks.missing_labels import SIGN_MARKS, find_marks
from bertkit.tasks.tag import TagSettings
from bertkit.tasks.tag.decoding import choose_labels, list_strays, spell
from bertkit.tasks.task import TaskExample

USUAL_WORDS, USUAL_TAGS = TagSettings.usual_columns.values()
NO_TAG = ""  # of a word that is neither learned nor measured
REPLACEMENT = "\ufffd"  # BERT's text cleaning drops it too


@dataclass(frozen=True, slots=True)
class TagExample(TaskExample):
    """A sentence with optional tags."""

    words: tuple[str, ...] | None = None  # None for a text that still has to be split into words
    text: str | None = None  # to split; None if words were given
    tags: tuple[str, ...] | None = None  # one per word, which may be NO_TAG; None if unknown
    place: str = ""  # file and line, for messages

    @property
    def arguments(self) -> Sequence[tuple[str, str]]:
        """The text, or the words with a space between them."""
        return [("", self.text or " ".join(self.words or ()))]

    @property
    def num_chars(self) -> int:
        """Number of characters of the text or all words."""
        return len(self.text or "") + sum(map(len, self.words or ()))

    @property
    def label_names(self) -> Sequence[str]:
        """The tags of its words, without those that have none."""
        return tuple(tag for tag in self.tags or () if tag != NO_TAG)

    @classmethod
    def settle(
        cls,
        examples: list[Self],
        report: RowReport,
        settings: TagSettings,
        known: Sequence[str] = (),
    ) -> list[Self]:
        """Drop marks of words without a tag, and sentences without any; spell tags as usual."""
        examples = [_settle_classes(example, known) for example in examples]
        counts = count_tags(examples)
        marks = find_marks(counts, known, are_tags=True)
        if not known:
            marks -= _find_outside(counts)
        if not marks:
            return _spell_as_usual(examples, report, settings, known)
        number = pluralize(sum(counts[mark] for mark in marks), "word")
        report.notes.append(
            f"{number} with {name_labels(sorted(marks))} have no tag: they are neither learned nor"
            " measured"
        )
        kept = []
        for example in examples:
            tags = tuple(NO_TAG if tag in marks else tag for tag in example.tags or ())
            if any(tags):
                kept.append(example if tags == example.tags else replace(example, tags=tags))
            else:
                report.add_unlabeled(f"{example.place} has no word with a tag")
        return _spell_as_usual(kept, report, settings, known)

    @classmethod
    def build_parser(
        cls, settings: TagSettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], "TagExample"]:
        """Build a function that reads words and tags, or untagged words or a text."""
        if not needs_answer:
            # A file with one text per line has this column, whatever it was called in training.
            wanted = None if table.format == TEXT else settings.text_column
            column = find_column(table, "text", wanted, (*USUAL_WORDS, TEXT))
            return lambda record: cls._parse_untagged(record, column)
        if table.format == "conll" and "tags" not in (table.columns or ("tags",)):
            raise InputError(
                f"{table.name} has one column, the words, and no tags; put a tab between each word"
                " and its tag"
            )
        words_column = find_column(table, "text", settings.text_column, USUAL_WORDS)
        tags_column = find_column(table, "label", settings.label_column, USUAL_TAGS)
        return lambda record: cls._parse_tagged(record, words_column, tags_column)

    @classmethod
    def _parse_tagged(cls, record: Record, words_column: str, tags_column: str) -> Self:
        """Read a sentence with its tags."""
        words, tags = _take_list(record, words_column), _take_list(record, tags_column)
        if len(tags) != len(words):
            counts = f"{pluralize(len(words), 'word')} and {pluralize(len(tags), 'tag')}"
            raise BrokenRowError(f"{record.place} has {counts}")
        if not words:
            raise BrokenRowError(f"{record.place} has no words")
        # share one string per distinct tag
        tags = tuple(t if isinstance(t, ClassName) else sys.intern(t.strip()) for t in tags)
        if not all(tags):
            raise BrokenRowError(f"{record.place} has an empty tag")
        for tag in tags:
            check_label(tag, record, tags_column, "label")
        return cls(words=words, tags=tags, place=record.place)

    @classmethod
    def _parse_untagged(cls, record: Record, column: str) -> Self:
        """Read a list of words, or a text."""
        value = take_value(record, column)
        if isinstance(value, str):
            return cls(text=value, place=record.place)
        return cls(words=_take_list(record, column), place=record.place)

    @classmethod
    def from_value(cls, value: Any, place: str, settings: TagSettings) -> Self:
        """Build an example from a text, a list of words, or a mapping with a usual name for it."""
        del settings
        words = value
        if isinstance(value, Mapping):
            words = next((value[name] for name in (*USUAL_WORDS, TEXT) if name in value), None)
        if isinstance(words, str):
            return cls(text=words, place=place)
        if isinstance(words, list | tuple) and all(isinstance(word, str) for word in words):
            return cls(words=tuple(words), place=place)
        raise InputError(f"{place}: expected a text or a list of words, got {value!r:.80}")


Tagged = TypeVar("Tagged", bound=TagExample)


def list_warnings(examples: Sequence[TagExample], scheme: Scheme | None) -> list[str]:
    """Warn of blank words, and of tags that break the scheme or are spelled otherwise."""
    lines = []
    blank = [example for example in examples if any(map(is_blank, example.words or ()))]
    if blank:
        lines.append(
            f"{_count(blank)} words without a letter or sign; they are read as unknown; first"
            f" {blank[0].place}"
        )
    if scheme is None:
        return lines
    odd = [one for one in examples if read_tags(tags := one.label_names, scheme) != spell_all(tags)]
    if odd:
        lines.append(
            f"{_count(odd)} tags that don't follow {scheme}, such as an I- that begins an entity;"
            f" they are decoded as by seqeval; first {odd[0].place}"
        )
    if strays := [tag for tag in count_tags(examples) if spell(tag) is None]:
        lines.append(
            f"tags that mark no entity: {name_labels(strays)}; their words aren't learned and count"
            " as mistakes; correct them, or give --scheme plain if words have independent tags"
        )
    return lines


def warn_of_plain(examples: Sequence[TagExample]) -> list[str]:
    """Warn if the tags mark entities but for some, or are numbers, so that no entity is found."""
    counts = count_tags(examples)
    strays = list_strays(counts)
    if all(map(str.isdecimal, counts)):
        line = (
            "tags are numbers, so words are tagged independently and no entities are found; replace"
            " them by their names, such as B-PER, or give --scheme plain if it is intended"
        )
        return [line]
    if not strays:
        return []
    number = pluralize(sum(counts[tag] for tag in strays), "word")
    first = next(one.place for one in examples if not set(strays).isdisjoint(one.tags or ()))
    line = (
        f"the tags mark entities but for {name_labels(strays)} ({number}, first {first}), so words"
        " are tagged independently and no entities are found; correct these tags, or give --scheme"
        " plain if it is intended"
    )
    return [line]


def count_tags(examples: Sequence[TagExample]) -> Counter[str]:
    """Count the words with each tag."""
    return Counter(chain.from_iterable(example.label_names for example in examples))


def _spell_as_usual(
    examples: list[Tagged], report: RowReport, settings: TagSettings, known: Sequence[str]
) -> list[Tagged]:
    """Spell tags as usual if they mark entities, or those of the model or the training data do."""
    counts = count_tags(examples)
    usual = {label for label in known if spell(label) == label}
    is_clear = 2 * len(usual) > len(known)  # a few labels may be typing errors
    labels = choose_labels(counts) if not known else usual if is_clear else set(known)
    spelled = {tag: other for tag in counts if (other := spell(tag)) not in {tag, None}}
    if settings.find_scheme(labels) is None or not spelled:
        return examples
    first, other = next(iter(spelled.items()))
    report.notes.append(f"tags such as {show(first)} are read as {show(other)}")
    return [
        one if one.tags is None else replace(one, tags=tuple(spelled.get(t, t) for t in one.tags))
        for one in examples
    ]


def _find_outside(counts: Counter[str]) -> set[str]:
    """Return the signs that seem to mean that a word is in no entity: - beside B-city.

    Beside O they mean that a word has no tag, as does _ beside parts of speech, if few have it.
    """
    are_entities = any("-" in (spell(tag) or "") for tag in counts)
    kept = {"-", *(SIGN_MARKS if are_entities else ())} if OUTSIDE not in counts else set[str]()
    return kept | {sign for sign in SIGN_MARKS if 2 * counts[sign] >= counts.total()}


def is_blank(word: str) -> bool:
    """Whether nothing of a word is left after BERT's text cleaning."""
    return all(category(sign)[0] in "CZ" or sign == REPLACEMENT for sign in word)


def read_tags(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """Convert true tags to a scheme; one outside it is an entity that no model finds."""
    return repair_tags(spell_all(tags), scheme)


def spell_all(tags: Sequence[str]) -> list[str]:
    """Spell tags as usual; one that marks no entity becomes an entity of its own type."""
    return [spell(tag) or f"B-{tag!r}" for tag in tags]


def _count(examples: Sequence[TagExample]) -> str:
    return "1 sentence has" if len(examples) == 1 else f"{len(examples):,} sentences have"


def _take_list(record: Record, column: str) -> tuple[str, ...]:
    """Read a list of texts; integers are accepted as texts."""
    value = take_value(record, column)
    if not isinstance(value, list | tuple):
        raise BrokenRowError(f"{record.place} has no list in {column}: {value!r:.40}")
    if not all(isinstance(item, str | int) and not isinstance(item, bool) for item in value):
        raise BrokenRowError(f"{record.place} has something else than texts in {column}")
    return tuple(item if isinstance(item, str) else str(item) for item in value)


def _settle_classes(example: Tagged, known: Sequence[str]) -> Tagged:
    if not any(isinstance(tag, ClassName) for tag in example.tags or ()):
        return example
    tags = (sys.intern(settle_class(tag, known)) for tag in example.tags or ())
    return replace(example, tags=tuple(tags))
