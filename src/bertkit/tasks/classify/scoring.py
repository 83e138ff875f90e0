"""Evaluation of labels: of one of each text, or of several."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress

import numpy as np
import numpy.typing as npt

from bertkit.reports.text import show
from bertkit.tasks.classify.decoding import NO_LABEL, Classification
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.columns import sort_labels
from bertkit.tasks.evaluation import ConfidentScoring, Flags, Numbers, Statistic, TaskScoring
from bertkit.tasks.metrics.classification import (
    Counts,
    accuracy,
    balanced_accuracy,
    binary_f1,
    confuse_labels,
    count_label_sets,
    count_labels,
    macro_f1,
    matthews,
    weighted_mean,
)

RARE = 0.1  # share of the examples with a label
MAX_FLAGS = 1 << 23  # texts x labels whose counts are kept to resample macro F1
MAX_RESAMPLED = 1000  # labels; with more, the counts of hundreds of resamples take gigabytes
MAX_INTERVAL_LABELS = 100  # with more, a thousand resamples of each label take too long

Ids = npt.NDArray[np.int64]
CountStatistic = Callable[[Counts], Numbers]


@dataclass(frozen=True)
class LabelScoring(TaskScoring[ClassifyExample, Classification]):
    """What scorings of one label a text and of several have in common."""

    calibration = "metric"

    known: Sequence[str]  # the labels of the model

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The model's labels, followed by labels of examples that it doesn't know."""
        met = {label for example in self.examples for label in example.labels or ()}
        return (*self.known, *sort_labels(met - set(self.known)))

    def name_f1(self, counts: Counts) -> dict[str, float]:
        """Return the F1 of each label that occurs or was predicted."""
        is_met = (counts.actual + counts.predicted > 0).tolist()
        pairs = zip(self.names, counts.f1.tolist(), strict=True)
        return {f"f1 {name}": value for name, value in compress(pairs, is_met)}


@dataclass(frozen=True)
class ClassifyScoring(ConfidentScoring[ClassifyExample, Classification], LabelScoring):
    """Accuracy, F1s and Matthews' correlation of single labels."""

    positive: str | None  # the label that F1 is of

    @cached_property
    def ids(self) -> tuple[Ids, Ids]:
        """The ids of the true and the predicted labels."""
        ids = {name: id_ for id_, name in enumerate(self.names)}
        truth = [ids[label] for example in self.examples for label in example.labels or ()]
        return np.array(truth), np.array([ids[found.label] for found in self.predictions])

    @cached_property
    def counts(self) -> Counts:
        """The counts of true and predicted labels."""
        return count_labels(*self.ids, len(self.names))

    @property
    def scores(self) -> dict[str, CountStatistic]:
        """The metrics as functions of the counts."""
        scores: dict[str, CountStatistic] = {"accuracy": accuracy}
        met = self.counts.actual[self.counts.actual > 0]
        if len(met) and met.min() < RARE * met.sum():
            scores["balanced_accuracy"] = balanced_accuracy
        if self.positive is not None:
            number = self.names.index(self.positive)
            scores["f1"] = lambda counts: binary_f1(counts, number)
        return scores | {"macro_f1": macro_f1, "matthews": matthews}

    @property
    def metrics(self) -> dict[str, float]:
        """Accuracy, F1 of the positive label, macro F1 and Matthews' correlation."""
        return {name: float(score(self.counts)) for name, score in self.scores.items()}

    @property
    def details(self) -> dict[str, float]:
        """F1 of each of more than two labels."""
        return self.name_f1(self.counts) if len(self.names) > 2 else {}

    @property
    def statistics(self) -> dict[str, Statistic]:
        """The metrics of weighted examples; only the accuracy if labels are very many."""
        if len(self.names) > MAX_INTERVAL_LABELS:
            return {"accuracy": partial(weighted_mean, self.is_right)}
        count = partial(count_labels, *self.ids, len(self.names))
        return {
            name: lambda weights, score=score: score(count(weights))  # type: ignore[misc]
            for name, score in self.scores.items()
        }

    @property
    def confusion(self) -> tuple[tuple[str, ...], dict[tuple[int, int], int]]:
        """The confusion matrix of all labels."""
        return self.names, confuse_labels(*self.ids, len(self.names))

    @property
    def is_right(self) -> Flags:
        """Whether each predicted label is the true one."""
        truth, guess = self.ids
        flags: Flags = truth == guess
        return flags

    def contrast(self, number: int) -> tuple[str, str]:
        """Return the true label and the predicted one."""
        return ", ".join(self.examples[number].label_names), self.predictions[number].label

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warn if all texts get the same label."""
        found = {prediction.label for prediction in self.predictions}
        if len(found) != 1:
            return ()
        advice = "try more epochs, a higher learning rate, or --class-weights balanced"
        shown = f"every prediction is {show(next(iter(found)))!r}: the model tells nothing apart"
        return (f"{shown}; {advice}",)


@dataclass(frozen=True)
class JointScoring(LabelScoring):
    """F1s of several labels, and the share of texts with exactly the true ones."""

    @cached_property
    def labels(self) -> tuple[list[set[str]], list[set[str]], list[set[str]]]:
        """The labels of each text that were rightly predicted, predicted, and true."""
        truth = [set(example.labels or ()) for example in self.examples]
        guess = [set(found.labels) for found in self.predictions]
        return [one & other for one, other in zip(truth, guess, strict=True)], guess, truth

    @cached_property
    def by_label(self) -> Counts:
        """The counts of each label over all texts, `[labels]`."""
        ids = {name: id_ for id_, name in enumerate(self.names)}
        numbers = (
            np.array([ids[label] for one in sets for label in one], np.int64)
            for sets in self.labels
        )
        return Counts(*(np.bincount(found, minlength=len(ids)) for found in numbers))

    @cached_property
    def by_text(self) -> Counts:
        """The counts of each text over all labels, `[texts, 1]`."""
        return Counts(*(np.array([[len(one)] for one in sets]) for sets in self.labels))

    @property
    def num_wrong(self) -> npt.NDArray[np.int64]:
        """The number of missing and extra labels of each text."""
        _, guess, truth = self.labels
        return np.array([len(one ^ other) for one, other in zip(guess, truth, strict=True)])

    @property
    def metrics(self) -> dict[str, float]:
        """Micro F1, macro F1 and subset accuracy."""
        return {
            "micro_f1": float(self.by_label.pool().f1),
            "macro_f1": float(self.by_label.f1.mean(axis=-1)),
            "subset_accuracy": float((self.num_wrong == 0).mean()),
        }

    @property
    def details(self) -> dict[str, float]:
        """F1 of each label."""
        return self.name_f1(self.by_label)

    @property
    def statistics(self) -> dict[str, Statistic]:
        """The metrics of weighted texts; no macro F1 for too many labels."""
        scores: dict[str, Statistic] = {
            "micro_f1": lambda weights: self.by_text.add_up(weights).pool().f1,
            "subset_accuracy": lambda weights: weighted_mean(self.num_wrong == 0, weights),
        }
        num_labels = len(self.names)
        if num_labels <= MAX_RESAMPLED and num_labels * len(self.examples) <= MAX_FLAGS:
            _, guess, truth = self.labels
            flags = (
                np.array([[name in one for name in self.names] for one in sets])
                for sets in (truth, guess)
            )
            counts = count_label_sets(*flags)
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
    def errors(self) -> npt.NDArray[np.int64]:
        """The number of missing and extra labels."""
        return self.num_wrong

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
            return ("no text gets a label; --threshold best searches for a better one",)
        return (f"every prediction is {show(', '.join(*found))!r}",) if len(found) == 1 else ()
