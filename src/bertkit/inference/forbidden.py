"""What a model never writes."""

from bertkit.tokenization.tokenizer import Tokenizer


def find_forbidden(tokenizer: Tokenizer, end_id: int, num_scores: int) -> tuple[int, ...]:
    """Ids that no text has: special tokens but the end, and those without a word.

    Args:
        tokenizer: of what is written.
        end_id: the token that ends a text.
        num_scores: ids that the model has a score for.
    """
    special = tokenizer.special_ids - {end_id}
    return (*sorted(special), *range(tokenizer.vocab_size, num_scores))
