"""What a search finds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """One way to go on.

    Attributes:
        tokens: without what the sequence began with, and without the token that ends it.
        log_probability: the sum of the natural logarithms of the tokens' probabilities, that of
            the end included; as the model says them, before anything is forbidden or sharpened.
        score: `log_probability` / length ** length_penalty, where the length counts the end; what
            hypotheses are ordered by.
        is_finished: whether the model ended it; otherwise it was cut.
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    is_finished: bool
