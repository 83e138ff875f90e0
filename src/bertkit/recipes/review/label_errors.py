"""Find labels that look wrong, from predictions of models that didn't train on the row.

All functions are pure and take out-of-fold predictions: each row is predicted by a model of the
other folds. A row is suspicious by its normalized margin, the probability of the likeliest other
label less that of its own; how many rows are wrong is confident learning's count. To check the
whole, `plant_errors` exchanges some labels; the caller predicts again, and `find_planted` says how
many of them are found at the same cut.

Source: Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset
Labels", JAIR 2021.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]

UNJUDGED = -1.0  # the suspicion of a row that can't be judged, which is the lowest
NO_LABEL = -1
SCORES_PER_BLOCK = 1 << 22  # 32 MB


@dataclass(frozen=True)
class LabelErrors:
    """What looks wrong, an entry a row.

    Attributes:
        suspicion: `[rows]`, higher is more suspicious; above 0, another label is likelier. Rows
            with the same suspicion are ranked in their order.
        likely: `[rows]`, the id of the label expected instead.
        is_error: `[rows]`, whether it counts as an error.
    """

    suspicion: Numbers
    likely: Ids
    is_error: Flags

    @property
    def num_errors(self) -> int:
        """How many labels count as errors."""
        return int(self.is_error.sum())

    @property
    def ranking(self) -> Ids:
        """The numbers of the rows, the most suspicious first."""
        return rank(self.suspicion)


def rank(suspicion: Numbers) -> Ids:
    """Return the numbers of the rows, the most suspicious first, ties in order."""
    return np.argsort(-suspicion, kind="stable")


def find_label_errors(probabilities: Numbers, labels: Ids) -> LabelErrors:
    """Find wrong labels of rows that have one label each.

    A row whose label no other row has can't be judged: no model has seen the label.

    Args:
        probabilities: out-of-fold, `[rows, classes]`; read in blocks and never copied whole.
        labels: the given ids, `[rows]`.
    """
    counts = np.bincount(labels, minlength=probabilities.shape[1])
    own = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    thresholds = np.bincount(labels, own, minlength=len(counts)) / np.maximum(counts, 1)
    thresholds[counts == 0] = np.inf  # a label that no row has is no alternative
    likely, confident = labels.copy(), labels.copy()
    margin = np.full(len(labels), UNJUDGED)
    judged = np.flatnonzero(counts[labels] > 1)
    for start in range(0, len(judged), size := max(1, SCORES_PER_BLOCK // len(counts))):
        block = judged[start : start + size]
        scores = probabilities[block].astype(np.float64)
        confident[block] = _find_confident(scores, thresholds)
        scores[np.arange(len(block)), labels[block]] = -np.inf
        likely[block] = scores.argmax(axis=1)
        margin[block] = np.maximum(scores.max(axis=1) - own[block], UNJUDGED)
    chosen = rank(margin)[: _count_errors(labels, confident, counts)]
    is_error = np.zeros(len(labels), np.bool_)
    is_error[chosen] = margin[chosen] > 0
    return LabelErrors(margin, likely, is_error)


def _find_confident(scores: Numbers, thresholds: Numbers) -> Ids:
    """Return the likeliest label that reaches the mean probability of its rows, or `NO_LABEL`."""
    reached = np.where(scores >= thresholds, scores, -1.0)
    return np.where(reached.max(axis=1) < 0, NO_LABEL, reached.argmax(axis=1))


def _count_errors(labels: Ids, confident: Ids, counts: Ids) -> int:
    """Estimate how many labels are wrong from rows that are confidently of a label.

    The rows of each label that are confidently of another are its share, scaled to all its rows.
    """
    known = confident != NO_LABEL
    total = np.bincount(labels[known], minlength=len(counts))
    is_other = known & (confident != labels)
    other = np.bincount(labels[is_other], minlength=len(counts))
    return round(float((counts * other / np.maximum(total, 1)).sum()))


def plant_errors(labels: Ids, share: float, seed: int) -> tuple[Ids, Flags]:
    """Exchange the labels of a share of the rows, at random, for labels of other rows.

    A label is drawn as often as it occurs among the rows that have another one.

    Returns:
        the changed labels, and which rows were changed; none where all labels are the same.
    """
    generator = np.random.default_rng(seed)
    num_rows = len(labels)
    number = round(share * num_rows)
    changed, is_planted = labels.copy(), np.zeros(num_rows, np.bool_)
    if number == 0 or len(np.unique(labels)) < 2:
        return changed, is_planted
    chosen = np.sort(generator.permutation(num_rows)[:number])
    # Among labels in order, those behind the rows of one's own label, around the end, are others.
    in_order = np.sort(labels, kind="stable")
    first, stop = (np.searchsorted(in_order, labels[chosen], side) for side in ("left", "right"))
    steps = generator.integers(0, num_rows - (stop - first))
    changed[chosen] = in_order[(stop + steps) % num_rows]
    is_planted[chosen] = True
    return changed, is_planted


def find_planted(errors: LabelErrors, is_planted: Flags) -> int:
    """Return how many of the planted errors are among those found."""
    return int((errors.is_error & is_planted).sum())
