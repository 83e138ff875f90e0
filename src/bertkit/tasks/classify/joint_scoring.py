"""Evaluation of multi-label classification."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bertkit.reports.text import show
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.classify.scoring import NO_LABEL, Classification, list_names
from bertkit.tasks.evaluation import Flags, Numbers, Statistic, TaskScoring
from bertkit.tasks.metrics.classification import Counts, count_label_sets, weighted_mean

MAX_FLAGS = 1 << 23  # texts x labels in memory at a time
MAX_RESAMPLED = 1000  # labels; with more, the counts of hundreds of resamples take gigabytes


@dataclass(frozen=True)
class Tally:
    """Counts that compare predicted labels with true ones."""

    by_label: Counts  # `[labels]`
    by_text: Counts  # over all labels, `[texts, 1]`
    num_wrong: npt.NDArray[np.int64]  # missing and extra labels per text, `[texts]`
    by_both: Counts | None  # `[texts, labels]`; None if too large for memory


@dataclass(frozen=True)
class JointScoring(TaskScoring[ClassifyExample, Classification]):
    """F1s of several labels, and the share of texts with exactly the true ones."""

    calibration = "metric"

    known: Sequence[str]  # the labels of the model

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All labels."""
        return list_names(self.examples, self.known)

    @cached_property
    def tally(self) -> Tally:
        """The counts of true and predicted labels."""
        return _tally(self.examples, self.predictions, self.names)

    @property
    def metrics(self) -> dict[str, float]:
        """Micro F1, macro F1 and subset accuracy."""
        by_label = self.tally.by_label
        return {
            "micro_f1": float(by_label.pool().f1),
            "macro_f1": float(by_label.f1.mean(axis=-1)),
            "subset_accuracy": float((self.tally.num_wrong == 0).mean()),
        }

    @property
    def details(self) -> dict[str, float]:
        """F1 of each label."""
        pairs = zip(self.names, self.tally.by_label.f1.tolist(), strict=True)
        return {f"f1 {name}": value for name, value in pairs}

    @property
    def statistics(self) -> dict[str, Statistic]:
        """The metrics of weighted texts; no macro F1 for too many labels."""
        tally, counts = self.tally, self.tally.by_both
        scores: dict[str, Statistic] = {
            "micro_f1": lambda weights: tally.by_text.add_up(weights).pool().f1,
            "subset_accuracy": lambda weights: weighted_mean(tally.num_wrong == 0, weights),
        }
        if counts is not None and counts.actual.shape[1] <= MAX_RESAMPLED:
            scores["macro_f1"] = lambda weights: counts.add_up(weights).f1.mean(axis=-1)
        return scores

    @property
    def confidences(self) -> Numbers:
        """The probability of each decision, label given or not, that has one."""
        values = [
            share if label in given else 1.0 - share
            for found in self.predictions
            for given in [set(found.labels)]
            for label, share in found.probabilities.items()
        ]
        return np.array(values)

    @property
    def is_right(self) -> Flags:
        """Whether each of these decisions is right."""
        flags = []
        for example, found in zip(self.examples, self.predictions, strict=True):
            truth, given = set(example.labels or ()), set(found.labels)
            flags += [(label in truth) == (label in given) for label in found.probabilities]
        return np.array(flags)

    @property
    def badness(self) -> npt.NDArray[np.int64]:
        """The number of missing and extra labels."""
        return self.tally.num_wrong

    def contrast(self, number: int) -> tuple[str, str]:
        """Return the true labels and the predicted ones."""
        pair = self.examples[number].label_names, self.predictions[number].labels
        expected, predicted = (", ".join(sorted(labels)) or NO_LABEL for labels in pair)
        return expected, predicted

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warn if all texts get the same labels."""
        found = {prediction.labels for prediction in self.predictions}
        if found == {()}:
            return ("no text gets a label; find_threshold searches for a better threshold",)
        return (f"every prediction is {show(', '.join(*found))!r}",) if len(found) == 1 else ()


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
