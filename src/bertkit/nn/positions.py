"""Numbers of relative and rotary positions, in NumPy, for PyTorch's modules and engines alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float32, Int64

MAX_DISTANCE = 128  # those that are farther share the bucket of this one


def find_buckets(num_buckets: int) -> Int64[np.ndarray, " distances"]:
    """Return the bucket of each distance from a query to a key, from -128 to 128.

    Half of the buckets are for keys before the query and itself, half for those behind it. Half of
    these are for one distance each; the others grow logarithmically up to `MAX_DISTANCE`.

    Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified
    Text-to-Text Transformer", section 2.1.
    """
    distances = np.arange(-MAX_DISTANCE, MAX_DISTANCE + 1)
    sizes, half = np.abs(distances), num_buckets // 2
    num_exact = half // 2
    # The margin is for whole numbers, which a logarithm may miss by its last bit.
    share = np.log(np.maximum(sizes, 1) / num_exact) / np.log(MAX_DISTANCE / num_exact)
    grown = num_exact + (share * (half - num_exact) + 1e-9).astype(np.int64)
    buckets: Int64[np.ndarray, " distances"]
    buckets = np.where(sizes < num_exact, sizes, np.minimum(grown, half - 1))
    buckets += half * (distances > 0)
    return buckets


def rotary_frequencies(base: float, num_features: int) -> Float32[np.ndarray, " pairs"]:
    """Return the angle by which a position rotates each pair of a head's features.

    Powers are rounded to float32 as published models round them: at high positions another last bit
    would be another angle.

    Source: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding".
    """
    exponents = (np.arange(0, num_features, 2) / num_features).astype(np.float32)
    return np.float32(1.0) / np.power(base, exponents.astype(np.float64)).astype(np.float32)


def rotary_waves(
    base: float, num_features: int, length: int
) -> Float32[np.ndarray, "2 length features"]:
    """Return cosine and sine of the angle by which each position rotates each feature of a head."""
    frequencies = np.tile(rotary_frequencies(base, num_features), 2)
    angles = np.arange(length, dtype=np.float32)[:, None] * frequencies
    return np.stack([np.cos(angles), np.sin(angles)])
