"""Judge the labels of rows by predictions of layers that haven't seen them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bertkit.recipes.review.label_errors import (
    Flags,
    Ids,
    LabelErrors,
    Numbers,
    find_label_errors,
    plant_errors,
)
from bertkit.tasks.batch import Encoded, Logits
from bertkit.tasks.task import AnyTask


@dataclass(frozen=True)
class Judgment:
    """What is thought of the label of each row.

    Attributes:
        errors: how suspicious each label is, and which count as errors.
        likely: what is expected instead of each label.
        probability: of that, from 0 to 1; NaN where there is none.
    """

    errors: LabelErrors
    likely: Sequence[str]
    probability: Numbers


def judge(task: AnyTask, encoded: Sequence[Encoded], logits: Sequence[Logits]) -> Judgment:
    """Judge the label of each row by its out-of-fold logits."""
    probabilities = find_probabilities(task, logits)
    errors = find_label_errors(probabilities, list_labels(encoded))
    likely = [task.labels[number] for number in errors.likely.tolist()]
    return Judgment(errors, likely, probabilities[np.arange(len(likely)), errors.likely])


def find_probabilities(task: AnyTask, logits: Sequence[Logits]) -> Numbers:
    """Return the probability of each label, `[rows, labels]`."""
    scores = np.array([rows.mean(axis=0) for rows in logits], dtype=np.float64)
    powers = np.exp((scores - scores.max(axis=1, keepdims=True)) / task.temperature)
    shares: Numbers = powers / powers.sum(axis=1, keepdims=True)
    return shares


def list_labels(encoded: Sequence[Encoded]) -> Ids:
    """Return the id of each row's label."""
    return np.concatenate([one.label_rows for one in encoded]).astype(np.int64)


def plant(
    task: AnyTask, encoded: Sequence[Encoded], share: float, seed: int
) -> tuple[list[Encoded], Flags]:
    """Exchange a share of the labels; return the rows with them, and which were exchanged."""
    del task
    changed, is_planted = plant_errors(list_labels(encoded), share, seed)
    rows = zip(encoded, changed, strict=True)
    return [replace(one, labels=_as_row(label)) for one, label in rows], is_planted


def _as_row(label: np.int64) -> NDArray[np.int64]:
    return np.array([label])
