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
from bertkit.base.errors import InputError
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.seq2seq_names import ENCODER_DECODER
from bertkit.models.bert.encoder import BertEncoder
from bertkit.models.bert.heads import MaskedLMHead
from bertkit.models.bert.pretrained import PretrainedBert, pack_padded
from bertkit.models.bert.weights import initialize, save_weights, without_memory
from bertkit.models.seq2seq.config import EncoderDecoderConfig
from bertkit.models.seq2seq.halves import Decoder, PreNormDecoder, PreNormEncoder
from bertkit.models.seq2seq.weights import fill_halves
from bertkit.nn.attention import TokenBatch
from bertkit.nn.cross_attention import CrossAttentionCache, Memory
from bertkit.nn.embeddings import Embeddings, sinusoids
from bertkit.nn.packing import PackedBatch, pad


class EncoderDecoderModel(nn.Module):
    """An encoder, a decoder that attends to its output, and a head that predicts the next word.

    Args:
        config: the sizes.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.config = config
        is_pre_norm = config.normalizes_first
        self.encoder = (PreNormEncoder if is_pre_norm else BertEncoder)(config.encoder)
        self.decoder = (PreNormDecoder if is_pre_norm else Decoder)(config.decoder)
        self.masked_lm = MaskedLMHead(config.decoder)
        initialize(self, config.encoder.initializer_range)
        self.join()

    def join(self) -> None:
        """Tie shared embeddings, and set and freeze sinusoidal positions."""
        if self.config.shares_embeddings:
            self.decoder.embeddings.word = self.encoder.embeddings.word
        if self.config.positions == "sinusoidal":
            for half in (self.encoder, self.decoder):
                fix_positions(half.embeddings)

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
    def from_pretrained(cls, path: str | Path, *, revision: str | None = None) -> Self:
        """Load an encoder-decoder in float32, in evaluation mode.

        Args:
            path: the output of `bertkit finetune translate`, a folder of transformers'
                EncoderDecoderModel, or the id of a model on the Hub.
            revision: a branch, tag or commit of a model on the Hub.

        Raises:
            MissingFileError: there is no model at the path.
            HubError: the model can't be downloaded from the Hub.
            CheckpointError: the config or tensors don't fit.
            DamagedFileError: a file is truncated or altered.
            UnsafeFileError: a file would run code, leave its folder or use unbounded memory.
        """
        return cls.from_checkpoint(open_checkpoint(resolve_model(path, revision=revision)))

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> Self:
        """Load an open checkpoint; errors as in `from_pretrained`."""
        config = EncoderDecoderConfig.from_dict(checkpoint.config, checkpoint.folder)
        with without_memory():
            model = cls(config)
        fill_halves(model, checkpoint)
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
        weights = parent.encoder.state_dict()  # type: ignore[union-attr]
        with torch.no_grad():
            for half in (self.encoder, self.decoder):
                missing, unexpected = half.load_state_dict(weights, strict=False)
                own = ("cross_attention", "final_norm")  # not in a BERT encoder
                lost = [name for name in missing if not any(part in name for part in own)]
                assert not [*unexpected, *lost], f"{[*unexpected, *lost]} is in one of both alone"
            if isinstance(head := getattr(parent, "masked_lm", None), MaskedLMHead):
                self.masked_lm.load_state_dict(head.state_dict())
        self.join()


def fix_positions(embeddings: Embeddings) -> None:
    """Set position embeddings to sines and cosines, and freeze them."""
    weight = embeddings.position.weight
    if not weight.is_meta:
        with torch.no_grad():
            weight.copy_(sinusoids(*weight.shape))
    weight.requires_grad_(False)
