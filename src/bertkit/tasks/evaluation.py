"""What is found when predictions are held against the truth."""

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from bertkit.metrics.calibration import CalibrationError, measure_calibration

BOOTSTRAP_SEED = 0
CALIBRATION = "calibration_error"  # among metrics


@dataclass(frozen=True)
class Mistake:
    """A prediction that is wrong, or far off.

    Attributes:
        place: file and line of the example.
        text: what was read.
        expected: what is right.
        predicted: what was said instead.
        badness: how wrong; the worst mistakes have the largest.
    """

    place: str
    text: str
    expected: str
    predicted: str
    badness: float


@dataclass(frozen=True)
class Evaluation:
    """Predictions against the truth.

    Attributes:
        metrics: by name.
        intervals: lowest and highest plausible value of metrics, by bootstrap.
        labels: names of the confusion matrix's rows and columns; empty where there is none.
        confusion: how often one label was taken for another, by the numbers of the true and the
            predicted one; what never came isn't in it.
        confidences: of each judged answer, from 0 to 1; empty where there is none.
        is_right: whether that answer was.
        calibration: how far the two lie apart; None where there are none.
        mistakes: the worst first.
        warnings: what is odd, such as that all predictions are one label.
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
    """The same with how far confidences and accuracy lie apart, where it has both."""
    confidences, is_right = evaluation.confidences, evaluation.is_right
    if confidences is None or is_right is None or not len(confidences):
        return evaluation
    found = measure_calibration(confidences, is_right, seed=BOOTSTRAP_SEED)
    return replace(evaluation, calibration=found)


def tell_calibration(evaluation: Evaluation) -> Evaluation:
    """The same with the calibration error among its metrics, too."""
    evaluation = calibrate(evaluation)
    found = evaluation.calibration
    if found is None:
        return evaluation
    intervals = dict(evaluation.intervals)
    if found.low is not None and found.high is not None:
        intervals[CALIBRATION] = (found.low, found.high)
    metrics = {**evaluation.metrics, CALIBRATION: found.value}
    return replace(evaluation, metrics=metrics, intervals=intervals)
