"""Evaluation of multiple choice, and fitting of its temperature."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bertkit.metrics.bootstrap import bootstrap_interval
from bertkit.metrics.calibration import fit_temperature
from bertkit.metrics.examples import weighted_mean
from bertkit.tasks.choose.choice import Choice
from bertkit.tasks.choose.examples import ChooseExample
from bertkit.tasks.evaluation import Evaluation, Mistake, tell_calibration
from bertkit.tasks.logits import Logits

BOOTSTRAP_SEED = 0
MAX_MISTAKES = 100
SHOWN_CHARS = 5000  # shown of a mistake's context
NO_CHOICE = -1e4  # logit that pads examples with fewer choices

Flags = npt.NDArray[np.bool_]


def measure(examples: Sequence[ChooseExample], choices: Sequence[Choice]) -> dict[str, float]:
    """Compute the accuracy."""
    return {"accuracy": float(_find_hits(examples, choices).mean())}


def evaluate(examples: Sequence[ChooseExample], choices: Sequence[Choice]) -> Evaluation:
    """Compute accuracy with its interval, calibration, and the most confident mistakes."""
    is_right = _find_hits(examples, choices)
    confidences = np.array([choice.probability for choice in choices])
    found = bootstrap_interval(
        lambda weights: weighted_mean(is_right, weights), len(is_right), seed=BOOTSTRAP_SEED
    )
    evaluation = Evaluation(
        metrics={"accuracy": float(is_right.mean())},
        intervals={"accuracy": (found.low, found.high)},
        confidences=confidences,
        is_right=is_right,
        mistakes=_list_mistakes(examples, choices, is_right),
        warnings=_warn(examples, choices, is_right),
    )
    return tell_calibration(evaluation)


def find_temperature(examples: Sequence[ChooseExample], logits: Sequence[Logits]) -> float | None:
    """Fit the temperature by likelihood; None if all predictions are correct."""
    truth = np.array([example.label for example in examples])
    most = max(map(len, logits))
    scores = np.full((len(logits), most), NO_CHOICE)
    for row, values in zip(scores, logits, strict=True):
        row[: len(values)] = values - values.max()
    if (scores.argmax(axis=1) == truth).all():
        return None
    return fit_temperature(scores, truth)


def _find_hits(examples: Sequence[ChooseExample], choices: Sequence[Choice]) -> Flags:
    pairs = zip(examples, choices, strict=True)
    return np.array([example.label == choice.index for example, choice in pairs])


def _list_mistakes(
    examples: Sequence[ChooseExample], choices: Sequence[Choice], is_right: Flags
) -> tuple[Mistake, ...]:
    wrong = np.flatnonzero(~is_right).tolist()
    wrong.sort(key=lambda number: -choices[number].probability)
    return tuple(
        _describe_mistake(examples[number], choices[number]) for number in wrong[:MAX_MISTAKES]
    )


def _describe_mistake(example: ChooseExample, choice: Choice) -> Mistake:
    assert example.label is not None, "only examples with a right choice are measured"
    return Mistake(
        place=example.place,
        text=f"{example.context} {example.question}".strip()[:SHOWN_CHARS],
        expected=example.choices[example.label],
        predicted=choice.text,
        badness=choice.probability,
    )


def _warn(
    examples: Sequence[ChooseExample], choices: Sequence[Choice], is_right: Flags
) -> tuple[str, ...]:
    """Warn if the model always predicts the same choice, or is no better than chance."""
    warnings = []
    indexes = {choice.index for choice in choices}
    if len(indexes) == 1:
        warnings.append(f"every prediction is choice {next(iter(indexes))}")
    chance = float(np.mean([1.0 / len(example.choices) for example in examples]))
    if is_right.mean() <= chance:
        warnings.append(
            f"accuracy ({is_right.mean():.4f}) isn't above that of guessing ({chance:.4f}): the"
            " model has learned nothing; try more epochs, another learning rate or another seed"
        )
    return tuple(warnings)
