"""Choose rows of a pool to label next: those that cover what the model is uncertain about.

`choose_next` is pure. It adds row by row the one that improves most how well the pool is covered:
a row is covered as well as it is like the likest row that has a label or will get one, and counts
as much as the model is uncertain about it. Outliers and repeats therefore wait.
`benchmarks/bench_selection.py` compares this with other ways to choose.

Source: facility location as by Wei, Iyer and Bilmes, "Submodularity in Data Subset Selection and
Active Learning", ICML 2015; the lazy search for the best row is Minoux's, 1978.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertkit.base.errors import pluralize
from bertkit.reports.text import format_percent, show

Vectors = NDArray[np.float32]
Numbers = NDArray[np.float64]

MOST_COVERED = 2_000  # rows by which it is measured how well the pool is covered
ROWS_PER_BLOCK = 1_024  # 8 MB of similarities
UNCERTAINTY_POWER = 0.5  # of a row's weight; with 1 less is gained where there are many labels
LEAST_WEIGHT = 1e-6  # so that not all are 0
DECIMALS = 6  # of what a row improves, so that rounding errors decide nothing
UNLIKE = 0.3  # the cosine below which texts are called unlike
UNSURE = 0.5  # the uncertainty from which it is called so
LABEL_COLUMNS = 30


@dataclass(frozen=True)
class Suggestion:
    """A row to label next.

    Attributes:
        number: of the row in the pool, from 0.
        why: a line.
    """

    number: int
    why: str


@dataclass(frozen=True)
class PoolProbabilities:
    """What a model expects of the rows of a pool.

    Attributes:
        values: `[rows, labels]`; for tags, those of the word that is least certain.
        labels: their names.
        is_multi_label: whether a row has any number of labels.
    """

    values: NDArray[np.floating]
    labels: Sequence[str]
    is_multi_label: bool = False

    def find_uncertainty(self) -> Numbers:
        """Return for each row how close its closest decision is, from 0 to 1."""
        if self.is_multi_label:
            margin = np.abs(2 * self.values - 1).min(axis=1)
        else:
            best = np.sort(self.values, axis=1)[:, -2:]
            margin = best[:, -1] - best[:, 0]
        uncertainty: Numbers = 1 - margin.astype(np.float64)
        return uncertainty

    def describe(self, number: int) -> str:
        """Say between which labels the model decides a row."""
        row = self.values[number]
        order = np.abs(row - 0.5) if self.is_multi_label else -row
        closest = np.argsort(order, kind="stable")[: 1 if self.is_multi_label else 2]
        shown = (
            f"{show(self.labels[label], LABEL_COLUMNS)} {format_percent(float(row[label]), 0)}"
            for label in closest.tolist()
        )
        return f"unsure: {', '.join(shown)}"


def choose_next(
    probabilities: PoolProbabilities | None,
    vectors: Vectors,
    number: int,
    labeled_vectors: Vectors | None = None,
) -> list[Suggestion]:
    """Choose rows of a pool to label next, in the order to label them.

    Args:
        probabilities: of the pool's labels; None for tasks that have none, such as regression.
        vectors: of the pool, `[rows, features]` of unit length.
        number: how many to choose; all if the pool has no more.
        labeled_vectors: of the rows that have labels, `[rows, features]`; None if unknown.
    """
    uncertainty = np.ones(len(vectors))
    if probabilities is not None:
        uncertainty = probabilities.find_uncertainty()
    coverage = _Coverage(vectors, uncertainty**UNCERTAINTY_POWER, labeled_vectors)
    chosen = list(coverage.choose(min(number, len(vectors))))
    nearest = _find_nearest(vectors[chosen], labeled_vectors)
    suggestions = []
    for row, num_covered, similarity in zip(chosen, coverage.count(), nearest, strict=False):
        reasons = []
        if probabilities is not None and uncertainty[row] >= UNSURE:
            reasons.append(probabilities.describe(row))
        if labeled_vectors is not None and similarity < UNLIKE:
            reasons.append("unlike all labeled rows")
        if num_covered > 1:
            reasons.append(f"stands for about {pluralize(num_covered, 'row')} of the pool")
        suggestions.append(
            Suggestion(row, "; ".join(reasons) or "few rows of the pool are like it")
        )
    return suggestions


def _find_nearest(vectors: Vectors, others: Vectors | None) -> Vectors:
    """Return each vector's similarity to the likest of others; 0 if there are none above that."""
    nearest = np.zeros(len(vectors), np.float32)
    for block in _cut(vectors[:0] if others is None else others):
        nearest = np.maximum(nearest, (vectors @ block.T).max(axis=1))
    return nearest


class _Coverage:
    """How well rows that have or get labels cover a pool, measured by some of its rows."""

    def __init__(self, vectors: Vectors, weights: Numbers, labeled: Vectors | None) -> None:
        order = np.random.default_rng(0).permutation(len(vectors))
        covered = np.sort(order[:MOST_COVERED])
        self.vectors, self.covered = vectors, vectors[covered]
        chosen = weights[covered] + LEAST_WEIGHT
        self.weights = (chosen / chosen.sum()).astype(np.float32)
        # of each covered row to the likest row with a label, and which of the chosen rows it is
        self.similarity = _find_nearest(self.covered, labeled)
        self.likest = np.full(len(covered), -1)  # another row

    def choose(self, number: int) -> Iterator[int]:
        """Yield the rows to label, the one that improves most next; ties in order.

        What a row improves only shrinks while others are chosen, so that it is measured anew for
        those alone that might be the best.
        """
        bounds = np.ravel([gain for block in _cut(self.vectors) for gain in self._measure(block)])
        for place in range(number):
            is_stale = bounds >= 0  # chosen rows are -1
            while is_stale[best := int(bounds.argmax())]:
                stale = np.flatnonzero(is_stale)
                highest = stale[np.argsort(-bounds[stale], kind="stable")[:ROWS_PER_BLOCK]]
                bounds[highest] = self._measure(self.vectors[highest])
                is_stale[highest] = False
            similarity = self.covered @ self.vectors[best]
            self.likest[similarity > self.similarity] = place
            self.similarity = np.maximum(similarity, self.similarity)
            bounds[best] = -1
            yield best

    def count(self) -> list[int]:
        """Return of how many rows of the pool, about, each chosen row is the likest."""
        found = self.likest[(self.similarity >= UNLIKE) & (self.likest >= 0)]
        counts = np.bincount(found, minlength=len(self.vectors)).tolist()
        return [round(count * len(self.vectors) / len(self.covered)) for count in counts]

    def _measure(self, vectors: Vectors) -> Numbers:
        """Return how much better the pool is covered with each of these rows."""
        improved = np.maximum(vectors @ self.covered.T - self.similarity, 0) @ self.weights
        rounded: Numbers = np.round(improved.astype(np.float64), DECIMALS)
        return rounded


def _cut(vectors: Vectors) -> Iterator[Vectors]:
    """Yield vectors in blocks."""
    for start in range(0, len(vectors), ROWS_PER_BLOCK):
        yield vectors[start : start + ROWS_PER_BLOCK]
