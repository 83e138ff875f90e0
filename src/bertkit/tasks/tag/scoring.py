"""Evaluation of predicted tags against true ones."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from bertkit.reports.text import show
from bertkit.tasks.evaluation import Flags, Numbers, Statistic, TaskScoring
from bertkit.tasks.metrics.classification import confuse_labels, divide
from bertkit.tasks.metrics.entities import (
    OUTSIDE,
    EntityCounts,
    Scheme,
    count_entities,
    find_entities,
)
from bertkit.tasks.tag.decoding import TaggedWord, Tagging
from bertkit.tasks.tag.examples import NO_TAG, TagExample, read_tags

Tags = list[list[str]]  # of each word of each sentence


@dataclass(frozen=True)
class TagScoring(TaskScoring[TagExample, Tagging]):
    """Accuracy over words; for entities also precision, recall and F1, as seqeval computes them.

    A word is correct if its entity's type and its position in the entity are, however the file
    spells the tag: I-PER at the beginning of an entity is read as B-PER.
    """

    calibration = "picture"

    known: Sequence[str]  # the labels of the model
    scheme: Scheme | None

    @cached_property
    def measured(self) -> list[list[tuple[str, TaggedWord]]]:
        """The words that have a true tag and were read, with that tag, of each sentence."""
        return [
            [
                (tag, word)
                for tag, word in zip(example.tags or (), one.words, strict=False)
                if tag != NO_TAG
            ]
            for example, one in zip(self.examples, self.predictions, strict=True)
        ]

    @cached_property
    def truth(self) -> Tags:
        """The true tags, spelled in the scheme."""
        tags = [[tag for tag, _ in words] for words in self.measured]
        return tags if self.scheme is None else [read_tags(own, self.scheme) for own in tags]

    @cached_property
    def words(self) -> list[list[TaggedWord]]:
        """The words with a true tag, as predicted."""
        return [[word for _, word in words] for words in self.measured]

    @cached_property
    def found(self) -> Tags:
        """The predicted tags of these words."""
        return [[word.tag for word in words] for words in self.words]

    @cached_property
    def counts(self) -> EntityCounts | None:
        """The counts of entities; None if tags don't mark any."""
        return None if self.scheme is None else count_entities(self.truth, self.found)

    @property
    def metrics(self) -> dict[str, float]:
        """Accuracy, and for entities F1, precision and recall before it."""
        hits = _list_hits(self.truth, self.found)
        accuracy = {"accuracy": sum(hits) / max(1, len(hits))}
        if self.counts is None:
            return accuracy
        total = self.counts.by_type.pool()
        scores = {"f1": total.f1, "precision": total.precision, "recall": total.recall}
        return {name: float(value) for name, value in scores.items()} | accuracy

    @property
    def details(self) -> dict[str, float]:
        """F1 of each type."""
        if self.counts is None:
            return {}
        names = (f"f1 {type_}" for type_ in self.counts.types)
        return dict(zip(names, self.counts.by_type.f1.tolist(), strict=True))

    @property
    def statistics(self) -> dict[str, Statistic]:
        """Accuracy and F1 of weighted sentences."""
        pairs = zip(self.truth, self.found, strict=True)
        hits = [sum(_list_hits([one], [other])) for one, other in pairs]
        by_sentence = np.array([hits, list(map(len, self.truth))], dtype=np.float64)
        statistics: dict[str, Statistic] = {
            "accuracy": lambda weights: divide(*(by_sentence @ weights.T))
        }
        counts = self.counts
        if counts is not None:
            statistics["f1"] = lambda weights: counts.by_sentence.add_up(weights).pool().f1
        return statistics

    @property
    def confusion(self) -> tuple[tuple[str, ...], dict[tuple[int, int], int]]:
        """The confusion matrix over words; tags that the model lacks come last."""
        true, predicted = (list(chain.from_iterable(tags)) for tags in (self.truth, self.found))
        names = (*self.known, *sorted({*true, *predicted} - set(self.known)))
        ids = {name: number for number, name in enumerate(names)}
        rows, columns = ([ids[tag] for tag in tags] for tags in (true, predicted))
        return names, confuse_labels(rows, columns, len(names))

    @property
    def confidences(self) -> Numbers:
        """The probability of each word's tag."""
        words = chain.from_iterable(self.words)
        return np.array([word.probability for word in words], dtype=np.float64)

    @property
    def is_right(self) -> Flags:
        """Whether the tag of each word is correct."""
        return np.array(_list_hits(self.truth, self.found), dtype=np.bool_)

    @cached_property
    def differences(self) -> list[tuple[Counter[str], Counter[str]]]:
        """The missed and the wrong entities or tags of each sentence."""
        found = []
        for truth, words, tagged in zip(self.truth, self.words, self.found, strict=True):
            texts = [word.text for word in words]
            expected, predicted = (_name(texts, tags, self.scheme) for tags in (truth, tagged))
            found.append((expected - predicted, predicted - expected))
        return found

    @property
    def errors(self) -> Numbers:
        """The number of missed and wrong entities or tags of each sentence."""
        totals = [missed.total() + invented.total() for missed, invented in self.differences]
        return np.array(totals, dtype=np.float64)

    def show_example(self, number: int) -> str:
        """Return the words of a sentence."""
        return " ".join(word.text for word in self.predictions[number].words)

    def contrast(self, number: int) -> tuple[str, str]:
        """Return what was missed in a sentence, and what was wrong."""
        missed, invented = (", ".join(found.elements()) for found in self.differences[number])
        return missed or "nothing else", invented or "nothing"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warn if all words have the same tag."""
        tags = set(chain.from_iterable(self.found))
        if tags == {OUTSIDE}:
            return ("no entity was predicted: every tag is O",)
        return (f"every tag is {show(next(iter(tags)))!r}",) if len(tags) == 1 else ()


def _list_hits(truth: Tags, found: Tags) -> list[bool]:
    """Return for each word whether its tag is correct."""
    return [
        tag == other
        for one, guess in zip(truth, found, strict=True)
        for tag, other in zip(one, guess, strict=True)
    ]


def _name(words: Sequence[str], tags: Sequence[str], scheme: Scheme | None) -> Counter[str]:
    """Count the entities that tags mark, or the tagged words."""
    if scheme is not None:
        return Counter(
            f"{' '.join(words[start:stop])} ({type_}, word {start + 1})"
            for type_, start, stop in find_entities(tags)
        )
    return Counter(
        f"{word} ({tag}, word {number})"
        for number, (word, tag) in enumerate(zip(words, tags, strict=True), start=1)
    )
