"""Evaluation of predicted numbers against true ones."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from bertkit.metrics.bootstrap import bootstrap_interval
from bertkit.metrics.correlation import (
    mean_absolute_error,
    mean_squared_error,
    pearson,
    spearman,
)
from bertkit.tasks.evaluation import Evaluation, Mistake
from bertkit.tasks.regress.examples import RegressExample

BOOTSTRAP_SEED = 0
MAX_MISTAKES = 100
SHOWN_CHARS = 5000  # shown of a mistake's text
SAME_SHARE = 0.01  # with a lower std, relative to the truth, predictions count as constant

Numbers = npt.NDArray[np.float64]
SCORES: dict[str, Callable[[Numbers, Numbers, Numbers | None], Numbers]] = {
    "pearson": pearson,
    "spearman": spearman,
    "mean_squared_error": mean_squared_error,
    "mean_absolute_error": mean_absolute_error,
}


def measure(examples: Sequence[RegressExample], values: Sequence[float]) -> dict[str, float]:
    """Compute correlations (NaN if all true or all predicted numbers are equal) and errors."""
    truth, guess = _read(examples, values)
    return {name: float(score(truth, guess, None)) for name, score in SCORES.items()}


def evaluate(examples: Sequence[RegressExample], values: Sequence[float]) -> Evaluation:
    """Compute the same with intervals, and list the predictions with the largest errors."""
    truth, guess = _read(examples, values)
    intervals = {}
    for name, score in SCORES.items():
        found = bootstrap_interval(
            lambda weights, score=score: score(truth, guess, weights),  # type: ignore[misc]
            len(truth),
            seed=BOOTSTRAP_SEED,
        )
        intervals[name] = (found.low, found.high)
    return Evaluation(
        metrics=measure(examples, values),
        intervals=intervals,
        mistakes=_list_mistakes(examples, guess, np.abs(guess - truth)),
        warnings=_warn(truth, guess),
    )


def _read(examples: Sequence[RegressExample], values: Sequence[float]) -> tuple[Numbers, Numbers]:
    truth = np.array([example.number for example in examples], dtype=np.float64)
    return truth, np.array(values, dtype=np.float64)


def _list_mistakes(
    examples: Sequence[RegressExample], guess: Numbers, errors: Numbers
) -> tuple[Mistake, ...]:
    worst = np.argsort(-errors, kind="stable")[:MAX_MISTAKES].tolist()
    return tuple(
        Mistake(
            place=examples[number].place,
            text=examples[number].texts.show()[:SHOWN_CHARS],
            expected=f"{examples[number].number:.6g}",
            predicted=f"{guess[number]:.4f}",
            badness=float(errors[number]),
        )
        for number in worst
        if errors[number] > 0.0
    )


def _warn(truth: Numbers, guess: Numbers) -> tuple[str, ...]:
    if guess.std() < SAME_SHARE * truth.std():
        return (f"every prediction is about {guess.mean():.4g}",)
    return ()
