"""Find labels that look wrong, from predictions of models that didn't train on the row.

All functions are pure and take out-of-fold predictions: each row is predicted by a model of the
other folds. A row is suspicious by its margin: the logarithm of the probability of the likeliest
other label less that of its own. Of two labels that is the order of the usual margin, which is a
difference of probabilities; of many it finds more errors. How many are wrong is confident
learning's count, that of the rows which are confidently of another label. It grows with the
mistakes of a weak model; therefore `check_errors` lowers it by errors planted for a check.

Source: Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset
Labels", JAIR 2021; Blanchard, Lee and Scott, "Semi-Supervised Novelty Detection", JMLR 2010.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]

UNJUDGED = -1.0  # the suspicion of a row that can't be judged, which is the lowest
LEAST_SHARE, LEAST_NUMBER = 0.1, 5  # of planted errors above a cut; fewer say too little
LEAST_LIFT = 1.25  # of named labels; where it is less, the texts hardly say the labels
MOST_DEVIATIONS = 3.5  # of a number from what is expected, as in the source
MEDIAN_OF_NORMAL = 0.6745  # of absolute values of the standard normal distribution
DOUBT = 0.01  # added to probabilities, so that one near 0 isn't everything
SCORES_PER_BLOCK = 1 << 18  # 2 MB


@dataclass(frozen=True)
class LabelErrors:
    """What looks wrong, an entry a row.

    Attributes:
        suspicion: `[rows]`, higher is more suspicious; above 0, another label is likelier.
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
        """The numbers of the rows, the most suspicious first, ties in order."""
        return np.argsort(-self.suspicion, kind="stable")

    def limit(self, number: int) -> "LabelErrors":
        """Return the same with at most so many errors, the most suspicious ones."""
        is_error, chosen = np.zeros_like(self.is_error), self.ranking[:number]
        is_error[chosen] = self.is_error[chosen]
        return replace(self, is_error=is_error)


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
    likely, confident, other = labels.copy(), labels.copy(), np.zeros(len(labels))
    for start in range(0, len(labels), size := max(1, SCORES_PER_BLOCK // len(counts))):
        block = slice(start, start + size)
        scores = probabilities[block].astype(np.float64)
        # The likeliest label among those that reach the mean probability of their rows.
        reached = np.where(scores >= thresholds, scores, -1.0)
        is_any = reached.max(axis=1) >= 0
        confident[block] = np.where(is_any, reached.argmax(axis=1), labels[block])
        scores[np.arange(len(scores)), labels[block]] = -1.0
        likely[block], other[block] = scores.argmax(axis=1), scores.max(axis=1)
    is_judged = counts[labels] > 1
    margin = np.where(is_judged, compare(np.maximum(other, 0.0), own), UNJUDGED)
    found = LabelErrors(margin, np.where(is_judged, likely, labels), margin > 0)
    return found.limit(int((is_judged & (confident != labels)).sum()))


def compare(other: Numbers, own: Numbers) -> Numbers:
    """Return the suspicion, from -1 to 1, of a label by its probability and that of another."""
    found: Numbers = np.log((other + DOUBT) / (own + DOUBT)) / np.log((1 + DOUBT) / DOUBT)
    return found


def group_errors(errors: LabelErrors, owners: Ids, num_rows: int) -> tuple[LabelErrors, Ids]:
    """Judge rows of several labels, such as tags of words, by the most suspicious of each.

    Args:
        errors: of the labels.
        owners: the row of each label, ascending.
        num_rows: of all; one without labels can't be judged.

    Returns:
        the errors of rows, and the index of each row's most suspicious label, -1 for none.
    """
    order = np.lexsort((-errors.suspicion, owners))
    present, first = np.unique(owners, return_index=True)
    worst = np.full(num_rows, -1)
    worst[present] = order[first]
    parts = (errors.suspicion, UNJUDGED), (errors.likely, 0), (errors.is_error, False)
    return LabelErrors(*(np.append(part, none)[worst] for part, none in parts)), worst


def find_number_errors(predictions: Numbers, values: Numbers) -> LabelErrors:
    """Find wrong numbers, by the difference from out-of-fold predictions.

    Differences are measured in standard deviations, estimated by their median absolute deviation;
    those above `MOST_DEVIATIONS` are errors, and have a suspicion above 0. `likely` is 0 for all.

    Source: Iglewicz and Hoaglin, "How to Detect and Handle Outliers" (1993).
    """
    away = np.abs(values - predictions - np.median(values - predictions))
    deviation = float(np.median(away)) / MEDIAN_OF_NORMAL or float(away.mean())
    suspicion = away / (MOST_DEVIATIONS * (deviation or 1.0)) - 1
    return LabelErrors(suspicion, np.zeros(len(values), np.int64), suspicion > 0)


def find_span_errors(given: Ids, predicted: Ids, probability: Numbers) -> LabelErrors:
    """Find wrong answers: those that don't overlap a predicted span that is likely.

    Args:
        given: start and stop of each row's answer, `[rows, 2]`; equal for "no answer".
        predicted: the same of the prediction.
        probability: of the prediction, `[rows]`, which is the suspicion where both don't overlap.
            `likely` is 0 for all.
    """
    starts, stops = np.maximum(given, predicted)[:, 0], np.minimum(given, predicted)[:, 1]
    is_empty = (given[:, 0] == given[:, 1]) & (predicted[:, 0] == predicted[:, 1])
    suspicion = np.where((starts < stops) | is_empty, -probability, probability)
    return LabelErrors(suspicion, np.zeros(len(given), np.int64), suspicion > 0.5)


def plant_errors(
    labels: Ids, share: float, seed: int, owners: Ids | None = None
) -> tuple[Ids, Flags]:
    """Exchange a label in each of a share of the rows, at random, for one of other rows.

    A label is drawn as often as it occurs among those that differ. Where a row has several, such as
    the tags of its words, it is as often one of the commonest label as one of another.

    Args:
        labels: ids, of all rows.
        share: of the rows.
        seed: of the random choice.
        owners: the row of each label, ascending; None if each row has one.

    Returns:
        the changed labels, and which were changed; none where all labels are the same.
    """
    generator = np.random.default_rng(seed)
    changed, is_planted = labels.copy(), np.zeros(len(labels), np.bool_)
    if len(np.unique(labels)) < 2:
        return changed, is_planted
    candidates = _choose_labels(labels, np.arange(len(labels)) if owners is None else owners, seed)
    chosen = np.sort(generator.permutation(candidates)[: round(share * len(candidates))])
    # Among labels in order, those behind the rows of one's own label, around the end, are others.
    in_order = np.sort(labels, kind="stable")
    first, stop = (np.searchsorted(in_order, labels[chosen], side) for side in ("left", "right"))
    steps = generator.integers(0, len(labels) - (stop - first))
    changed[chosen] = in_order[(stop + steps) % len(labels)]
    is_planted[chosen] = True
    return changed, is_planted


def _choose_labels(labels: Ids, owners: Ids, seed: int) -> Ids:
    """Choose one label of each row; return their indexes."""
    generator = np.random.default_rng((seed, 1))
    _, first, place = np.unique(owners, return_index=True, return_inverse=True)
    is_common = labels == np.bincount(labels).argmax()
    is_wanted = is_common == (generator.random(len(first)) < 0.5)[place]
    chosen: Ids = np.lexsort((generator.random(len(labels)), ~is_wanted, owners))[first]
    return chosen


@dataclass(frozen=True)
class PlantedErrors:
    """Labels that were exchanged for a check.

    Attributes:
        number: how many.
        num_found: how many of them are more suspicious than the first row that isn't named.
        named_share: the share of the other rows that are.
    """

    number: int
    num_found: int
    named_share: float

    @property
    def lift(self) -> float:
        """How many times as likely wrong as any label a named one is, whatever the share of errors.

        Infinite where nothing else is named.
        """
        others = self.number * self.named_share
        return self.num_found / others if others else float("inf")


def check_errors(
    errors: LabelErrors, suspicion: Numbers, is_planted: Flags
) -> tuple[LabelErrors, PlantedErrors]:
    """Lower the number of errors to what planted ones allow, and count those found at the same cut.

    Wherever the cut, the share of rows above it is at least that of the errors times the share of
    planted errors above it. So the least ratio of both bounds the share of errors from above. One
    more row is counted above each cut, because few of either say little.

    Args:
        errors: of the labels as they are.
        suspicion: of all rows, with planted errors; once or several times.
        is_planted: which of these rows have one.

    Returns:
        the errors that remain, none if they are hardly likelier wrong than others; and the check.
    """
    planted, others = np.sort(suspicion[is_planted]), np.sort(suspicion[~is_planted])
    if not len(planted) or not len(others):
        return errors, PlantedErrors(0, 0, 0.0)
    shares = 1 - np.searchsorted(planted, planted) / len(planted)
    num_rounds = len(suspicion) // len(errors.suspicion)
    num_above = len(others) - np.searchsorted(others, planted) + num_rounds
    least = min(1.0, max(LEAST_SHARE, LEAST_NUMBER / len(planted)))
    bound = (num_above / len(others) / shares)[shares >= least].min()
    checked = errors.limit(round(float(bound) * len(errors.suspicion)))
    place = len(others) - 1 - num_rounds * checked.num_errors
    cut = max(0.0, float(others[max(0, place)]))
    check = PlantedErrors(len(planted), int((planted > cut).sum()), float((others > cut).mean()))
    return checked if check.lift >= LEAST_LIFT else errors.limit(0), check
