"""Precision, recall and F1 from three counts: correctly predicted, predicted, and actual.

Classification, multi-label and entity metrics all use them; they differ in what is counted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertkit.metrics.examples import Numbers, divide, read_weights


@dataclass(frozen=True)
class Counts:
    """How often each label was correctly predicted, was predicted, and occurs, `[..., labels]`.

    A rate whose denominator is 0 is 0, as in conlleval and scikit-learn with `zero_division=0`.

    Attributes:
        correct: true positives.
        predicted: true and false positives.
        actual: true positives and false negatives.
    """

    correct: NDArray[np.number]
    predicted: NDArray[np.number]
    actual: NDArray[np.number]

    @property
    def precision(self) -> Numbers:
        """Precision: the share of predictions that are correct."""
        return divide(self.correct, self.predicted)

    @property
    def recall(self) -> Numbers:
        """Recall: the share of actual occurrences that were predicted."""
        return divide(self.correct, self.actual)

    @property
    def f1(self) -> Numbers:
        """F1: the harmonic mean of precision and recall."""
        return divide(2 * self.correct, self.predicted + self.actual)

    def pool(self) -> "Counts":
        """Sum the counts over all labels, for micro averages, `[...]`."""
        return Counts(self.correct.sum(-1), self.predicted.sum(-1), self.actual.sum(-1))

    def average(self, rates: Numbers) -> Numbers:
        """Return the mean over labels that occur or were predicted: a macro average, `[...]`.

        It is 0 if there are no such labels.

        Args:
            rates: one number per label, `[..., labels]`, such as `f1`.
        """
        is_met = (self.predicted + self.actual) > 0
        return divide(np.where(is_met, rates, 0.0).sum(axis=-1), is_met.sum(axis=-1))

    def add_up(self, weights: NDArray[np.floating] | None = None) -> "Counts":
        """Sum counts `[examples, labels]` over the examples.

        Args:
            weights: how often each example counts, `[..., examples]`.

        Returns:
            Counts `[..., labels]`.
        """
        counted = read_weights(weights, len(self.correct))
        return Counts(counted @ self.correct, counted @ self.predicted, counted @ self.actual)
