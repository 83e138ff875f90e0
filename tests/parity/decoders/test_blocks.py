"""One layer of an encoder and of a decoder, in both orders of norms, held against torch's."""

import pytest
import torch
from tests.closeness import assert_close
from torch import Tensor, nn

from bertkit.decoders.block import DecoderBlock
from bertkit.decoders.cross_attention import Memory
from bertkit.nn.attention import SelfAttention
from bertkit.nn.block import EncoderBlock, FeedForward
from bertkit.nn.packing import PackedBatch
from bertkit.nn.parts import EncoderParts

SIZE, NUM_HEADS, INNER, EPSILON = 12, 3, 20, 1e-6
READ = PackedBatch.from_single([[5] * length for length in (4, 1, 7)])
WRITTEN = PackedBatch.from_single([[5] * length for length in (2, 6, 3)])
NORMS = {"hidden_size": SIZE, "layer_norm_epsilon": EPSILON, "dropout_rates": {}}
SAME = {"attention.output": "self_attn.out_proj", "attention_norm": "norm1"}
SAME |= {"feed_forward.up": "linear1", "feed_forward.down": "linear2"}


def draw(kind: type[nn.Module], *, is_first: bool) -> nn.Module:
    """A layer of torch's whose weights are all other than 0 and 1."""
    torch.manual_seed(3)
    options = {"dropout": 0.0, "activation": "gelu", "layer_norm_eps": EPSILON}
    layer = kind(SIZE, NUM_HEADS, INNER, batch_first=True, norm_first=is_first, **options).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return layer.eval()


def copy_weights(ours: nn.Module, theirs: nn.Module, names: dict[str, str]) -> nn.Module:
    """Ours in double precision with their weights, by the names of modules."""
    states = theirs.state_dict()
    for name, their_name in names.items():
        for end in ("weight", "bias"):
            states[f"{name}.{end}"] = states.pop(f"{their_name}.{end}")
    for end in ("weight", "bias"):
        states[f"attention.query_key_value.{end}"] = states.pop(f"self_attn.in_proj_{end}")
        across = states.pop(f"multihead_attn.in_proj_{end}", None)
        if across is not None:
            states[f"cross_attention.query.{end}"] = across[:SIZE]
            states[f"cross_attention.key_value.{end}"] = across[SIZE:]
    ours.double().load_state_dict(states)
    return ours.eval()


def vectors(batch: PackedBatch) -> Tensor:
    return torch.randn(batch.num_tokens, SIZE, dtype=torch.float64)


@pytest.mark.parametrize("is_first", [False, True])
def test_an_encoders_layer_is_torchs(is_first):
    theirs = draw(nn.TransformerEncoderLayer, is_first=is_first)
    ours = EncoderBlock(
        attention=SelfAttention(SIZE, NUM_HEADS, 0.0),
        feed_forward=FeedForward(SIZE, INNER, "gelu"),
        parts=EncoderParts(normalizes_first=is_first),
        **NORMS,
    )
    copy_weights(ours, theirs, {**SAME, "feed_forward_norm": "norm2"})
    tokens = vectors(READ)
    expected = torch.cat([theirs(part[None])[0] for part in tokens.split(READ.lengths)])
    assert_close(ours(tokens, READ), expected)
    first = READ.first_tokens
    assert_close(ours(tokens, READ, first), expected[first])


@pytest.mark.parametrize("is_first", [False, True])
def test_a_decoders_layer_is_torchs(is_first):
    theirs = draw(nn.TransformerDecoderLayer, is_first=is_first)
    ours = DecoderBlock(
        attention=SelfAttention(SIZE, NUM_HEADS, 0.0, is_causal=True),
        feed_forward=FeedForward(SIZE, INNER, "gelu"),
        parts=EncoderParts(normalizes_first=is_first),
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
