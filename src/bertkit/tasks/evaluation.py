"""Results of evaluating predictions against true answers."""

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from bertkit.metrics.calibration import CalibrationError, measure_calibration

BOOTSTRAP_SEED = 0
CALIBRATION = "calibration_error"  # key in `metrics`


@dataclass(frozen=True)
class Mistake:
    """A wrong prediction, or one with a large error.

    Attributes:
        place: file and line of the example.
        text: the input.
        expected: the true answer.
        predicted: the predicted answer.
        badness: size of the error; larger is worse.
    """

    place: str
    text: str
    expected: str
    predicted: str
    badness: float


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of a set of predictions.

    Attributes:
        metrics: values by name.
        intervals: lower and upper bounds of the metrics' bootstrap intervals.
        labels: names of the confusion matrix's rows and columns; empty if there is no matrix.
        confusion: sparse confusion matrix: counts by the ids of the true and the predicted label;
            pairs that never occur are left out.
        confidences: confidence of each prediction, from 0 to 1; None if the task has none.
        is_right: whether each of these predictions is correct.
        calibration: calibration error of the two; None if the task has none.
        mistakes: the worst first.
        warnings: problems found, such as that all predictions are one label.
    """

    metrics: dict[str, float]
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    confusion: dict[tuple[int, int], int] | None = None
    confidences: npt.NDArray[np.float64] | None = None
    is_right: npt.NDArray[np.bool_] | None = None
    calibration: CalibrationError | None = None
    mistakes: tuple[Mistake, ...] = ()
    warnings: tuple[str, ...] = ()


def calibrate(evaluation: Evaluation) -> Evaluation:
    """Add the calibration error, if the evaluation has confidences."""
    confidences, is_right = evaluation.confidences, evaluation.is_right
    if confidences is None or is_right is None or not len(confidences):
        return evaluation
    found = measure_calibration(confidences, is_right, seed=BOOTSTRAP_SEED)
    return replace(evaluation, calibration=found)


def tell_calibration(evaluation: Evaluation) -> Evaluation:
    """Add the calibration error, to the metrics as well."""
    evaluation = calibrate(evaluation)
    found = evaluation.calibration
    if found is None:
        return evaluation
    intervals = dict(evaluation.intervals)
    if found.low is not None and found.high is not None:
        intervals[CALIBRATION] = (found.low, found.high)
    metrics = {**evaluation.metrics, CALIBRATION: found.value}
    return replace(evaluation, metrics=metrics, intervals=intervals)
