"""Perplexity and bits per character of a language model.

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


def find_bits_per_character(loss: float, num_tokens: int, num_characters: int) -> float:
    """Return the mean loss per character of the text in bits.

    Unlike loss, accuracy and perplexity, it compares models with different vocabularies.

    Args:
        loss: mean negative natural log probability of the tokens.
        num_tokens: number of the tokens.
        num_characters: number of characters that the tokens stand for; at least 1.
    """
    return loss * num_tokens / (num_characters * math.log(2))
