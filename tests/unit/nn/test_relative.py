"""Biases by distance, rotations by position, and windows, as they are spelled out."""

from functools import partial

import pytest
import torch
from tests.closeness import assert_close

from bertkit.nn.attention import SelfAttention, attend_spelled_out
from bertkit.nn.kernels import attend_runs, attend_within
from bertkit.nn.masks import within
from bertkit.nn.packing import PackedBatch
from bertkit.nn.positions import find_buckets
from bertkit.nn.relative import RelativeBias, RotaryPositions

HEADS, FEATURES = 2, 8
LENGTHS = [(1,), (9, 9, 4), (70, 1, 33), (300, 257)]


def build(lengths: tuple[int, ...]) -> tuple[torch.Tensor, PackedBatch]:
    torch.manual_seed(sum(lengths))
    batch = PackedBatch.from_single([[5] * length for length in lengths])
    return torch.randn(sum(lengths), 3, HEADS, FEATURES, dtype=torch.float64), batch


def spell_out(heads: torch.Tensor, lengths: tuple[int, ...], bias: torch.Tensor) -> torch.Tensor:
    """Attention of each sequence alone, with a bias of whole rows."""
    contexts = []
    for own in heads.split(lengths):
        query, key, value = own.permute(1, 2, 0, 3)[:, None]
        size = len(own)
        context = attend_spelled_out(query, key, value, None, 0.0, bias=bias[:, :size, :size])
        contexts.append(context[0].transpose(0, 1))
    return torch.cat(contexts)


def build_bias(longest: int) -> RelativeBias:
    torch.manual_seed(1)
    bias = RelativeBias(32, HEADS).double()
    torch.nn.init.normal_(bias.weight)
    assert bias(longest).shape == (HEADS, longest, longest)
    return bias


def test_a_bias_is_that_of_the_bucket_of_the_distance():
    bias, buckets = build_bias(300), find_buckets(32)
    found = bias(300)
    for query, key in [(0, 0), (3, 5), (5, 3), (0, 299), (299, 0), (10, 140), (170, 40)]:
        distance = max(-128, min(128, key - query))
        assert_close(found[:, query, key], bias.weight[buckets[distance + 128]])


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("needs_gradient", [False, True])
def test_every_kernel_adds_the_bias(lengths, needs_gradient):
    (heads, batch), bias = build(lengths), build_bias(max(lengths))
    heads.requires_grad_(needs_gradient)
    layer = SelfAttention(HEADS * FEATURES, HEADS, 0.0)
    expected = spell_out(heads, lengths, bias(max(lengths)))
    assert_close(batch.attend(heads, layer, bias(max(lengths))), expected)
    rows = partial(attend_within, layer=layer, bias=bias(max(lengths)))
    assert_close(attend_runs(heads, lengths, rows), expected)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("window", [1, 4, 70])
def test_every_kernel_sees_the_window_alone(lengths, window):
    (heads, batch), longest = build(lengths), max(lengths)
    hidden = ~within(window).find_allowed(longest, longest)
    bias = torch.zeros(1, longest, longest).double().masked_fill_(hidden, -torch.inf)
    layer = SelfAttention(HEADS * FEATURES, HEADS, 0.0, window=window)
    gradients, rates = [], (0.0, 1e-9)  # with a rate, and next to no dropout
    for attend in (lambda heads: spell_out(heads, lengths, bias), batch.attend):
        heads = heads.detach().requires_grad_()
        found = attend(heads) if attend != batch.attend else batch.attend(heads, layer)
        (found**2).sum().backward()
        gradients.append((found, heads.grad))
    assert_close(gradients[1], gradients[0])
    for rate in rates:
        layer.dropout_rate = rate
        with torch.inference_mode():
            assert_close(batch.attend(heads.detach(), layer), gradients[0][0])


def test_what_a_window_hides_is_what_is_far():
    assert within(1).find_allowed(3, 4).tolist() == [
        [True, True, False, False],
        [True, True, True, False],
        [False, True, True, True],
    ]


def test_rotated_products_depend_on_the_distance_and_values_stay():
    rotary = RotaryPositions(100.0)
    heads = torch.randn(1, 3, HEADS, FEATURES, dtype=torch.float64).expand(40, -1, -1, -1)
    turned = rotary(heads, torch.arange(40))
    query, key, value = turned.unbind(dim=1)
    products = torch.einsum("ihf,jhf->hij", query, key)
    for distance in (0, 1, 7, -7, 30):
        diagonal = products.diagonal(distance, dim1=1, dim2=2)
        assert_close(diagonal, diagonal[:, :1].expand_as(diagonal), within=1e-5)
    assert torch.equal(value, heads[:, 2])
    assert_close(turned[0], heads[0])
    assert (products[:, 0, 0] - products[:, 0, 9]).abs().min() > 1e-3
