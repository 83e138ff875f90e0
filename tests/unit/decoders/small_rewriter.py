"""A tiny encoder-decoder with random weights, and its folder."""

from pathlib import Path

import torch
from tests.unit.inference.small import WORDS, build_config

from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.decoding.settings import DecodingSettings
from bertkit.decoders.detokenization import Spacing
from bertkit.decoders.generation.seq2seq_generator import Seq2SeqGenerator
from bertkit.decoders.generation.settings import Seq2SeqSettingsFile, write_seq2seq_file
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

SAVED = Seq2SeqSettingsFile(
    kind="translate",
    decoding=DecodingSettings(beams=2),
    spacing=Spacing.fit(["the cat, the dog."]).to_dict(),
    max_source_length=10,
    max_target_length=6,
)


def build_rewriter(**changes: object) -> Seq2SeqGenerator:
    """Weights large enough that every token matters."""
    torch.manual_seed(0)
    tokenizer = Tokenizer([*SPECIAL_TOKENS, *WORDS])
    one_more = tokenizer.vocab_size + 1  # an id without a word
    config = build_config(vocab_size=one_more, num_hidden_layers=1)
    joined = EncoderDecoderConfig.of(
        config, start_id=tokenizer.cls_id, end_id=tokenizer.sep_id, shares_embeddings=True
    )
    model = EncoderDecoderModel(joined).eval()
    saved = SAVED.model_copy(update=changes)
    return Seq2SeqGenerator(model, tokenizer, saved, saved.decoding)


def save_rewriter(folder: Path, **changes: object) -> Path:
    """The folder of such a model."""
    rewriter = build_rewriter(**changes)
    rewriter.model.save_pretrained(folder)
    rewriter.tokenizer.save(folder)
    write_seq2seq_file(folder, rewriter.saved)
    return folder
