"""The layers of a decoder, with cross-attention.

Source: Vaswani et al. 2017, section 3.1.
"""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from bertkit.decoders.cross_attention import CrossAttention, CrossAttentionCache, Memory
from bertkit.nn.attention import SelfAttention, TokenBatch
from bertkit.nn.block import Block, FeedForward


class DecoderBlock(Block):
    """Causal self-attention, cross-attention to the encoder's output, then feed-forward.

    Cross-attention has as many heads as self-attention, and the same dropout.
    """

    cross_attention: CrossAttention

    def __init__(
        self,
        *,
        attention: SelfAttention,
        feed_forward: FeedForward,
        hidden_size: int,
        **shape: Any,
    ) -> None:
        super().__init__(
            hidden_size=hidden_size,
            **shape,
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
        tokens = self.add("attention", tokens, batch)
        tokens = self.add("cross_attention", tokens, memory)
        return self.add("feed_forward", tokens)
