"""Prepared layers compute what plain ones do, and say where they can't be had."""

import pytest
import torch
from torch import nn

from bertkit.nn import prepared_linear
from bertkit.nn.block import ACTIVATIONS
from bertkit.nn.prepared_linear import PreparedLinear, can_prepare

pytestmark = pytest.mark.skipif(
    not can_prepare(torch.ones(1)), reason="layers can't be prepared on this machine"
)


@pytest.mark.parametrize("name", [None, *ACTIVATIONS])
@pytest.mark.parametrize("num_tokens", [1, 7, 130])
@torch.inference_mode()
def test_a_prepared_layer_agrees_with_the_plain_one(name, num_tokens):
    torch.manual_seed(num_tokens)
    linear, tokens = nn.Linear(48, 80), torch.randn(num_tokens, 48)
    activation = None if name is None else ACTIVATIONS[name]
    found = PreparedLinear(linear, activation)(tokens)
    expected = linear(tokens) if activation is None else activation(linear(tokens))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert found.data_ptr() != tokens.data_ptr()


def test_the_two_kinds_of_gelu_are_told_apart():
    """They differ by up to 5e-4, far more than the two ways to compute one of them."""
    linear, tokens = nn.Linear(1, 1), torch.linspace(-4, 4, 81)[:, None]
    nn.init.ones_(linear.weight)
    nn.init.zeros_(linear.bias)
    exact, tanh = (PreparedLinear(linear, ACTIVATIONS[name]) for name in ("gelu", "gelu_new"))
    assert 1e-4 < (exact(tokens) - tanh(tokens)).abs().max() < 1e-3


def test_later_changes_of_the_layer_are_not_seen():
    linear, tokens = nn.Linear(4, 4), torch.randn(3, 4)
    prepared = PreparedLinear(linear)
    before = prepared(tokens)
    with torch.no_grad():
        linear.weight.zero_()
        linear.bias.zero_()
    assert torch.equal(prepared(tokens), before)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_cannot_be_prepared(dtype):
    assert not can_prepare(torch.ones(1, dtype=dtype))


def test_other_devices_cannot_be_prepared():
    assert not can_prepare(torch.ones(1, device="meta"))


@pytest.mark.parametrize("missing", ["processor", "library", "operator"])
def test_without_what_it_takes_nothing_can_be_prepared(monkeypatch, missing):
    if missing == "processor":
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    elif missing == "library":
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    else:
        monkeypatch.setattr(prepared_linear, "MULTIPLY", "_no_such_operator")
    assert not can_prepare(torch.ones(1))
