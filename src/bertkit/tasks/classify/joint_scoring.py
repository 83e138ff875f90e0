"""Any number of labels a text: predictions held against the truth."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from bertkit.metrics.bootstrap import bootstrap_interval
from bertkit.metrics.calibration import expected_calibration_error, find_reliability
from bertkit.metrics.multilabel import count_label_sets, subset_accuracy
from bertkit.tasks.classify.decoding import Classification
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.classify.scoring import BOOTSTRAP_SEED, MAX_MISTAKES, SHOWN_CHARS, list_names
from bertkit.tasks.evaluation import Evaluation, Mistake

NO_LABEL = "(no label)"

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]
Statistic = Callable[[Numbers | None], Numbers]


def measure(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    labels: Sequence[str],
) -> dict[str, float]:
    """Micro F1, macro F1, and the share of texts all of whose labels are right."""
    scores = _list_scores(*_mark(examples, predictions, list_names(examples, labels)))
    return {name: float(score(None)) for name, score in scores.items()}


def evaluate(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    labels: Sequence[str],
) -> Evaluation:
    """The same with intervals, F1 of each label, how sure is right, and the worst mistakes."""
    names = list_names(examples, labels)
    truth, guess = _mark(examples, predictions, names)
    scores = _list_scores(truth, guess)
    metrics = {name: float(score(None)) for name, score in scores.items()}
    by_label = count_label_sets(truth, guess).add_up().f1.tolist()
    metrics |= {f"f1 {name}": value for name, value in zip(names, by_label, strict=True)}
    shares = np.array([list(found.probabilities.values()) for found in predictions])
    known = slice(len(labels))
    confidences = np.where(guess[:, known], shares, 1.0 - shares)
    is_right = truth[:, known] == guess[:, known]
    bins = find_reliability(confidences.ravel(), is_right.ravel())
    metrics["calibration_error"] = expected_calibration_error(bins)
    return Evaluation(
        metrics=metrics,
        intervals={name: _find_interval(score, len(truth)) for name, score in scores.items()},
        confidences=confidences.ravel(),
        is_right=is_right.ravel(),
        mistakes=_list_mistakes(examples, predictions, (truth != guess).sum(axis=1)),
        warnings=_warn(predictions),
    )


def _mark(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    names: Sequence[str],
) -> tuple[Flags, Flags]:
    """Which labels each text has, and which it was given, `[examples, labels]`."""
    ids = {name: id_ for id_, name in enumerate(names)}
    truth = np.zeros((len(examples), len(names)), dtype=np.bool_)
    guess = truth.copy()
    for row, (example, found) in enumerate(zip(examples, predictions, strict=True)):
        truth[row, [ids[label] for label in example.labels or ()]] = True
        guess[row, [ids[label] for label in found.labels]] = True
    return truth, guess


def _list_scores(truth: Flags, guess: Flags) -> dict[str, Statistic]:
    counts = count_label_sets(truth, guess)
    return {
        "micro_f1": lambda weights: counts.add_up(weights).pool().f1,
        "macro_f1": lambda weights: counts.add_up(weights).f1.mean(axis=-1),
        "subset_accuracy": lambda weights: subset_accuracy(truth, guess, weights),
    }


def _find_interval(score: Statistic, number: int) -> tuple[float, float]:
    found = bootstrap_interval(score, number, seed=BOOTSTRAP_SEED)
    return found.low, found.high


def _list_mistakes(
    examples: Sequence[ClassifyExample],
    predictions: Sequence[Classification],
    num_wrong: npt.NDArray[np.int64],
) -> tuple[Mistake, ...]:
    """The texts with the most labels that are missing or too many."""
    worst = np.argsort(-num_wrong, kind="stable")[:MAX_MISTAKES].tolist()
    return tuple(
        Mistake(
            place=examples[number].place,
            text=examples[number].texts.show()[:SHOWN_CHARS],
            expected=", ".join(sorted(examples[number].labels or ())) or NO_LABEL,
            predicted=", ".join(sorted(predictions[number].labels)) or NO_LABEL,
            badness=float(num_wrong[number]),
        )
        for number in worst
        if num_wrong[number]
    )


def _warn(predictions: Sequence[Classification]) -> tuple[str, ...]:
    found = {prediction.labels for prediction in predictions}
    if found == {()}:
        return ("no text is given a label; find_threshold looks for a better threshold",)
    return (f"every prediction is {', '.join(*found)!r}",) if len(found) == 1 else ()
