"""Evaluation of multi-label classification."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bertkit.reports.text import show
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.classify.scoring import NO_LABEL, Classification, list_names
from bertkit.tasks.metrics.classification import Counts, count_label_sets, weighted_mean
from bertkit.tasks.metrics.correlation import bootstrap_interval
from bertkit.tasks.task import MISTAKE_CHARS, Evaluation, Mistake, rank_mistakes, tell_calibration

MAX_FLAGS = 1 << 23  # texts x labels in memory at a time
MAX_RESAMPLED = 1000  # labels; with more, the counts of hundreds of resamples take gigabytes

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]
Statistic = Callable[[Numbers], Numbers]


@dataclass(frozen=True)
class Tally:
    """Counts that compare predicted labels with true ones."""

    by_label: Counts  # `[labels]`
    by_text: Counts  # over all labels, `[texts, 1]`
    num_wrong: npt.NDArray[np.int64]  # missing and extra labels per text, `[texts]`
    by_both: Counts | None  # `[texts, labels]`; None if too large for memory


def measure(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    labels: Sequence[str],
) -> dict[str, float]:
    """Compute micro F1, macro F1 and subset accuracy (texts with exactly the true labels)."""
    return _measure(_tally(examples, predictions, list_names(examples, labels)))


def evaluate(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    labels: Sequence[str],
) -> Evaluation:
    """Compute the same with intervals, F1 of each label, calibration and the worst mistakes."""
    names = list_names(examples, labels)
    tally = _tally(examples, predictions, names)
    by_label = tally.by_label.f1.tolist()
    metrics = _measure(tally)
    metrics |= {f"f1 {name}": value for name, value in zip(names, by_label, strict=True)}
    confidences, is_right = _list_confidences(examples, predictions)
    scores = _list_resampled(tally)
    evaluation = Evaluation(
        metrics=metrics,
        intervals={
            name: bootstrap_interval(score, len(examples)) for name, score in scores.items()
        },
        confidences=confidences,
        is_right=is_right,
        mistakes=_list_mistakes(examples, predictions, tally.num_wrong),
        warnings=_warn(predictions),
    )
    return tell_calibration(evaluation)


def _tally(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    names: Sequence[str],
) -> Tally:
    """Count labels, in parts of as many texts as fit in memory."""
    ids = {name: id_ for id_, name in enumerate(names)}
    num_at_once = max(1, MAX_FLAGS // max(1, len(names)))
    chosen = [slice(start, start + num_at_once) for start in range(0, len(examples), num_at_once)]
    parts = [_tally_part(examples[part], predictions[part], ids) for part in chosen]
    if len(parts) == 1:
        return parts[0]
    return Tally(
        _join((part.by_label for part in parts), sum),
        _join((part.by_text for part in parts), np.concatenate),
        np.concatenate([part.num_wrong for part in parts]),
        None,
    )


def _tally_part(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    ids: Mapping[str, int],
) -> Tally:
    truth = np.zeros((len(examples), len(ids)), dtype=np.bool_)
    guess = truth.copy()
    for row, (example, found) in enumerate(zip(examples, predictions, strict=True)):
        truth[row, [ids[label] for label in example.labels or ()]] = True
        guess[row, [ids[label] for label in found.labels]] = True
    counts = count_label_sets(truth, guess)
    by_text = Counts(*(each.sum(axis=1, keepdims=True) for each in vars(counts).values()))
    return Tally(counts.add_up(), by_text, (truth != guess).sum(axis=1), counts)


def _join(parts: Iterable[Counts], join: Callable[[list[Any]], Any]) -> Counts:
    columns = zip(*((part.correct, part.predicted, part.actual) for part in parts), strict=True)
    return Counts(*(join(list(column)) for column in columns))


def _measure(tally: Tally) -> dict[str, float]:
    return {
        "micro_f1": float(tally.by_label.pool().f1),
        "macro_f1": float(tally.by_label.f1.mean(axis=-1)),
        "subset_accuracy": float((tally.num_wrong == 0).mean()),
    }


def _list_resampled(tally: Tally) -> dict[str, Statistic]:
    """Return the metrics as functions of bootstrap weights; no macro F1 for too many labels."""
    scores: dict[str, Statistic] = {
        "micro_f1": lambda weights: tally.by_text.add_up(weights).pool().f1,
        "subset_accuracy": lambda weights: weighted_mean(tally.num_wrong == 0, weights),
    }
    counts = tally.by_both
    if counts is not None and counts.actual.shape[1] <= MAX_RESAMPLED:
        scores["macro_f1"] = lambda weights: counts.add_up(weights).f1.mean(axis=-1)
    return scores


def _list_confidences(
    examples: Sequence[ClassifyExample], predictions: Sequence[Classification]
) -> tuple[Numbers, Flags]:
    """List confidence and correctness of each decision, label given or not, with a probability."""
    confidences, is_right = [], []
    for example, found in zip(examples, predictions, strict=True):
        truth, given = set(example.labels or ()), set(found.labels)
        for label, share in found.probabilities.items():
            confidences.append(share if label in given else 1.0 - share)
            is_right.append((label in truth) == (label in given))
    return np.array(confidences), np.array(is_right)


def _list_mistakes(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    num_wrong: npt.NDArray[np.int64],
) -> tuple[Mistake, ...]:
    """List the texts with the most missing and extra labels."""
    return tuple(
        Mistake(
            place=examples[number].place,
            text=examples[number].texts.show()[:MISTAKE_CHARS],
            expected=", ".join(sorted(examples[number].labels or ())) or NO_LABEL,
            predicted=", ".join(sorted(predictions[number].labels)) or NO_LABEL,
            badness=float(num_wrong[number]),
        )
        for number in rank_mistakes(num_wrong)
    )


def _warn(predictions: Sequence[Classification]) -> tuple[str, ...]:
    found = {prediction.labels for prediction in predictions}
    if found == {()}:
        return ("no text gets a label; find_threshold searches for a better threshold",)
    return (f"every prediction is {show(', '.join(*found))!r}",) if len(found) == 1 else ()
