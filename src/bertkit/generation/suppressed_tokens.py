"""Tokens that a model must never generate."""

import re

from bertkit.tokenization.tokenizer import Tokenizer

UNUSED = re.compile(r"\[unused\d+\]")  # entries that published vocabularies keep free


def find_suppressed_tokens(tokenizer: Tokenizer, end_id: int, num_scores: int) -> tuple[int, ...]:
    """Return ids to suppress: special but the end token, unused, and beyond the vocabulary.

    Args:
        tokenizer: the tokenizer of the output.
        end_id: the end token.
        num_scores: the number of ids that the model scores.
    """
    named = enumerate(tokenizer.vocabulary[:num_scores])
    unused = {id_ for id_, entry in named if UNUSED.fullmatch(entry)}
    suppressed = (tokenizer.special_ids | unused) - {end_id}
    return (*sorted(suppressed), *range(tokenizer.vocab_size, num_scores))
