"""The input of the encoder: the sum of three embeddings for each token.

Source: Devlin et al. 2018, section 3 and figure 2.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.nn.attention import TokenBatch
from bertkit.nn.dropout import drop


class Embeddings(nn.Module):
    """The sum of token, position and segment embeddings, with layer norm and dropout."""

    def __init__(
        self,
        *,
        vocab_size: int,
        num_positions: int,
        num_segments: int,
        hidden_size: int,
        layer_norm_epsilon: float,
        dropout_rate: float,
    ) -> None:
        super().__init__()
        self.word = nn.Embedding(vocab_size, hidden_size)
        self.position = nn.Embedding(num_positions, hidden_size)
        self.token_type = nn.Embedding(num_segments, hidden_size)
        self.norm = nn.LayerNorm(hidden_size, eps=layer_norm_epsilon)
        self.dropout_rate = dropout_rate

    def forward(self, batch: TokenBatch) -> Float[Tensor, "tokens hidden"]:
        """Look up the three embeddings, add and normalize them."""
        summed = (
            self.word(batch.input_ids)
            + self.position(batch.position_ids)
            + self.token_type(batch.token_type_ids)
        )
        embedded: Tensor = self.norm(summed)
        return drop(embedded, self.dropout_rate) if self.training else embedded


def sinusoids(num_positions: int, hidden_size: int) -> Float[Tensor, "positions hidden"]:
    """Return fixed position embeddings: alternating sines and cosines of decreasing frequency.

    Source: Vaswani et al. 2017, section 3.5.
    """
    positions = torch.arange(num_positions)[:, None]
    pairs = torch.arange(0, hidden_size, 2)
    angles = positions * torch.exp(pairs * (-math.log(10_000.0) / hidden_size))
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
    return waves[:, :hidden_size]
