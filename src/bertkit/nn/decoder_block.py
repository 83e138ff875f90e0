"""One decoder layer: self-attention, cross-attention and feed-forward.

Source: Vaswani et al. 2017, section 3.1.
"""

from jaxtyping import Float
from torch import Tensor, nn

from bertkit.nn.attention import SelfAttention, TokenBatch
from bertkit.nn.block import FeedForward
from bertkit.nn.cross_attention import CrossAttention, CrossAttentionCache, Memory
from bertkit.nn.dropout import Dropout


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention to the encoder's output, then feed-forward.

    Each is followed by dropout, residual and layer normalization.

    Args:
        attention: the self-attention sub-layer; causal.
        cross_attention: the cross-attention sub-layer.
        feed_forward: the feed-forward sub-layer.
        hidden_size: features of a token.
        layer_norm_epsilon: added to the variance.
        dropout_rate: dropout on the output of each sub-layer.
    """

    def __init__(
        self,
        attention: SelfAttention,
        cross_attention: CrossAttention,
        feed_forward: FeedForward,
        *,
        hidden_size: int,
        layer_norm_epsilon: float,
        dropout_rate: float,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = nn.LayerNorm(hidden_size, eps=layer_norm_epsilon)
        self.cross_attention = cross_attention
        self.cross_attention_norm = nn.LayerNorm(hidden_size, eps=layer_norm_epsilon)
        self.feed_forward = feed_forward
        self.feed_forward_norm = nn.LayerNorm(hidden_size, eps=layer_norm_epsilon)
        self.dropout = Dropout(dropout_rate)

    def forward(
        self,
        tokens: Float[Tensor, "tokens hidden"],
        batch: TokenBatch,
        memory: Memory | CrossAttentionCache,
    ) -> Float[Tensor, "tokens hidden"]:
        """Return the layer's output for each target token."""
        tokens = self.attention_norm(tokens + self.dropout(self.attention(tokens, batch)))
        read = self.cross_attention(tokens, memory)
        tokens = self.cross_attention_norm(tokens + self.dropout(read))
        higher: Tensor = self.feed_forward_norm(tokens + self.dropout(self.feed_forward(tokens)))
        return higher
