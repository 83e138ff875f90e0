"""From the scores of choices to the one that is taken."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertkit.tasks.logits import Logits


@dataclass(frozen=True)
class Choice:
    """The choice that was taken.

    Attributes:
        index: its number, from 0.
        text: its text.
        probability: from 0 to 1.
        probabilities: of all choices, in their order.
    """

    index: int
    text: str
    probability: float
    probabilities: tuple[float, ...]


def take_choice(choices: Sequence[str], logits: Logits, temperature: float) -> Choice:
    """The likeliest choice, and how likely each is."""
    scores = logits.astype(np.float64) / temperature
    powers = np.exp(scores - scores.max())
    shares = powers / powers.sum()
    best = int(logits.argmax())
    return Choice(best, choices[best], float(shares[best]), tuple(shares.tolist()))
