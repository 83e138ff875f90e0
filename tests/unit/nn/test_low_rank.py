"""Linear layers with an update of low rank: what they compute, what has a gradient, and merging."""

import pytest
import torch
from tests.closeness import assert_close
from torch import nn

from bertkit.base.errors import SettingsError
from bertkit.nn.attention import SelfAttention
from bertkit.nn.low_rank import SCALE, LowRankLinear, add_low_rank, merge_low_rank


def build_layer(num_joined: int) -> LowRankLinear:
    torch.manual_seed(0)
    layer = LowRankLinear(nn.Linear(8, 12).requires_grad_(False), 2, num_joined)
    nn.init.normal_(layer.lora_b)
    return layer


@pytest.mark.parametrize("num_joined", [1, 3])
def test_an_update_is_the_product_of_its_factors(num_joined: int) -> None:
    layer = build_layer(num_joined)
    tokens = torch.randn(5, 8)
    updates = [
        b @ a
        for a, b in zip(layer.lora_a.chunk(num_joined), layer.lora_b.chunk(num_joined), strict=True)
    ]
    weight = layer.weight + SCALE * torch.cat(updates)
    assert_close(layer(tokens), nn.functional.linear(tokens, weight, layer.bias))
    assert_close(layer.merge()(tokens), layer(tokens))


def test_only_the_factors_have_gradients() -> None:
    layer = build_layer(3)
    layer(torch.randn(5, 8)).sum().backward()
    assert [name for name, each in layer.named_parameters() if each.grad is not None] == [
        "lora_a",
        "lora_b",
    ]


def test_a_new_update_changes_nothing() -> None:
    torch.manual_seed(0)
    attention = SelfAttention(8, 2, 0.0)
    tokens = torch.randn(5, 8)
    before = attention.query_key_value(tokens)
    add_low_rank(attention, 2)
    assert isinstance(attention.query_key_value, LowRankLinear)
    assert torch.equal(attention.query_key_value(tokens), before)
    merge_low_rank(attention)
    assert type(attention.query_key_value) is nn.Linear
    assert torch.equal(attention.query_key_value(tokens), before)


def test_a_rank_as_high_as_the_matrices_is_an_error() -> None:
    with pytest.raises(SettingsError, match=r"lora \(8\) must be below 8"):
        add_low_rank(SelfAttention(8, 2, 0.0), 8)
