"""One layer of the decoder, in both orders of norms, held against torch's."""

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
    WRITTEN,
    copy_weights,
    draw,
    vectors,
)
from torch import nn

from bertkit.decoders.block import DecoderBlock, PreNormDecoderBlock
from bertkit.decoders.cross_attention import Memory
from bertkit.nn.attention import SelfAttention
from bertkit.nn.block import FeedForward


@pytest.mark.parametrize("kind", [DecoderBlock, PreNormDecoderBlock])
def test_a_decoders_layer_is_torchs(kind):
    theirs = draw(nn.TransformerDecoderLayer, is_first=kind is PreNormDecoderBlock)
    ours = kind(
        attention=SelfAttention(SIZE, NUM_HEADS, 0.0, is_causal=True),
        feed_forward=FeedForward(SIZE, INNER, "gelu"),
        **NORMS,
    )
    names = {"cross_attention.output": "multihead_attn.out_proj", "cross_attention_norm": "norm2"}
    copy_weights(ours, theirs, {**SAME, **names, "feed_forward_norm": "norm3"})
    tokens, others = vectors(WRITTEN), vectors(READ)
    pairs = zip(tokens.split(WRITTEN.lengths), others.split(READ.lengths), strict=True)
    expected = []
    for written, read in pairs:
        later = torch.ones(len(written), len(written)).triu(1).bool()
        expected.append(theirs(written[None], read[None], tgt_mask=later)[0])
    found = ours(tokens, WRITTEN, Memory(others, READ, WRITTEN))
    assert_close(found, torch.cat(expected))
