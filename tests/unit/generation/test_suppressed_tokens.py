"""What a model never writes."""

from bertkit.generation.suppressed_tokens import find_suppressed_tokens
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer


def test_it_is_what_no_text_has():
    words = ["[unused0]", "the", "[unused17]", "unused", "[", "]", "##[unused1]"]
    tokenizer = Tokenizer([*SPECIAL_TOKENS, *words])
    num_scores = tokenizer.vocab_size + 2
    found = find_suppressed_tokens(tokenizer, tokenizer.sep_id, num_scores)
    barred = {"[PAD]", "[UNK]", "[CLS]", "[MASK]", "[unused0]", "[unused17]"}
    assert {tokenizer.vocabulary[id_] for id_ in found[:-2]} == barred
    assert found[-2:] == (tokenizer.vocab_size, tokenizer.vocab_size + 1)
    assert (
        max(find_suppressed_tokens(tokenizer, tokenizer.sep_id, 6)) == 5
    )  # as many as have scores
