"""The two halves of the encoder-decoder: the pre-norm encoder, and the decoder in both forms.

Source: Vaswani et al. 2017, section 3 and figure 1.
"""

from collections.abc import Iterator
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import (
    BertEncoder,
    build_attention,
    build_embeddings,
    build_feed_forward,
)
from bertkit.nn.attention import TokenBatch
from bertkit.nn.cross_attention import CrossAttention, CrossAttentionCache, Memory
from bertkit.nn.decoder_block import DecoderBlock
from bertkit.nn.packing import PackedBatch
from bertkit.nn.pre_norm import PreNormDecoderBlock, PreNormEncoderBlock


class PreNormEncoder(BertEncoder):
    """A `BertEncoder` with pre-norm blocks and a final layer norm."""

    block = PreNormEncoderBlock

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.final_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, batch: TokenBatch) -> Float[Tensor, "tokens hidden"]:
        """Return the final hidden state of each source token."""
        normalized: Tensor = self.final_norm(super().forward(batch))
        return normalized

    def summary_states(self, batch: PackedBatch) -> Float[Tensor, "sequences hidden"]:
        """As in `BertEncoder`, with the final layer norm."""
        normalized: Tensor = self.final_norm(super().summary_states(batch))
        return normalized

    def hidden_states(self, batch: PackedBatch) -> Iterator[Float[Tensor, "tokens hidden"]]:
        """As in `BertEncoder`, with the final layer norm on the last."""
        *lower, last = super().hidden_states(batch)
        yield from lower
        yield self.final_norm(last)


class Decoder(nn.Module):
    """Embeddings, then a stack of decoder blocks, which attend to target and source."""

    block: ClassVar[type[DecoderBlock]] = DecoderBlock

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.embeddings = build_embeddings(config)
        self.layers = nn.ModuleList(
            self.block(
                build_attention(config),
                CrossAttention(
                    config.hidden_size,
                    config.num_attention_heads,
                    config.attention_probs_dropout_prob,
                ),
                build_feed_forward(config),
                hidden_size=config.hidden_size,
                layer_norm_epsilon=config.layer_norm_eps,
                dropout_rate=config.hidden_dropout_prob,
            )
            for _ in range(config.num_hidden_layers)
        )

    def forward(
        self, batch: TokenBatch, memory: Memory | CrossAttentionCache
    ) -> Float[Tensor, "tokens hidden"]:
        """Return the final hidden state of each target token."""
        tokens: Tensor = self.embeddings(batch)
        for layer in self.layers:
            tokens = layer(tokens, batch, memory)
        return tokens


class PreNormDecoder(Decoder):
    """A `Decoder` with pre-norm blocks and a final layer norm."""

    block = PreNormDecoderBlock

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.final_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(
        self, batch: TokenBatch, memory: Memory | CrossAttentionCache
    ) -> Float[Tensor, "tokens hidden"]:
        """Return the final hidden state of each target token."""
        normalized: Tensor = self.final_norm(super().forward(batch, memory))
        return normalized
