"""Tags held against those of people."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from bertkit.metrics.bootstrap import bootstrap_interval
from bertkit.metrics.classification import confusion_matrix
from bertkit.metrics.entities import OUTSIDE, EntityCounts, count_entities, find_entities
from bertkit.metrics.examples import weighted_mean
from bertkit.tasks.evaluation import Evaluation, Mistake
from bertkit.tasks.tag.decoding import Tagging
from bertkit.tasks.tag.examples import TagExample

BOOTSTRAP_SEED = 0
MAX_MISTAKES = 100


def measure(
    examples: Sequence[TagExample], predictions: Sequence[Tagging], *, is_entities: bool
) -> dict[str, float]:
    """Accuracy over words; for entities also precision, recall and F1, as conlleval has them."""
    hits, sizes = _count_hits(examples, predictions)
    metrics = {"accuracy": float(hits.sum() / max(1, sizes.sum()))}
    if not is_entities:
        return metrics
    total = _count(examples, predictions).by_sentence.add_up().pool()
    scores = {"f1": total.f1, "precision": total.precision, "recall": total.recall}
    return {name: float(value) for name, value in scores.items()} | metrics


def evaluate(
    examples: Sequence[TagExample],
    predictions: Sequence[Tagging],
    labels: Sequence[str],
    *,
    is_entities: bool,
) -> Evaluation:
    """Metrics with intervals over sentences, F1 of each type, and the worst sentences."""
    metrics = measure(examples, predictions, is_entities=is_entities)
    hits, sizes = _count_hits(examples, predictions)
    number = len(examples)
    intervals = {
        "accuracy": bootstrap_interval(
            lambda weights: weighted_mean(hits, weights) / weighted_mean(sizes, weights),
            number,
            seed=BOOTSTRAP_SEED,
        )
    }
    if is_entities:
        counts = _count(examples, predictions)
        by_type = counts.by_sentence.add_up()
        for type_, value in zip(counts.types, by_type.f1.tolist(), strict=True):
            metrics[f"f1 {type_}"] = value
        intervals["f1"] = bootstrap_interval(
            lambda weights: counts.by_sentence.add_up(weights).pool().f1,
            number,
            seed=BOOTSTRAP_SEED,
        )
    names = _list_names(examples, labels)
    return Evaluation(
        metrics=metrics,
        intervals={name: (found.low, found.high) for name, found in intervals.items()},
        labels=names,
        confusion=_confuse(examples, predictions, names),
        confidences=np.array(
            [word.probability for found in predictions for word in found.words], dtype=np.float64
        ),
        is_right=np.array(list(_list_hits(examples, predictions)), dtype=np.bool_),
        mistakes=_find_mistakes(examples, predictions, is_entities=is_entities),
        warnings=_warn(predictions),
    )


def _true_tags(example: TagExample) -> tuple[str, ...]:
    assert example.tags is not None, "only examples with tags are measured"
    return example.tags


def _list_hits(examples: Sequence[TagExample], predictions: Sequence[Tagging]) -> list[bool]:
    return [
        tag == word.tag
        for example, found in zip(examples, predictions, strict=True)
        for tag, word in zip(_true_tags(example), found.words, strict=True)
    ]


def _count_hits(
    examples: Sequence[TagExample], predictions: Sequence[Tagging]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Right words and all words of each sentence."""
    sizes = np.array([len(_true_tags(example)) for example in examples], dtype=np.float64)
    is_right = np.array(_list_hits(examples, predictions), dtype=np.float64)
    ends = np.cumsum(sizes).astype(np.int64)
    sums = np.concatenate([[0.0], np.cumsum(is_right)])
    return np.diff(sums[np.concatenate([[0], ends])]), sizes


def _count(examples: Sequence[TagExample], predictions: Sequence[Tagging]) -> EntityCounts:
    return count_entities(
        [_true_tags(example) for example in examples], [found.tags for found in predictions]
    )


def _list_names(examples: Sequence[TagExample], labels: Sequence[str]) -> tuple[str, ...]:
    """The labels, and behind them those that the model can't give."""
    seen = {tag for example in examples for tag in _true_tags(example)}
    return (*labels, *sorted(seen - set(labels)))


def _confuse(
    examples: Sequence[TagExample], predictions: Sequence[Tagging], names: Sequence[str]
) -> npt.NDArray[np.int64]:
    """Which tag was taken for which, by word."""
    ids = {name: number for number, name in enumerate(names)}
    truth = [ids[tag] for tag in chain.from_iterable(map(_true_tags, examples))]
    # Mended tags, such as a B- in place of an I-, may be ones that training didn't have.
    guess = [
        ids.get(word.tag, truth[number])
        for number, word in enumerate(chain.from_iterable(found.words for found in predictions))
    ]
    matrix: npt.NDArray[np.int64] = confusion_matrix(truth, guess, len(names)).astype(np.int64)
    return matrix


def _find_mistakes(
    examples: Sequence[TagExample], predictions: Sequence[Tagging], *, is_entities: bool
) -> tuple[Mistake, ...]:
    """The sentences with the most that is wrong."""
    found = []
    for example, prediction in zip(examples, predictions, strict=True):
        words = [word.text for word in prediction.words]
        expected = _name(words, _true_tags(example), is_entities=is_entities)
        predicted = _name(words, prediction.tags, is_entities=is_entities)
        num_wrong = (expected - predicted).total() + (predicted - expected).total()
        if num_wrong:
            mistake = Mistake(
                place=example.place,
                text=" ".join(words),
                expected=", ".join((expected - predicted).elements()) or "nothing more",
                predicted=", ".join((predicted - expected).elements()) or "nothing more",
                badness=float(num_wrong),
            )
            found.append(mistake)
    return tuple(sorted(found, key=lambda mistake: -mistake.badness)[:MAX_MISTAKES])


def _name(words: Sequence[str], tags: Sequence[str], *, is_entities: bool) -> Counter[str]:
    """What tags say, one entry for each entity or word."""
    if is_entities:
        return Counter(
            f"{' '.join(words[start:stop])} ({type_}, word {start + 1})"
            for type_, start, stop in find_entities(tags)
        )
    return Counter(
        f"{word} ({tag}, word {number})"
        for number, (word, tag) in enumerate(zip(words, tags, strict=True), start=1)
    )


def _warn(predictions: Sequence[Tagging]) -> tuple[str, ...]:
    tags = {word.tag for found in predictions for word in found.words}
    if tags == {OUTSIDE}:
        return ("no word was found to be of an entity: every tag is O",)
    return (f"every tag is {next(iter(tags))!r}",) if len(tags) == 1 else ()
