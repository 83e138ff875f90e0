"""The result of a search."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """One generated continuation.

    Attributes:
        tokens: the generated token ids, without the prefix and the end token.
        log_probability: sum of the natural log probabilities of the tokens, end token included,
            under the model itself, before suppression, temperature, top-k and top-p.
        score: `log_probability` / length ** length_penalty, where the length counts the end token;
            hypotheses are sorted by it.
        is_finished: whether the model ended it; otherwise it was truncated.
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    is_finished: bool
