"""Perplexity of a language model.

Source: Jurafsky and Martin, "Speech and Language Processing", section 3.3 ("Evaluating Language
Models: Perplexity").
"""

import math

MOST_NATS = 100.0  # above the loss of any trained model, while its exponential is still finite


def find_perplexity(loss: float) -> float:
    """Return the perplexity: the exponential of the mean loss per token.

    Args:
        loss: mean negative natural log probability of the tokens.

    Returns:
        At least 1; never infinite, because JSON has no infinity.
    """
    return math.exp(min(loss, MOST_NATS))
