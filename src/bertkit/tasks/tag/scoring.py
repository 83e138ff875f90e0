"""Evaluation of predicted tags against true ones."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from bertkit.reports.text import show
from bertkit.tasks.metrics.classification import Numbers, confuse_labels, divide
from bertkit.tasks.metrics.correlation import bootstrap_interval
from bertkit.tasks.metrics.entities import (
    OUTSIDE,
    EntityCounts,
    Scheme,
    count_entities,
    find_entities,
)
from bertkit.tasks.tag.decoding import Tagging
from bertkit.tasks.tag.examples import TagExample, read_tags
from bertkit.tasks.task import MAX_MISTAKES, Evaluation, Mistake, calibrate

Tags = list[list[str]]  # of each word of each sentence


def measure(
    examples: Sequence[TagExample], predictions: Sequence[Tagging], scheme: Scheme | None
) -> dict[str, float]:
    """Compute accuracy over words; for entities also precision, recall and F1, as seqeval does.

    A word is correct if its entity's type and its position in the entity are, however the file
    spells the tag: I-PER at the beginning of an entity is read as B-PER.
    """
    truth, found = _list_tags(examples, predictions, scheme)
    return _measure(truth, found, None if scheme is None else count_entities(truth, found))


def evaluate(
    examples: Sequence[TagExample],
    predictions: Sequence[Tagging],
    labels: Sequence[str],
    scheme: Scheme | None,
) -> Evaluation:
    """Compute metrics with intervals over sentences, F1 of each type, and the worst sentences."""
    truth, found = _list_tags(examples, predictions, scheme)
    counts = None if scheme is None else count_entities(truth, found)
    metrics = _measure(truth, found, counts)
    if counts is not None:
        by_type = counts.by_type.f1.tolist()
        names = (f"f1 {type_}" for type_ in counts.types)
        metrics |= dict(zip(names, by_type, strict=True))
    seen = set(chain.from_iterable(truth)) | set(chain.from_iterable(found))
    names_of_tags = (*labels, *sorted(seen - set(labels)))  # others are unseen, or from repair
    evaluation = Evaluation(
        metrics=metrics,
        intervals=_find_intervals(truth, found, counts),
        labels=names_of_tags,
        confusion=_confuse(truth, found, names_of_tags),
        confidences=np.array(
            [word.probability for one in predictions for word in one.words], dtype=np.float64
        ),
        is_right=np.array(_list_hits(truth, found), dtype=np.bool_),
        mistakes=_find_mistakes(examples, predictions, scheme),
        warnings=_warn(found),
    )
    return calibrate(evaluation)


def _list_tags(
    examples: Sequence[TagExample], predictions: Sequence[Tagging], scheme: Scheme | None
) -> tuple[Tags, Tags]:
    """Return true and predicted tags, spelled in the same scheme."""
    truth = [_read_truth(example, scheme) for example in examples]
    return truth, [prediction.tags for prediction in predictions]


def _read_truth(example: TagExample, scheme: Scheme | None) -> list[str]:
    assert example.tags is not None, "only examples with tags are measured"
    return list(example.tags) if scheme is None else read_tags(example.tags, scheme)


def _measure(truth: Tags, found: Tags, counts: EntityCounts | None) -> dict[str, float]:
    hits = _list_hits(truth, found)
    metrics = {"accuracy": sum(hits) / max(1, len(hits))}
    if counts is None:
        return metrics
    total = counts.by_type.pool()
    scores = {"f1": total.f1, "precision": total.precision, "recall": total.recall}
    return {name: float(value) for name, value in scores.items()} | metrics


def _find_intervals(
    truth: Tags, found: Tags, counts: EntityCounts | None
) -> dict[str, tuple[float, float]]:
    """Compute bootstrap intervals by resampling sentences."""
    hits = [sum(_list_hits([one], [other])) for one, other in zip(truth, found, strict=True)]
    by_sentence = np.array([hits, list(map(len, truth))], dtype=np.float64)
    statistics: dict[str, Callable[[Numbers], Numbers]] = {
        "accuracy": lambda weights: divide(*(by_sentence @ weights.T))
    }
    if counts is not None:
        statistics["f1"] = lambda weights: counts.by_sentence.add_up(weights).pool().f1
    return {name: bootstrap_interval(score, len(truth)) for name, score in statistics.items()}


def _list_hits(truth: Tags, found: Tags) -> list[bool]:
    """Return for each word whether its tag is correct."""
    return [
        tag == other
        for one, guess in zip(truth, found, strict=True)
        for tag, other in zip(one, guess, strict=True)
    ]


def _confuse(truth: Tags, found: Tags, names: Sequence[str]) -> dict[tuple[int, int], int]:
    """Compute the confusion matrix over words."""
    ids = {name: number for number, name in enumerate(names)}
    rows, columns = ([ids[tag] for tag in chain.from_iterable(tags)] for tags in (truth, found))
    return confuse_labels(rows, columns, len(names))


def _find_mistakes(
    examples: Sequence[TagExample], predictions: Sequence[Tagging], scheme: Scheme | None
) -> tuple[Mistake, ...]:
    """List the sentences with the most missed and wrong entities or tags."""
    found = []
    for example, prediction in zip(examples, predictions, strict=True):
        words = [word.text for word in prediction.words]
        expected = _name(words, _read_truth(example, scheme), scheme)
        predicted = _name(words, prediction.tags, scheme)
        missed, invented = expected - predicted, predicted - expected
        if missed or invented:
            mistake = Mistake(
                place=example.place,
                text=" ".join(words),
                expected=", ".join(missed.elements()) or "nothing else",
                predicted=", ".join(invented.elements()) or "nothing",
                badness=float(missed.total() + invented.total()),
            )
            found.append(mistake)
    return tuple(sorted(found, key=lambda mistake: -mistake.badness)[:MAX_MISTAKES])


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


def _warn(found: Tags) -> tuple[str, ...]:
    """Warn if all words have the same tag."""
    tags = set(chain.from_iterable(found))
    if tags == {OUTSIDE}:
        return ("no entity was predicted: every tag is O",)
    return (f"every tag is {show(next(iter(tags)))!r}",) if len(tags) == 1 else ()
