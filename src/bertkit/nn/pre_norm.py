"""Pre-norm blocks: layer norm on the input of each sub-layer, instead of on the residual sum.

Source: Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture".
"""

from jaxtyping import Float, Int
from torch import Tensor

from bertkit.nn.attention import TokenBatch
from bertkit.nn.block import EncoderBlock
from bertkit.nn.cross_attention import CrossAttentionCache, Memory
from bertkit.nn.decoder_block import DecoderBlock


class PreNormEncoderBlock(EncoderBlock):
    """An `EncoderBlock` with layer norm before each sub-layer."""

    def forward(
        self,
        tokens: Float[Tensor, "tokens hidden"],
        batch: TokenBatch,
        kept: Int[Tensor, " rows"] | None = None,
    ) -> Float[Tensor, "rows hidden"]:
        """Return the states of all tokens, or only of `kept`, which still attend to all."""
        attended = self.attention(self.attention_norm(tokens), batch, kept)
        tokens = tokens if kept is None else tokens[kept]
        tokens = tokens + self.dropout(attended)
        higher: Tensor = tokens + self.dropout(self.feed_forward(self.feed_forward_norm(tokens)))
        return higher


class PreNormDecoderBlock(DecoderBlock):
    """A `DecoderBlock` with layer norm before each sub-layer."""

    def forward(
        self,
        tokens: Float[Tensor, "tokens hidden"],
        batch: TokenBatch,
        memory: Memory | CrossAttentionCache,
    ) -> Float[Tensor, "tokens hidden"]:
        """Return the layer's output for each target token."""
        tokens = tokens + self.dropout(self.attention(self.attention_norm(tokens), batch))
        read = self.cross_attention(self.cross_attention_norm(tokens), memory)
        tokens = tokens + self.dropout(read)
        higher: Tensor = tokens + self.dropout(self.feed_forward(self.feed_forward_norm(tokens)))
        return higher
