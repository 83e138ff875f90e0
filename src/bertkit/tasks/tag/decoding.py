"""Decoding of logits to tags and entities."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bertkit.metrics.entities import Entity, Scheme, find_entities, spell_tags
from bertkit.reports.notebook import Row, Tabular
from bertkit.tasks.logits import Logits


class TaggedWord(NamedTuple):
    """A word with its tag.

    Attributes:
        text: the word.
        tag: the likeliest tag; inconsistent entity tags are repaired to agree with
            `Tagging.entities`.
        probability: probability of the likeliest tag, from 0 to 1.
        start: index of its first character in the text; None if words were given.
        stop: index after its last character.
    """

    text: str
    tag: str
    probability: float
    start: int | None = None
    stop: int | None = None


class NamedEntity(NamedTuple):
    """An entity of one or more words.

    Attributes:
        type: its type, such as PER.
        text: its part of the text, or its words joined by spaces.
        first_word: index of its first word, from 0.
        stop_word: index after its last word.
        probability: mean probability of its words' tags, from 0 to 1.
        start: index of its first character in the text; None if words were given.
        stop: index after its last character.
    """

    type: str
    text: str
    first_word: int
    stop_word: int
    probability: float
    start: int | None = None
    stop: int | None = None


@dataclass(frozen=True)
class Tagging(Tabular):
    """A tagged sentence.

    Attributes:
        words: all words.
        entities: entities that the tags mark; empty if tags don't mark entities.
    """

    words: tuple[TaggedWord, ...]
    entities: tuple[NamedEntity, ...] = ()

    @property
    def tags(self) -> list[str]:
        """The words' tags."""
        return [word.tag for word in self.words]

    def as_row(self) -> Row:
        """Return the words and the entities as texts."""
        entities = "; ".join(f"{one.type}: {one.text}" for one in self.entities)
        return {"words": " ".join(word.text for word in self.words), "entities": entities}

    def as_rows(self) -> Sequence[Row]:
        """Return a row for each word."""
        return [word._asdict() for word in self.words]


@dataclass(frozen=True)
class Sentence:
    """The words of a sentence.

    Attributes:
        words: the given words, or those found in the text.
        spans: start and end of each word in the text; None if words were given.
        text: the text; None if words were given.
    """

    words: Sequence[str]
    spans: Sequence[tuple[int, int]] | None = None
    text: str | None = None


@dataclass(frozen=True)
class Words:
    """A sentence, and the rows of its words among the logits.

    Attributes:
        sentence: the words.
        rows: row of each word's logits among the logits of the sentence.
    """

    sentence: Sentence
    rows: npt.NDArray[np.int64]


def decode(words: Words, logits: Logits, labels: Sequence[str], scheme: Scheme | None) -> Tagging:
    """Return the likeliest tag of each word, and the entities that the tags mark."""
    sentence = words.sentence
    tags, probabilities = _choose(logits[words.rows], labels)
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
