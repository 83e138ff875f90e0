"""Evaluations: predictions compared with the truth, in metrics, intervals and mistakes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from bertkit.reports.text import is_share
from bertkit.tasks.metrics.calibration import CalibrationError, measure_calibration
from bertkit.tasks.metrics.correlation import bootstrap_interval
from bertkit.tasks.metrics.shares import wilson_interval

MAX_MISTAKES = 100
MISTAKE_CHARS = 5000  # shown of a mistake's text
CALIBRATION = "calibration_error"  # key in `metrics`
SHARES_RIGHT = frozenset({"accuracy", "exact", "exact_match"})  # of the examples

Statistic = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Mistake:
    """A wrong prediction, or one with a large error."""

    place: str  # file and line of the example
    text: str
    expected: str
    predicted: str
    error: float  # as in `TaskScoring`
    confidence: float | None = None  # the model's probability of the prediction


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of a set of predictions."""

    metrics: dict[str, float]
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)  # 95 %
    labels: tuple[str, ...] = ()  # of the confusion matrix; empty if there is none
    confusion: dict[tuple[int, int], int] | None = None  # (true, predicted) label ids → count
    confidences: Numbers | None = None  # of each prediction, from 0 to 1
    is_right: Flags | None = None
    calibration: CalibrationError | None = None
    mistakes: tuple[Mistake, ...] = ()  # the worst first
    warnings: tuple[str, ...] = ()


class ShownExample(Protocol):
    """An example, as a report shows it."""

    @property
    def place(self) -> str:
        """File and line."""

    @property
    def shown(self) -> str:
        """Its text."""


class Probable(Protocol):
    """A prediction with a probability."""

    @property
    def probability(self) -> float:
        """From 0 to 1."""


Example = TypeVar("Example", bound=ShownExample)
Prediction = TypeVar("Prediction")
Decision = TypeVar("Decision", bound=Probable)


@dataclass(frozen=True)
class TaskScoring(ABC, Generic[Example, Prediction]):
    """Predictions beside the examples that they are of; each part is computed when it is read."""

    # Whether confidences give a calibration error: no, in a picture, or as a metric too.
    calibration: ClassVar[Literal["none", "picture", "metric"]] = "none"
    # Whether a prediction is one decision, whose confidence is that of the prediction.
    is_one_decision: ClassVar[bool] = False

    examples: Sequence[Example]
    predictions: Sequence[Prediction]

    @property
    @abstractmethod
    def metrics(self) -> Mapping[str, float]:
        """The metrics after each epoch; that which selects the best one is among them."""

    @property
    def details(self) -> Mapping[str, float]:
        """Further metrics, once at the end."""
        return {}

    @property
    def statistics(self) -> Mapping[str, Statistic]:
        """Metrics as functions of the examples' weights, for bootstrap intervals."""
        return {}

    @property
    def confusion(self) -> tuple[tuple[str, ...], dict[tuple[int, int], int] | None]:
        """The labels and the counts of the confusion matrix, as in `Evaluation`."""
        return (), None

    @property
    def confidences(self) -> Numbers | None:
        """Confidence of each decision, from 0 to 1; None if there is none."""
        return None

    @property
    def is_right(self) -> Flags | None:
        """Whether each decision that has a confidence is right."""
        return None

    @property
    def errors(self) -> npt.NDArray[np.number]:
        """How wrong each prediction is, to list the worst first; 0 if it is right."""
        return np.zeros(len(self.examples))

    def show_example(self, number: int) -> str:
        """Return the text of an example beside its mistake."""
        return self.examples[number].shown[:MISTAKE_CHARS]

    def contrast(self, number: int) -> tuple[str, str]:
        """Return what was expected and what was predicted instead."""
        raise NotImplementedError

    def list_mistakes(self) -> Iterator[Mistake]:
        """Yield the predictions with the largest errors."""
        errors = self.errors
        confidences = self.confidences if self.is_one_decision else None
        for number in np.argsort(-errors, kind="stable")[:MAX_MISTAKES].tolist():
            if errors[number] > 0:
                found, text = self.contrast(number), self.show_example(number)
                confidence = None if confidences is None else float(confidences[number])
                place = self.examples[number].place
                yield Mistake(place, text, *found, float(errors[number]), confidence)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the predictions, such as that all are alike."""
        return ()

    def find_interval(self, name: str, value: float) -> tuple[float, float] | None:
        """Return the 95 % interval of a metric; None if the examples are too few or alike for one.

        That of a share of right examples is Wilson's, and others' a bootstrap's. If resamples are
        all alike, as when all of a few examples are right, a share has Wilson's too.
        """
        number = len(self.examples)
        if not (self.is_one_decision and name in SHARES_RIGHT):
            low, high = bootstrap_interval(self.statistics[name], number)
            if low != high:
                return low, high
        return wilson_interval(value, number) if is_share(name) else None

    def evaluate(self) -> Evaluation:
        """Compute all parts, once at the end."""
        labels, confusion = self.confusion
        metrics = {**self.metrics, **self.details}
        found = ((name, self.find_interval(name, metrics[name])) for name in self.statistics)
        intervals = {name: interval for name, interval in found if interval is not None}
        confidences, is_right, calibration = self.confidences, self.is_right, None
        if self.calibration != "none" and confidences is not None and len(confidences):
            assert is_right is not None, "each decision with a confidence is right or wrong"
            calibration = measure_calibration(confidences, is_right)
            if self.calibration == "metric":
                metrics[CALIBRATION] = calibration.value
                if calibration.low is not None and calibration.high is not None:
                    intervals[CALIBRATION] = (calibration.low, calibration.high)
        return Evaluation(
            metrics,
            intervals,
            labels,
            confusion,
            confidences,
            is_right,
            calibration,
            tuple(self.list_mistakes()),
            self.warnings,
        )


class ConfidentScoring(TaskScoring[Example, Decision]):
    """Base of scorings of predictions that are right or wrong, each with a `probability`."""

    is_one_decision = True

    @property
    def confidences(self) -> Numbers:
        """The probabilities of the predictions."""
        return np.array([one.probability for one in self.predictions])

    @property
    @abstractmethod
    def is_right(self) -> Flags:
        """Whether each prediction is right."""

    @property
    def errors(self) -> Numbers:
        """The confidence of each wrong prediction."""
        return np.where(self.is_right, 0.0, self.confidences)
