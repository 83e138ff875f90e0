"""Builds the initial model: new, or with encoder and decoder warm-started from an encoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch

from bertkit.base.errors import CheckpointError, InputError
from bertkit.base.progress import announce, show_progress
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.identity import identify_checkpoint
from bertkit.inference.loading import load_tokenizer
from bertkit.models.bert.config import PRESETS, BertConfig
from bertkit.models.bert.heads import BertForMaskedLM
from bertkit.models.seq2seq.config import EncoderDecoderConfig
from bertkit.models.seq2seq.model import EncoderDecoderModel
from bertkit.recipes.seq2seq.examples import Data
from bertkit.recipes.seq2seq.settings import Seq2SeqSettings
from bertkit.tokenization.settings import VocabularySettings
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.tokenization.training import build_vocabulary
from bertkit.tokenization.word_counts import count_words

DEFAULT_LAYERS, DEFAULT_HIDDEN_SIZE = 3, 256
HEAD_FEATURES = 64
POSITION_STEP = 64  # the number of positions of a new model is a multiple of this
# A new vocabulary may have LETTERS distinct characters, or one per ENTRIES_A_LETTER entries if that
# is more. Languages with thousands of characters therefore need a larger vocabulary.
LETTERS, ENTRIES_A_LETTER = 1000, 4


@dataclass(frozen=True)
class InitialModel:
    """A model before its first step.

    Attributes:
        tokenizer: the tokenizer of both sides.
        model: the model, on the CPU.
        facts: identity of the initial checkpoint; empty if the weights are random.
    """

    tokenizer: Tokenizer
    model: EncoderDecoderModel
    facts: dict[str, Any]


def begin(data: Data, settings: Seq2SeqSettings) -> InitialModel:
    """Build the model to train."""
    torch.manual_seed(settings.seed)
    if settings.model is not None:
        return begin_from(settings.model, settings)
    texts = (data.train.sources, data.train.targets)
    tokenizer = train_tokenizer(texts, settings)
    config = join_halves(choose_sizes(settings, tokenizer), tokenizer, settings)
    return InitialModel(tokenizer, EncoderDecoderModel(config), {})


def train_tokenizer(texts: Sequence[Sequence[str]], settings: Seq2SeqSettings) -> Tokenizer:
    """Train a tokenizer on all texts together."""
    wanted = VocabularySettings(
        vocab_size=settings.vocab_size,
        alphabet_limit=max(LETTERS, settings.vocab_size // ENTRIES_A_LETTER),
        lowercase=settings.lowercase,
        strip_accents=settings.lowercase,
    )
    counts = count_words(chain.from_iterable(texts), wanted)
    with show_progress("learning the vocabulary", settings.vocab_size) as bar:
        vocabulary = build_vocabulary(counts, wanted, bar.advance)
    return Tokenizer(vocabulary, wanted.tokenizer_settings())


def choose_sizes(settings: Seq2SeqSettings, tokenizer: Tokenizer) -> BertConfig:
    """Build the config of encoder and decoder for a new model."""
    named = {} if settings.size is None else PRESETS[settings.size]
    hidden = settings.hidden_size or named.get("hidden_size", DEFAULT_HIDDEN_SIZE)
    is_named = "hidden_size" in named and settings.hidden_size is None
    inner = named["intermediate_size"] if is_named else 2 * hidden
    longest = max(settings.max_source_length, settings.max_target_length)
    return BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=hidden,
        num_hidden_layers=settings.layers or named.get("num_hidden_layers", DEFAULT_LAYERS),
        num_attention_heads=settings.heads or max(1, hidden // HEAD_FEATURES),
        intermediate_size=settings.feed_forward or inner,
        max_position_embeddings=POSITION_STEP * -(-longest // POSITION_STEP),
        initializer_range=hidden**-0.5,
        **dropout_rates(settings),
    )


def dropout_rates(settings: Seq2SeqSettings) -> dict[str, Any]:
    """Return the config keys for dropout."""
    return {
        "hidden_dropout_prob": settings.dropout,
        "attention_probs_dropout_prob": settings.attention_dropout,
    }


def join_halves(
    config: BertConfig, tokenizer: Tokenizer, settings: Seq2SeqSettings
) -> EncoderDecoderConfig:
    """Build an encoder-decoder config with two halves of equal size."""
    return EncoderDecoderConfig.of(
        config,
        start_id=tokenizer.cls_id,
        end_id=tokenizer.sep_id,
        shares_embeddings=settings.share_embeddings,
        normalizes_first=settings.norm_first,
        positions=settings.positions,
    )


def begin_from(name: str, settings: Seq2SeqSettings) -> InitialModel:
    """Build a model with both halves warm-started from an encoder; cross-attention is new.

    Source: Rothe et al. 2020, "Leveraging Pre-trained Checkpoints for Sequence Generation Tasks".
    """
    path = resolve_model(name, revision=settings.revision)
    checkpoint = open_checkpoint(path)
    changes = dropout_rates(settings)
    config = BertConfig.from_dict({**checkpoint.config, **changes}, checkpoint.folder)
    if config.is_decoder:
        raise CheckpointError(
            f"{checkpoint.folder} reads left to right (is_decoder), but both halves start from a"
            f" bidirectional encoder; give one as --model, or leave it out to train from scratch"
        )
    for flag in ("max_source_length", "max_target_length"):
        if getattr(settings, flag) > config.max_position_embeddings:
            raise InputError(
                f"{flag} ({getattr(settings, flag)}) is more than the encoder's"
                f" max_position_embeddings ({config.max_position_embeddings}); ask for less"
            )
    tokenizer = load_tokenizer(checkpoint, config)
    facts = identify_checkpoint(checkpoint, path, settings.revision)
    parent = BertForMaskedLM.from_checkpoint(checkpoint, new_heads=True, **changes)
    if parent.new_heads:
        announce(f"new weights for {', '.join(parent.new_heads)}, which {path} doesn't have")
    model = EncoderDecoderModel(join_halves(parent.config, tokenizer, settings))
    model.warm_start(parent)
    return InitialModel(tokenizer, model, facts)
