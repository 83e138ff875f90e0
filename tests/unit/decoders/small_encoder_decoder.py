"""A tiny encoder-decoder with its tokenizer."""

from pathlib import Path

import torch
from tests.unit.inference.small import WORDS, build_config

from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

NUM_WORDLESS = 3  # entries of the model behind those of the vocabulary


def save_encoder_decoder(
    folder: Path, *, end_bias: float = 0.0, num_positions: int = 24, **joined: object
) -> None:
    """A Hugging Face folder: two layers of two heads that read, three that write."""
    torch.manual_seed(0)
    tokenizer = Tokenizer([*SPECIAL_TOKENS, *WORDS])
    sizes = {
        "vocab_size": tokenizer.vocab_size + NUM_WORDLESS,
        "max_position_embeddings": num_positions,
        "initializer_range": 0.6,
    }
    config = EncoderDecoderConfig(
        encoder=build_config(**sizes),
        decoder=build_config(**sizes, num_hidden_layers=3, is_decoder=True),
        decoder_start_token_id=tokenizer.cls_id,
        eos_token_id=tokenizer.sep_id,
        **joined,
    )
    model = EncoderDecoderModel(config)
    with torch.no_grad():
        model.masked_lm.bias[tokenizer.sep_id] += end_bias
        model.masked_lm.bias[-NUM_WORDLESS:] += 9.0  # as likely as nothing else, and no words
    model.save_pretrained(folder)
    tokenizer.save(folder)
