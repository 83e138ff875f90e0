"""Relative positions: biases of attention's scores, and rotary position embeddings.

Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
Transformer", section 2.1; Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position
Embedding".
"""

from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bertkit.nn.positions import MAX_DISTANCE, find_buckets, rotary_frequencies


class RelativeBias(nn.Module):
    """What each head adds to the score of a query and a key, by the bucket of their distance."""

    def __init__(self, num_buckets: int, num_heads: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(num_buckets, num_heads))

    def forward(self, longest: int) -> Float[Tensor, "heads longest longest"]:
        """Return the biases of sequences of up to `longest` tokens."""
        distances = torch.arange(1 - longest, longest).clamp_(-MAX_DISTANCE, MAX_DISTANCE)
        buckets = torch.from_numpy(find_buckets(len(self.weight)))[distances + MAX_DISTANCE]
        by_distance = self.weight[buckets.to(self.weight.device)].t()
        # Query i sees key j at the distance j - i; a row begins one place before that of the last.
        return by_distance.unfold(1, longest, 1).flip(1)


class RotaryPositions(nn.Module):
    """Rotates each pair of features of query and key by an angle that grows with the position.

    A product of a query and a key then depends on their distance. A pair is one feature of the
    first half of a head and one of the second.

    Args:
        base: of the wavelengths, which grow from 2π to 2π x base.
    """

    def __init__(self, base: float) -> None:
        super().__init__()
        self.base = base

    def forward(
        self, heads: Float[Tensor, "tokens 3 heads features"], position_ids: Int[Tensor, " tokens"]
    ) -> Float[Tensor, "tokens 3 heads features"]:
        """Return the heads with rotated queries and keys; the angles are computed in float32."""
        frequencies = find_frequencies(self.base, heads.shape[-1]).to(heads.device)
        angles = (position_ids[:, None].float() * frequencies)[:, None, None]
        cosine, sine = angles.cos().to(heads.dtype), angles.sin().to(heads.dtype)
        first, second = heads[:, :2].chunk(2, dim=-1)
        rotated = (first * cosine - second * sine, second * cosine + first * sine)
        return torch.cat([torch.cat(rotated, dim=-1), heads[:, 2:]], dim=1)


@lru_cache
def find_frequencies(base: float, num_features: int) -> Float[Tensor, " pairs"]:
    """Call `rotary_frequencies`, once for each base."""
    return torch.from_numpy(rotary_frequencies(base, num_features))
