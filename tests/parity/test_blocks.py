"""One layer of the encoder, in both orders of norms, held against torch's."""

import pytest
import torch
from tests.closeness import assert_close
from tests.parity.torch_layers import (
    INNER,
    NORMS,
    NUM_HEADS,
    READ,
    SAME,
    SIZE,
    copy_weights,
    draw,
    vectors,
)
from torch import nn

from bertkit.nn.attention import SelfAttention
from bertkit.nn.block import EncoderBlock, FeedForward, PreNormEncoderBlock


@pytest.mark.parametrize("kind", [EncoderBlock, PreNormEncoderBlock])
def test_an_encoders_layer_is_torchs(kind):
    theirs = draw(nn.TransformerEncoderLayer, is_first=kind is PreNormEncoderBlock)
    ours = kind(
        attention=SelfAttention(SIZE, NUM_HEADS, 0.0),
        feed_forward=FeedForward(SIZE, INNER, "gelu"),
        **NORMS,
    )
    copy_weights(ours, theirs, {**SAME, "feed_forward_norm": "norm2"})
    tokens = vectors(READ)
    expected = torch.cat([theirs(part[None])[0] for part in tokens.split(READ.lengths)])
    assert_close(ours(tokens, READ), expected)
    first = READ.first_tokens
    assert_close(ours(tokens, READ, first), expected[first])
