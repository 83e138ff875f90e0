"""Decoding of multiple choice: from logits to the predicted choice."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertkit.reports.notebook import Tabular
from bertkit.tasks.logits import Logits


@dataclass(frozen=True)
class Choice(Tabular):
    """The predicted choice.

    Attributes:
        index: its index, from 0.
        text: its text.
        probability: its probability, from 0 to 1.
        probabilities: probabilities of all choices, in their order.
    """

    index: int
    text: str
    probability: float
    probabilities: tuple[float, ...]


def take_choice(choices: Sequence[str], logits: Logits, temperature: float) -> Choice:
    """Return the likeliest choice, with the probability of each."""
    scores = logits.astype(np.float64) / temperature
    powers = np.exp(scores - scores.max())
    shares = powers / powers.sum()
    best = int(logits.argmax())
    return Choice(best, choices[best], float(shares[best]), tuple(shares.tolist()))
