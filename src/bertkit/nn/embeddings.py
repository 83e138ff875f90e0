"""The input of the encoder: the sum of three embeddings for each token.

Source: Devlin et al. 2018, section 3 and figure 2.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.nn.attention import TokenBatch
from bertkit.nn.dropout import drop
from bertkit.nn.parts import BERT_PARTS, EncoderParts


class Embeddings(nn.Module):
    """The sum of token, position and segment embeddings, with layer norm and dropout.

    Args:
        num_segments: 0 for embeddings without segments.
        parts: whether there are positions, from which row they count, and the size of embeddings
            that are projected to the hidden size.
    """

    def __init__(
        self,
        *,
        vocab_size: int,
        num_positions: int,
        num_segments: int,
        hidden_size: int,
        layer_norm_epsilon: float,
        dropout_rate: float,
        parts: EncoderParts = BERT_PARTS,
    ) -> None:
        super().__init__()
        size = parts.embedding_size or hidden_size
        self.word = nn.Embedding(vocab_size, size)
        self.position = nn.Embedding(num_positions, size) if parts.has_positions else None
        self.position_offset = parts.position_offset
        self.token_type = nn.Embedding(num_segments, size) if num_segments else None
        self.norm = nn.LayerNorm(size, eps=layer_norm_epsilon, bias=parts.has_biases)
        is_narrow = parts.embedding_size is not None
        self.projection = nn.Linear(size, hidden_size) if is_narrow else None
        self.dropout_rate = dropout_rate

    def forward(self, batch: TokenBatch) -> Float[Tensor, "tokens hidden"]:
        """Look up the three embeddings, add and normalize them."""
        summed: Tensor = self.word(batch.input_ids)
        if self.position is not None:
            summed = summed + self.position(batch.position_ids + self.position_offset)
        if self.token_type is not None:
            summed = summed + self.token_type(batch.token_type_ids)
        embedded: Tensor = self.norm(summed)
        embedded = drop(embedded, self.dropout_rate) if self.training else embedded
        return embedded if self.projection is None else self.projection(embedded)


def sinusoids(num_positions: int, hidden_size: int) -> Float[Tensor, "positions hidden"]:
    """Return fixed position embeddings: alternating sines and cosines of decreasing frequency.

    Source: Vaswani et al. 2017, section 3.5.
    """
    positions = torch.arange(num_positions)[:, None]
    pairs = torch.arange(0, hidden_size, 2)
    angles = positions * torch.exp(pairs * (-math.log(10_000.0) / hidden_size))
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
    return waves[:, :hidden_size]
