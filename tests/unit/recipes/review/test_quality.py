"""Learning curves of known laws, and labels that are confused both ways."""

import numpy as np
import pytest
from tests.closeness import assert_close, close

from bertkit.recipes.review.quality import describe_confused, fit_curve, measure_curve
from bertkit.tasks.classify.decoding import Classification
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.classify.scoring import ClassifyScoring
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.texts import Texts

SIZES = np.array([160.0, 280.0, 440.0, 600.0, 800.0])


def follow(limit: float, gain: float, power: float, sizes: np.ndarray = SIZES) -> np.ndarray:
    return limit - gain * sizes**-power


def fit(scores: np.ndarray, noise: np.ndarray | float = 0.0):
    """The curve of these scores, and of as many resampled ones as noise is added to."""
    return fit_curve(SIZES, np.vstack([scores, np.asarray(scores) + noise]))


@pytest.mark.parametrize(
    ("limit", "gain", "power"), [(0.9, 2.0, 0.5), (0.7, 30, 1.0), (0.95, 1, 0.2)]
)
def test_a_power_law_is_found_again(limit, gain, power):
    curve = fit(follow(limit, gain, power))
    for number in (800, 1600, 3200):
        expected = follow(limit, gain, power, np.array([number]))[0]
        assert_close(curve.predict(number)[0], expected, within=0.003)


def test_noisy_scores_are_fitted_as_by_scipy():
    """Weighted least squares, beside those of a general solver."""
    from scipy.optimize import curve_fit

    scores = follow(0.85, 3.0, 0.6) + np.random.default_rng(1).normal(0, 0.003, 5)

    def law(sizes, limit, gain, power):
        return follow(limit, gain, power, sizes)

    found, _ = curve_fit(law, SIZES, scores, (0.9, 2.0, 0.5), SIZES**-0.5, maxfev=9999)
    reference = follow(*found, np.array([800.0, 1600.0]))
    last, twice = (fit(scores).predict(number)[0] for number in (800, 1600))
    assert last == close(scores[-1])
    assert_close(twice - last, reference[1] - reference[0], within=0.003)


@pytest.mark.parametrize(
    "scores", [[0.8, 0.7, 0.6, 0.5, 0.4], [0.5] * 5, [0.5, 0.6, np.nan, 0.7, 0.8]]
)
def test_scores_that_say_nothing_about_more_rows_have_no_curve(scores):
    assert fit(scores) is None


def test_the_interval_is_that_of_resampled_rows():
    scores = follow(0.9, 2.0, 0.5)
    noise = np.random.default_rng(1).normal(0, [0.02, 0.0], (500, 2))
    curve = fit(scores, noise[:, :1])
    score, interval = curve.predict(1600)
    assert np.array(interval) - score == close(np.array([-0.039, 0.039]), within=5e-3)
    assert curve.describe("macro_f1").startswith("about 85.")
    assert curve.describe("macro_f1").endswith(" %) with twice the rows")
    assert fit(scores, 10 * noise[:, :1]) is None  # anything may come
    assert fit(scores, np.full((3, 5), np.nan)) is None
    assert max(fit(follow(1.0, 9, 0.6)).predict(number)[0] for number in (1e4, 1e9)) <= 1.0


def test_a_curve_of_predictions_resamples_the_same_rows():
    """Rows that get right one after another, as layers are solved on more of them."""
    examples = [ClassifyExample(Texts("t"), ("ab"[n % 2],), "") for n in range(400)]
    scorings = []
    for score in (0.60, 0.70, 0.76, 0.79, 0.81):
        right = [n % 100 < 100 * score for n in range(400)]
        labels = ["ab"[n % 2 if flag else 1 - n % 2] for n, flag in enumerate(right)]
        guesses = [Classification(label, 0.9, {}, (label,)) for label in labels]
        scorings.append(ClassifyScoring(examples, guesses, ("a", "b"), None))
    curve = measure_curve(scorings, "accuracy", SIZES)
    score, (low, high) = curve.predict(1600)
    assert 0.81 < score < 0.88
    assert 0.77 < low < score < high < 0.91
    assert high - low < 0.1  # of 400 rows; of unpaired ones it would be far wider


def test_labels_are_confused_both_ways():
    confusion = {(0, 0): 9, (0, 1): 2, (1, 0): 3, (2, 1): 4, (1, 2): 1, (2, 0): 1}
    evaluation = Evaluation({}, labels=("billing", "refund", "other"), confusion=confusion)
    assert describe_confused(evaluation, 2) == [
        "billing ↔ refund (5)",
        "refund ↔ other (5)",
    ]
    assert describe_confused(Evaluation({}), 3) == []
