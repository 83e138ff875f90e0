"""Entities in tag sequences, decoded and scored as seqeval does by default.

A tag is `O`, or a letter and a type: `B-PER`. Every sequence is accepted. An entity begins at `B`,
at `S`, and at any other letter that follows `O`, the last tag of an entity (`E`, `S`) or a tag of
another type; it ends before the next entity or `O`. So one rule reads IOB1, IOB2 and IOE, and
`I-PER` after `O` begins an entity. For `B` and `I`, this is conlleval's rule; conlleval doesn't
know `S`.

Beyond seqeval's default, `U` and `L` of BILOU are read as `S` and `E`, as in its strict BILOU mode,
and `M` of BMES as `I`.

Source: Tjong Kim Sang and Veenstra, "Representing Text Chunks", EACL 1999; conlleval of the shared
task of CoNLL-2000; seqeval, `get_entities`.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from bertkit.base.errors import InputError
from bertkit.tasks.metrics.classification import Counts, check_lengths

Scheme = Literal["BIO", "BIOES", "BILOU", "BMES"]

OUTSIDE = "O"
MEANINGS = {"O": "O", "B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S"}
# The letters of the first, a middle, the last and the only word of an entity.
LETTERS: dict[Scheme, tuple[str, str, str, str]] = {
    "BIO": ("B", "I", "I", "B"),
    "BIOES": ("B", "I", "E", "S"),
    "BILOU": ("B", "I", "L", "U"),
    "BMES": ("B", "M", "E", "S"),
}


class Entity(NamedTuple):
    """An entity: its type and its words from `start` up to but excluding `stop`, counted from 0."""

    type: str
    start: int
    stop: int


@dataclass(frozen=True)
class EntityCounts:
    """Counts of actual, predicted and correctly predicted entities, by type and by sentence.

    `by_type` gives precision, recall and F1 of each type, and `by_type.pool()` those of all types:
    the last lines and the first lines that conlleval prints.
    """

    types: tuple[str, ...]  # that occur or were predicted, sorted
    by_type: Counts  # over all sentences, `[types]`
    by_sentence: Counts  # over all types, `[sentences, 1]`


def find_scheme(labels: Collection[str]) -> Scheme | None:
    """Detect the scheme by which labels mark entities; None if they don't."""
    letters = {label.partition("-")[0] for label in labels}
    has_types = all("-" in label for label in labels)
    if not letters <= MEANINGS.keys() or not (OUTSIDE in labels or has_types):
        return None
    if letters & {"L", "U"}:
        return "BILOU"
    if "M" in letters:
        return "BMES"
    return "BIOES" if letters & {"E", "S"} else "BIO"


def find_entities(tags: Iterable[str]) -> list[Entity]:
    """Decode a sentence's tags to entities, in order."""
    entities: list[Entity] = []
    start, current, before = 0, "", OUTSIDE
    for place, tag in enumerate((*tags, OUTSIDE)):
        found = _part_tag(tag)
        if found is None:
            raise InputError(
                f"tag {tag!r} of word {place} isn't one of entities: expected O, or B, I, E, S"
                " (also L, M, U) and a type, such as B-PER"
            )
        letter, type_ = found
        is_first = letter != "O" and (letter in "BS" or before in "OES" or type_ != current)
        if before != "O" and (is_first or letter == "O"):
            entities.append(Entity(current, start, place))
        if is_first:
            start = place
        current, before = type_, letter
    return entities


def repair_tags(tags: Sequence[str], scheme: Scheme = "BIO") -> list[str]:
    """Make tags valid in a scheme, without changing the entities that `find_entities` reads.

    Only letters change: in BIO, `O I-PER` becomes `O B-PER`, and `B-PER I-LOC` becomes
    `B-PER B-LOC`.
    """
    return spell_tags(find_entities(tags), len(tags), scheme)


def spell_tags(entities: Iterable[Entity], num_words: int, scheme: Scheme = "BIO") -> list[str]:
    """Encode the entities of a sentence as tags."""
    first, middle, last, only = LETTERS[scheme]
    tags = [OUTSIDE] * num_words
    for type_, start, stop in entities:
        letters = only if stop - start == 1 else first + middle * (stop - start - 2) + last
        ending = f"-{type_}" if type_ else ""
        tags[start:stop] = [letter + ending for letter in letters]
    return tags


def count_entities(
    tags: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> EntityCounts:
    """Count the entities of each sentence; one is correct if its type and both ends match."""
    num_sentences = check_lengths(tags=tags, predictions=predictions)
    for number, (truth, guess) in enumerate(zip(tags, predictions, strict=True)):
        if len(truth) != len(guess):
            raise InputError(
                f"sentence {number:,} has {len(truth)} tags, but {len(guess)} were predicted"
            )
    actual = [set(find_entities(sentence)) for sentence in tags]
    predicted = [set(find_entities(sentence)) for sentence in predictions]
    correct = [truth & guess for truth, guess in zip(actual, predicted, strict=True)]
    types = tuple(sorted({entity.type for found in (*actual, *predicted) for entity in found}))
    columns = {type_: column for column, type_ in enumerate(types)}
    by_type = np.zeros((3, len(types)), dtype=np.int64)
    by_sentence = np.zeros((3, num_sentences, 1), dtype=np.int64)
    for number, sentences in enumerate((correct, predicted, actual)):
        by_sentence[number, :, 0] = [len(found) for found in sentences]
        for found in sentences:
            for entity in found:
                by_type[number, columns[entity.type]] += 1
    return EntityCounts(types, Counts(*by_type), Counts(*by_sentence))


@lru_cache(maxsize=1024)
def _part_tag(tag: str) -> tuple[str, str] | None:
    """Split a tag into its normalized letter and its type; None if it isn't an entity tag."""
    letter, _, type_ = tag.partition("-")
    return (MEANINGS[letter], type_) if letter in MEANINGS else None
