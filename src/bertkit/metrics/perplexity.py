"""Perplexity: how much in doubt a model is that says which words come.

Source: Jurafsky and Martin, "Speech and Language Processing", section 3.3 ("Evaluating Language
Models: Perplexity").
"""

import math

MOST_NATS = 100.0  # more than any model that has learned anything, and still a number


def find_perplexity(loss: float) -> float:
    """Among how many tokens, equally likely, a model is in doubt.

    Args:
        loss: the mean of the negative natural logarithms of the tokens' probabilities.

    Returns:
        From 1 up; never infinite, which JSON doesn't know.
    """
    return math.exp(min(loss, MOST_NATS))
