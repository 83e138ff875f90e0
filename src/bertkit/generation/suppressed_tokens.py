"""What a model never writes."""

import re

from bertkit.tokenization.tokenizer import Tokenizer

UNUSED = re.compile(r"\[unused\d+\]")  # entries that published vocabularies keep free


def find_suppressed_tokens(tokenizer: Tokenizer, end_id: int, num_scores: int) -> tuple[int, ...]:
    """Ids that no text has: special tokens but the end, unused entries, and those without a word.

    Args:
        tokenizer: of what is written.
        end_id: the token that ends a text.
        num_scores: ids that the model has a score for.
    """
    named = enumerate(tokenizer.vocabulary[:num_scores])
    unused = {id_ for id_, entry in named if UNUSED.fullmatch(entry)}
    barred = (tokenizer.special_ids | unused) - {end_id}
    return (*sorted(barred), *range(tokenizer.vocab_size, num_scores))
