"""The blocks that normalize first: the input of each part, and not the sum behind it.

Source: Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture".
"""

from jaxtyping import Float, Int
from torch import Tensor

from bertkit.nn.block import EncoderBlock
from bertkit.nn.cross_attention import CrossAttentionCache, Memory
from bertkit.nn.decoder_block import DecoderBlock
from bertkit.nn.key_value_cache import KVCache
from bertkit.nn.packing import PackedBatch


class PreNormEncoderBlock(EncoderBlock):
    """As `EncoderBlock`, but it normalizes first."""

    def forward(
        self,
        tokens: Float[Tensor, "tokens hidden"],
        batch: PackedBatch | KVCache,
        kept: Int[Tensor, " rows"] | None = None,
    ) -> Float[Tensor, "rows hidden"]:
        """One layer up: for all tokens, or for those that are kept, which read all of them."""
        attended = self.attention(self.attention_norm(tokens), batch, kept)
        tokens = tokens if kept is None else tokens[kept]
        tokens = tokens + self.dropout(attended)
        higher: Tensor = tokens + self.dropout(self.feed_forward(self.feed_forward_norm(tokens)))
        return higher


class PreNormDecoderBlock(DecoderBlock):
    """As `DecoderBlock`, but it normalizes first."""

    def forward(
        self,
        tokens: Float[Tensor, "tokens hidden"],
        batch: PackedBatch | KVCache,
        memory: Memory | CrossAttentionCache,
    ) -> Float[Tensor, "tokens hidden"]:
        """One layer up."""
        tokens = tokens + self.dropout(self.attention(self.attention_norm(tokens), batch))
        read = self.cross_attention(self.cross_attention_norm(tokens), memory)
        tokens = tokens + self.dropout(read)
        higher: Tensor = tokens + self.dropout(self.feed_forward(self.feed_forward_norm(tokens)))
        return higher
