"""The layers of a decoder, with cross-attention, and those that normalize before each sub-layer.

Source: Vaswani et al. 2017, section 3.1.
"""

from jaxtyping import Float
from torch import Tensor, nn

from bertkit.decoders.cross_attention import CrossAttention, CrossAttentionCache, Memory
from bertkit.nn.attention import SelfAttention, TokenBatch
from bertkit.nn.block import Block, EncoderBlock, FeedForward


class DecoderBlock(Block):
    """Causal self-attention, cross-attention to the encoder's output, then feed-forward.

    Cross-attention has as many heads as self-attention, and the same dropout.
    """

    cross_attention: CrossAttention
    cross_attention_norm: nn.LayerNorm

    def __init__(
        self,
        *,
        attention: SelfAttention,
        feed_forward: FeedForward,
        hidden_size: int,
        layer_norm_epsilon: float,
        dropout_rate: float,
    ) -> None:
        super().__init__(
            hidden_size=hidden_size,
            layer_norm_epsilon=layer_norm_epsilon,
            dropout_rate=dropout_rate,
            attention=attention,
            cross_attention=CrossAttention(
                hidden_size, attention.num_heads, attention.dropout_rate
            ),
            feed_forward=feed_forward,
        )

    def forward(
        self,
        tokens: Float[Tensor, "tokens hidden"],
        batch: TokenBatch,
        memory: Memory | CrossAttentionCache,
    ) -> Float[Tensor, "tokens hidden"]:
        """Return the layer's output for each target token."""
        tokens = self.add(self.attention_norm, self.attention, tokens, batch)
        tokens = self.add(self.cross_attention_norm, self.cross_attention, tokens, memory)
        return self.add(self.feed_forward_norm, self.feed_forward, tokens)


class PreNormEncoderBlock(EncoderBlock):
    """An `EncoderBlock` with layer norm before each sub-layer."""

    normalizes_first = True


class PreNormDecoderBlock(DecoderBlock):
    """A `DecoderBlock` with layer norm before each sub-layer."""

    normalizes_first = True
