"""Initial weights with which the first layer's heads attend to neighboring tokens.

A small BERT predicts little more than the frequency of words until one of its heads attends to the
tokens beside a mask, and finding such a head takes thousands of steps from random weights. These
weights start there: positions are sines and cosines, and a head's keys are its queries rotated by
an offset, so that the query at position i fits the key at position i + offset best. All weights
stay trainable.

Sources: trained BERTs have such heads (Clark et al. 2019, "What does BERT look at?", section 3.1);
Trockman and Kolter 2023, "Mimetic initialization of self-attention layers", start attention with
patterns of trained models; sines and cosines as positions: Vaswani et al. 2017, section 3.5.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import InputError
from bertkit.models.bert.encoder import BertEncoder
from bertkit.nn.block import EncoderBlock

POSITION_SCALE = 0.2  # amplitude of the position embeddings
WAVELENGTH_BASE = 100.0  # 10,000 in the paper; neighbors need short wavelengths
SHARPNESS = 1.2  # larger values concentrate attention on the neighbor
OFFSETS, CAUSAL_OFFSETS = (-1, 1, -2, 2), (-1, -2, -3, -4)


def attend_to_neighbors(encoder: BertEncoder) -> None:
    """Set the position embeddings, and the queries and keys of the first layer's heads.

    The heads attend at the offsets −1, +1, −2, +2 in turn; in a causal encoder at −1, −2, −3, −4.
    """
    embedding = encoder.embeddings.position
    assert embedding is not None, "only encoders with learned positions begin with such heads"
    positions = embedding.weight
    block = encoder.layers[0]
    assert isinstance(block, EncoderBlock)
    attention = block.attention
    offsets = CAUSAL_OFFSETS if attention.is_causal else OFFSETS
    hidden_size, num_heads = positions.shape[1], attention.num_heads
    if hidden_size % 2:
        raise InputError(
            f"hidden_size must be even for sines and cosines, got {hidden_size}; give an even"
            " one, or begin with `bertkit pretrain --recipe paper`"
        )
    num_pairs = hidden_size // num_heads // 2
    # of the sine–cosine pairs, the highest first
    frequencies = WAVELENGTH_BASE ** (-2 * torch.arange(hidden_size // 2) / hidden_size)
    with torch.no_grad():
        positions.copy_(POSITION_SCALE * sinusoids(len(positions), frequencies))
        weights = attention.query_key_value.weight.view(3, num_heads, -1, hidden_size)
        weights[:2] = 0.0
        for head in range(num_heads):
            angles = frequencies[:num_pairs] * offsets[head % len(offsets)]
            sine, cosine = angles.sin(), angles.cos()
            # They turn (sin a, cos a) into (sin(a − angle), cos(a − angle)).
            rotations = torch.stack([cosine, -sine, sine, cosine], dim=-1).view(-1, 2, 2)
            for index, rotation in enumerate(rotations):
                pair = slice(2 * index, 2 * index + 2)
                weights[0, head, pair, pair] = SHARPNESS * torch.eye(2)
                weights[1, head, pair, pair] = SHARPNESS * rotation


def sinusoids(
    num_positions: int, frequencies: Float[Tensor, " pairs"]
) -> Float[Tensor, "positions hidden"]:
    """Return sine and cosine of each frequency at each position, side by side."""
    angles = torch.arange(num_positions)[:, None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
