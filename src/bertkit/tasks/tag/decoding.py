"""Decoding of logits to tags and entities."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from bertkit.reports.notebook import Row
from bertkit.reports.text import show
from bertkit.tasks.batch import Logits
from bertkit.tasks.metrics.entities import (
    MEANINGS,
    OUTSIDE,
    Entity,
    Scheme,
    find_entities,
    find_scheme,
    spell_tags,
)
from bertkit.tasks.task import TaskPrediction

LETTERS = "".join(MEANINGS)
USUAL = re.compile(rf"[{LETTERS}](-.*)?", re.DOTALL)
# As some files and tools write B-PER: B_PER, b-per, PER-B, per_b.
PREFIXED = re.compile(rf"(?P<letter>[{LETTERS}])([-_](?P<type>.+))?", re.DOTALL | re.IGNORECASE)
SUFFIXED = re.compile(rf"(?P<type>.+)[-_](?P<letter>[{LETTERS}])", re.DOTALL | re.IGNORECASE)
WORDS_PER_STRAY = 10  # a tag that marks no entity is a slip if it is this rare among those that do


@lru_cache(maxsize=4096)
def spell(tag: str) -> str | None:
    """Spell an entity tag as usual, `B-PER`, whatever its spelling; None if it isn't one."""
    if USUAL.fullmatch(tag):
        return tag
    found = PREFIXED.fullmatch(tag) or SUFFIXED.fullmatch(tag)
    if found is None:
        return None
    return found["letter"].upper() + (f"-{found['type']}" if found["type"] else "")


def choose_labels(counts: Mapping[str, int]) -> set[str]:
    """Return the labels to learn from the number of words with each tag.

    Where the tags mark entities, these are the tags in the usual spelling, without the few that
    mark none: typing errors, such as the digit 0 for the letter O. Else all tags as they are.
    """
    spelled = Counter[str]()
    for tag, count in counts.items():
        spelled[spell(tag) or ""] += count
    num_strays = spelled.pop("", 0)
    num_marked = spelled.total() - spelled[OUTSIDE]
    is_slip = num_strays <= max(1, num_marked // WORDS_PER_STRAY) and num_strays < num_marked
    labels = set(spelled)
    return labels if is_slip and _mark_entities(labels, counts) else set(counts)


def spell_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Spell a model's labels as usual if all mark entities; else return them as they are."""
    spelled = tuple(spell(label) or "" for label in labels)
    is_usable = "" not in spelled and len(set(spelled)) == len(spelled)
    return spelled if is_usable and _mark_entities(spelled, labels) else tuple(labels)


def list_strays(tags: Collection[str]) -> list[str]:
    """Return the tags by which a file's tags don't mark entities; empty if those are most."""
    strays = sorted(tag for tag in tags if spell(tag) is None)
    typed = [tag for tag in tags if "-" in (spell(tag) or "")]
    return strays if len(strays) <= len(typed) else []


def _mark_entities(spelled: Collection[str], tags: Collection[str]) -> bool:
    """Whether tags mark entities, given how they are spelled as usual.

    Another spelling needs an O and a B: some plain tags end in -S or _M too.
    """
    is_usual = set(spelled) <= set(tags)
    is_clear = OUTSIDE in spelled and any(tag.startswith("B") for tag in spelled)
    return (is_usual or is_clear) and find_scheme(spelled) is not None


class TaggedWord(NamedTuple):
    """A word with its tag."""

    text: str
    tag: str  # the likeliest; repaired to agree with `Tagging.entities`
    probability: float
    start: int | None = None  # index of its first character in the text; None if words were given
    stop: int | None = None


class NamedEntity(NamedTuple):
    """An entity of one or more words."""

    type: str  # such as PER
    text: str  # its part of the text, or its words joined by spaces
    first_word: int  # from 0
    stop_word: int  # after its last
    probability: float  # mean of its words' tags
    start: int | None = None  # index of its first character in the text; None if words were given
    stop: int | None = None


@dataclass(frozen=True)
class Tagging(TaskPrediction):
    """A tagged sentence."""

    words: tuple[TaggedWord, ...]
    entities: tuple[NamedEntity, ...] = ()  # empty if tags don't mark entities

    @property
    def tags(self) -> list[str]:
        """The words' tags."""
        return [word.tag for word in self.words]

    def describe(self) -> str:
        """Return each word with its tag, as `word/tag`."""
        return " ".join(f"{word.text}/{show(word.tag)}" for word in self.words)

    def list_values(self) -> Row:
        """Return all words and entities."""
        return {
            "words": [word._asdict() for word in self.words],
            "entities": [entity._asdict() for entity in self.entities],
        }

    def as_row(self) -> Row:
        """Return the words and the entities as texts."""
        entities = "; ".join(f"{one.type}: {one.text}" for one in self.entities)
        words = " ".join(word.text for word in self.words)
        return {"words": words, "entities": entities, **self.tell_words()}

    def as_rows(self) -> Sequence[Row]:
        """Return a row for each word."""
        return [word._asdict() for word in self.words]


@dataclass(frozen=True)
class Sentence:
    """The words of a sentence."""

    words: Sequence[str]  # given, or found in the text
    # start and end in the text; None if words were given
    spans: Sequence[tuple[int, int]] | None = None
    text: str | None = None  # None if words were given

    def cut(self, num_words: int) -> Self:
        """Return the first words."""
        spans = None if self.spans is None else self.spans[:num_words]
        return replace(self, words=self.words[:num_words], spans=spans)


def decode(
    sentence: Sentence, scores: Logits, labels: Sequence[str], scheme: Scheme | None
) -> Tagging:
    """Return the likeliest tag of each word by its scores, and the entities that the tags mark."""
    tags, probabilities = _choose(scores, labels)
    entities: tuple[NamedEntity, ...] = ()
    if scheme is not None:
        found = find_entities(tags)
        tags = spell_tags(found, len(tags), scheme)
        entities = tuple(_name(entity, sentence, probabilities) for entity in found)
    columns = [sentence.words, tags, probabilities]
    if sentence.spans:
        columns += zip(*sentence.spans, strict=True)
    return Tagging(tuple(map(TaggedWord, *columns)), entities)


def _choose(scores: Logits, labels: Sequence[str]) -> tuple[list[str], list[float]]:
    """Return the likeliest label of each word, and its probability."""
    if not len(scores):
        return [], []
    peaks = scores.max(axis=-1, keepdims=True)
    probabilities = 1.0 / np.exp(scores - peaks).sum(axis=-1)
    return [labels[index] for index in scores.argmax(axis=-1).tolist()], probabilities.tolist()


def _name(entity: Entity, sentence: Sentence, probabilities: Sequence[float]) -> NamedEntity:
    """Add its text and probability to an entity."""
    type_, first, stop = entity
    probability = sum(probabilities[first:stop]) / (stop - first)
    if sentence.spans is None or sentence.text is None:
        text = " ".join(sentence.words[first:stop])
        return NamedEntity(type_, text, first, stop, probability)
    start, end = sentence.spans[first][0], sentence.spans[stop - 1][1]
    return NamedEntity(type_, sentence.text[start:end], first, stop, probability, start, end)
