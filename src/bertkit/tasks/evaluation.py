"""Evaluations: predictions compared with the truth, in metrics, intervals and mistakes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from bertkit.tasks.metrics.calibration import CalibrationError, measure_calibration
from bertkit.tasks.metrics.correlation import bootstrap_interval

MAX_MISTAKES = 100
MISTAKE_CHARS = 5000  # shown of a mistake's text
CALIBRATION = "calibration_error"  # key in `metrics`

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
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)  # of the bootstrap
    labels: tuple[str, ...] = ()  # of the confusion matrix; empty if there is none
    confusion: dict[tuple[int, int], int] | None = None  # (true, predicted) label ids → count
    confidences: Numbers | None = None  # of each prediction, from 0 to 1
    is_right: Flags | None = None
    calibration: CalibrationError | None = None
    mistakes: tuple[Mistake, ...] = ()  # the worst first
    warnings: tuple[str, ...] = ()

    def calibrate(self, *, is_metric: bool) -> "Evaluation":
        """Add the calibration error if there are confidences, to the metrics too if it is one."""
        if self.confidences is None or self.is_right is None or not len(self.confidences):
            return self
        found = measure_calibration(self.confidences, self.is_right)
        evaluation = replace(self, calibration=found)
        if not is_metric:
            return evaluation
        intervals = dict(self.intervals)
        if found.low is not None and found.high is not None:
            intervals[CALIBRATION] = (found.low, found.high)
        metrics = {**self.metrics, CALIBRATION: found.value}
        return replace(evaluation, metrics=metrics, intervals=intervals)


Example = TypeVar("Example")
Prediction = TypeVar("Prediction")


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
    def errors(self) -> npt.NDArray[Any]:
        """How wrong each prediction is, to list the worst first; 0 if it is right."""
        return np.zeros(len(self.examples))

    def show_example(self, number: int) -> str:
        """Return the text of an example beside its mistake."""
        example: Any = self.examples[number]
        text: str = example.shown[:MISTAKE_CHARS]
        return text

    def contrast(self, number: int) -> tuple[str, str]:
        """Return what was expected and what was predicted instead."""
        raise NotImplementedError

    def list_mistakes(self) -> Iterator[Mistake]:
        """Yield the predictions with the largest errors."""
        errors = self.errors
        confidences = self.confidences if self.is_one_decision else None
        for number in np.argsort(-errors, kind="stable")[:MAX_MISTAKES].tolist():
            if errors[number] > 0:
                example: Any = self.examples[number]
                found, text = self.contrast(number), self.show_example(number)
                confidence = None if confidences is None else float(confidences[number])
                yield Mistake(example.place, text, *found, float(errors[number]), confidence)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the predictions, such as that all are alike."""
        return ()

    def evaluate(self) -> Evaluation:
        """Compute all parts, once at the end."""
        labels, confusion = self.confusion
        evaluation = Evaluation(
            metrics={**self.metrics, **self.details},
            intervals={
                name: bootstrap_interval(statistic, len(self.examples))
                for name, statistic in self.statistics.items()
            },
            labels=labels,
            confusion=confusion,
            confidences=self.confidences,
            is_right=self.is_right,
            mistakes=tuple(self.list_mistakes()),
            warnings=self.warnings,
        )
        if self.calibration == "none":
            return evaluation
        return evaluation.calibrate(is_metric=self.calibration == "metric")


class ConfidentScoring(TaskScoring[Example, Prediction]):
    """Base of scorings of predictions that are right or wrong, each with a `probability`."""

    is_one_decision = True

    @property
    def confidences(self) -> Numbers:
        """The probabilities of the predictions."""
        found: Sequence[Any] = self.predictions
        return np.array([one.probability for one in found])

    @property
    @abstractmethod
    def is_right(self) -> Flags:
        """Whether each prediction is right."""

    @property
    def errors(self) -> Numbers:
        """The confidence of each wrong prediction."""
        return np.where(self.is_right, 0.0, self.confidences)
