"""The encoder-decoder Transformer: the encoder reads the source, the decoder writes the target.

Source: Vaswani et al. 2017; both halves from a BERT: Rothe et al. 2020, "Leveraging Pre-trained
Checkpoints for Sequence Generation Tasks".
"""

from pathlib import Path
from typing import Self

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import CheckpointError, InputError
from bertkit.base.own_thread import in_own_thread
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.torch_tensors import to_tensors
from bertkit.checkpoints.transfer import import_tensors
from bertkit.decoders.block import DecoderBlock
from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.cross_attention import CrossAttentionCache, Memory
from bertkit.decoders.names import ENCODER_DECODER, SHARED, UNUSED_PARTS
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import (
    BertEncoder,
    build_embeddings,
    build_final_norm,
    build_layers,
)
from bertkit.models.bert.heads import MaskedLMHead
from bertkit.models.bert.pretrained import PretrainedBert, pack_padded
from bertkit.models.bert.weights import initialize, save_weights, without_memory
from bertkit.models.open_model import OpenModel
from bertkit.nn.attention import TokenBatch
from bertkit.nn.embeddings import sinusoids
from bertkit.nn.packing import PackedBatch, pad


class Decoder(nn.Module):
    """Embeddings, then a stack of decoder blocks, which attend to target and source."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.embeddings = build_embeddings(config)
        self.layers = build_layers(config, DecoderBlock)
        self.final_norm = build_final_norm(config)

    def forward(
        self, batch: TokenBatch, memory: Memory | CrossAttentionCache
    ) -> Float[Tensor, "tokens hidden"]:
        """Return the final hidden state of each target token."""
        tokens: Tensor = self.embeddings(batch)
        for layer in self.layers:
            tokens = layer(tokens, batch, memory)
        normalized: Tensor = self.final_norm(tokens)
        return normalized


MAX_ROUNDING = 0.01  # for values up to 1, which bfloat16 rounds by up to 0.004


@in_own_thread
def fill_halves(model: nn.Module, checkpoint: Checkpoint) -> None:
    """Load a checkpoint of the same shapes into a model built with `without_memory`.

    A pooler in it is ignored; shared embeddings must be equal, sinusoidal positions sines and
    cosines.
    """
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    arrays = import_tensors(
        checkpoint.tensors,
        expected,
        checkpoint.folder,
        unused_parts=UNUSED_PARTS,
        names=ENCODER_DECODER,
    )
    tensors = to_tensors(arrays)
    ours = ("encoder.embeddings.word.weight", "decoder.embeddings.word.weight")
    if checkpoint.config.get("shares_embeddings") and not tensors[ours[0]].equal(tensors[ours[1]]):
        raise CheckpointError(
            f"{checkpoint.folder}: shares_embeddings is true, and {SHARED[0]} and {SHARED[1]}"
            " differ"
        )
    _check_positions(checkpoint, tensors)
    model.load_state_dict(tensors, assign=True)
    for parameter in model.parameters():
        parameter.requires_grad_(True)


def _check_positions(checkpoint: Checkpoint, tensors: dict[str, Tensor]) -> None:
    """Check that sinusoidal positions are sines and cosines in the file.

    Other tools train them like other weights, and replacing trained positions changes the model.
    """
    if checkpoint.config.get("positions") != "sinusoidal":
        return
    for half in ("encoder", "decoder"):
        table = tensors[f"{half}.embeddings.position.weight"]
        waves = sinusoids(*table.shape).to(table.dtype)
        if not torch.allclose(table, waves, rtol=0.0, atol=MAX_ROUNDING):
            raise CheckpointError(
                f"{checkpoint.folder}: positions is sinusoidal, and the {half}'s position"
                " embeddings aren't sines and cosines; if they were trained, set it to learned"
            )


class EncoderDecoderModel(nn.Module):
    """An encoder, a decoder that attends to its output, and a head that predicts the next word."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.config = config
        encoder, decoder = config.halves
        self.encoder, self.decoder = BertEncoder(encoder), Decoder(decoder)
        self.masked_lm = MaskedLMHead(config.decoder)
        initialize(self, encoder)
        self.join()

    def join(self) -> None:
        """Tie shared embeddings, and set and freeze sinusoidal positions."""
        if self.config.shares_embeddings:
            self.decoder.embeddings.word = self.encoder.embeddings.word
        if self.config.positions == "sinusoidal":
            for half in (self.encoder, self.decoder):
                embedding = half.embeddings.position
                assert embedding is not None, "both halves are BERTs"
                weight = embedding.weight
                if not weight.is_meta:
                    with torch.no_grad():
                        weight.copy_(sinusoids(*weight.shape))
                weight.requires_grad_(False)

    def read(self, source: PackedBatch) -> CrossAttentionCache:
        """Encode the source, for generating."""
        return CrossAttentionCache(self.encoder(source), source)

    def next_scores(
        self, batch: TokenBatch, memory: Memory | CrossAttentionCache
    ) -> Float[Tensor, "tokens vocabulary"]:
        """Return logits of the next word after each target token."""
        tokens = self.decoder(batch, memory)
        words: Tensor = self.masked_lm(tokens, self.decoder.embeddings.word.weight)
        return words

    def next_loss(
        self,
        source: PackedBatch,
        target: PackedBatch,
        labels: Int[Tensor, " tokens"],
        smoothing: float = 0.0,
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Return the sum of the cross-entropies, and the number of correct predictions.

        Args:
            source: the encoder's input.
            target: the decoder's input: `decoder_start_token_id`, then all labels but the last.
            labels: the word after each token of `target`.
            smoothing: as in `bertkit.nn.vocabulary_loss.vocabulary_loss`.
        """
        tokens = self.decoder(target, Memory(self.encoder(source), source, target))
        words = self.decoder.embeddings.word.weight
        return self.masked_lm.loss(tokens, words, labels, smoothing)

    def count_operations(self, source: PackedBatch, target: PackedBatch) -> float:
        """Count a training step's operations, as in `BertEncoder`."""
        config = self.config.decoder
        hidden, inner = config.hidden_size, config.intermediate_size
        pairs = sum(
            length * (length + other)
            for length, other in zip(target.lengths, source.lengths, strict=True)
        )
        block = target.num_tokens * (6 * hidden * hidden + 2 * hidden * inner)
        block += source.num_tokens * 2 * hidden * hidden + 2 * hidden * pairs
        words = target.num_tokens * hidden * (hidden + config.vocab_size)
        decoder = config.num_hidden_layers * block + words
        return self.encoder.count_operations(source) + 6.0 * decoder

    def forward(
        self,
        input_ids: Int[Tensor, "batch others"],
        decoder_input_ids: Int[Tensor, "batch length"],
        attention_mask: Shaped[Tensor, "batch others"] | None = None,
        decoder_attention_mask: Shaped[Tensor, "batch length"] | None = None,
    ) -> Float[Tensor, "batch length vocabulary"]:
        """Return logits of the next word after each target token, zeros at padding.

        Args:
            input_ids: the encoder's input.
            decoder_input_ids: the decoder's input.
            attention_mask: 0 or False at padding; by default, there is none.
            decoder_attention_mask: the same for the decoder's input.

        Raises:
            InputError: shapes differ, an id is out of range, or a row has no token.
        """
        if len(input_ids) != len(decoder_input_ids):
            raise InputError(
                f"decoder_input_ids has {len(decoder_input_ids):,} rows, and must have as many as"
                f" input_ids, {len(input_ids):,}"
            )
        source, _ = pack_padded(self.config.encoder, input_ids, None, attention_mask)
        target, mask = pack_padded(
            self.config.decoder, decoder_input_ids, None, decoder_attention_mask
        )
        memory = Memory(self.encoder(source), source, target)
        return pad(self.next_scores(target, memory), mask)

    @classmethod
    def from_pretrained(cls, path: str | Path | OpenModel, *, revision: str | None = None) -> Self:
        """Load an encoder-decoder in float32, in evaluation mode.

        Args:
            path: the output of `bertkit finetune translate`, a folder of transformers'
                EncoderDecoderModel, or the id of a model on the Hub.
            revision: a branch, tag or commit of a model on the Hub.

        Raises:
            BertkitError: as in `BertModel.from_pretrained`.
        """
        opened = OpenModel.open(path, revision=revision)
        config = EncoderDecoderConfig.from_dict(opened.checkpoint.config, opened.folder)
        with without_memory():
            model = cls(config)
        fill_halves(model, opened.checkpoint)
        model.join()
        return model.eval()

    def save_pretrained(self, folder: str | Path) -> dict[str, FileRecord]:
        """Write `config.json` and `model.safetensors`; return their records by file name.

        Raises:
            CheckpointError: a weight isn't finite.
            StorageError: writing failed.
        """
        return save_weights(self, self.config.to_dict(), Path(folder), ENCODER_DECODER)

    def warm_start(self, parent: PretrainedBert) -> None:
        """Initialize both halves with a BERT of their sizes; cross-attention keeps its weights.

        A masked LM head of the parent is copied too. Sinusoidal positions stay.

        Args:
            parent: any BERT model with an encoder.

        Source: Rothe et al. 2020, section 3 ("BERT2BERT").
        """
        weights = parent.encoder.state_dict()
        with torch.no_grad():
            for half in (self.encoder, self.decoder):
                missing, unexpected = half.load_state_dict(weights, strict=False)
                own = ("cross_attention", "final_norm")  # not in a BERT encoder
                lost = [name for name in missing if not any(part in name for part in own)]
                assert not [*unexpected, *lost], f"{[*unexpected, *lost]} is in one of both alone"
            if isinstance(head := getattr(parent, "masked_lm", None), MaskedLMHead):
                self.masked_lm.load_state_dict(head.state_dict())
        self.join()
