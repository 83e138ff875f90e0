"""A tiny left-to-right model with its tokenizer."""

from pathlib import Path

import torch
from tests.unit.inference.small import WORDS, build_config

from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

NUM_WORDLESS = 3  # entries of the model behind those of the vocabulary


def save_causal(folder: Path, *, end_bias: float = 2.0, max_length: int | None = None) -> None:
    """A Hugging Face folder of a model that ends now and then; 24 positions.

    Args:
        folder: where to.
        end_bias: the more, the sooner it ends.
        max_length: what the folder says that it was trained on.
    """
    torch.manual_seed(0)
    tokenizer = Tokenizer([*SPECIAL_TOKENS, *WORDS])
    num_entries = tokenizer.vocab_size + NUM_WORDLESS
    model = BertLMHeadModel(
        build_config(vocab_size=num_entries, initializer_range=0.6, is_decoder=True)
    )
    with torch.no_grad():
        model.masked_lm.bias[tokenizer.sep_id] += end_bias
        model.masked_lm.bias[-NUM_WORDLESS:] += 9.0  # as likely as nothing else, and no words
    model.save_pretrained(folder)
    tokenizer.save(folder, max_length=max_length)
