"""Precision, recall and F1 from three counts: rightly predicted, predicted, and there.

Classes, sets of labels and entities are all scored by these; they differ in what is counted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertkit.metrics.examples import Numbers, divide, read_weights


@dataclass(frozen=True)
class Counts:
    """How often each label was rightly predicted, predicted, and there, `[..., labels]`.

    A rate whose denominator is 0 is 0, as conlleval has it and scikit-learn with `zero_division=0`.

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
        """The share of what was predicted that is right."""
        return divide(self.correct, self.predicted)

    @property
    def recall(self) -> Numbers:
        """The share of what is there that was predicted."""
        return divide(self.correct, self.actual)

    @property
    def f1(self) -> Numbers:
        """The harmonic mean of precision and recall."""
        return divide(2 * self.correct, self.predicted + self.actual)

    def pool(self) -> "Counts":
        """All labels taken as one: what micro averages are made of, `[...]`."""
        return Counts(self.correct.sum(-1), self.predicted.sum(-1), self.actual.sum(-1))

    def average(self, rates: Numbers) -> Numbers:
        """The mean over those labels that are there or were predicted: a macro average, `[...]`.

        It is 0 where there are none.

        Args:
            rates: one number a label, `[..., labels]`, such as `f1`.
        """
        is_met = (self.predicted + self.actual) > 0
        return divide(np.where(is_met, rates, 0.0).sum(axis=-1), is_met.sum(axis=-1))

    def add_up(self, weights: NDArray[np.floating] | None = None) -> "Counts":
        """The counts of all examples together, from those of each, `[examples, labels]`.

        Args:
            weights: how often each example counts, `[..., examples]`.

        Returns:
            Counts `[..., labels]`.
        """
        counted = read_weights(weights, len(self.correct))
        return Counts(counted @ self.correct, counted @ self.predicted, counted @ self.actual)
