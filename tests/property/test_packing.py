"""Packed ≡ each sequence alone, and padding changes nothing."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.closeness import assert_close
from tests.unit.inference.small import build_config

from bertkit.models.bert.encoder import BertModel
from bertkit.nn.attention import attend_spelled_out
from bertkit.nn.head_blocks import length_mask
from bertkit.nn.kernels import attend_fused
from bertkit.nn.packing import PackedBatch

CONFIG = build_config(
    vocab_size=50, hidden_size=16, intermediate_size=24, max_position_embeddings=40
)
# Attention has another kernel for each: spelled out, fused over padded rows, fused over runs.
every_mode = pytest.mark.parametrize(
    "mode", [torch.enable_grad, torch.no_grad, torch.inference_mode]
)
LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    model = BertModel(CONFIG).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def random_sequences(lengths: list[int]) -> tuple[list[list[int]], list[list[int]]]:
    generator = torch.Generator().manual_seed(sum(lengths))
    ids = [torch.randint(5, 50, (length,), generator=generator).tolist() for length in lengths]
    segments = [[0] * (length // 2) + [1] * (length - length // 2) for length in lengths]
    return ids, segments


@every_mode
@given(lengths=LENGTHS)
@settings(max_examples=20)
def test_a_packed_batch_gives_what_each_sequence_gives_alone(model, mode, lengths):
    ids, segments = random_sequences(lengths)
    with mode():
        together = model.encoder(PackedBatch.from_sequences(ids, segments))
    alone = [
        model.encoder(PackedBatch.from_sequences([one], [types]))
        for one, types in zip(ids, segments, strict=True)
    ]
    assert_close(together, torch.cat(alone))


@every_mode
@given(lengths=LENGTHS, more=st.integers(0, 5))
@settings(max_examples=20)
def test_padding_changes_nothing(model, mode, lengths, more):
    ids, segments = random_sequences(lengths)
    packed = model.encoder(PackedBatch.from_sequences(ids, segments))
    width = min(40, max(lengths) + more)
    rows = torch.tensor([one + [0] * (width - len(one)) for one in ids])
    types = torch.tensor([one + [0] * (width - len(one)) for one in segments])
    mask = torch.tensor([[1] * length + [0] * (width - length) for length in lengths])
    with mode():
        padded = model(rows, types, mask).last_hidden_state
    assert_close(padded[mask.bool()], packed)
    assert not padded[~mask.bool()].any()


@given(LENGTHS)
@settings(max_examples=20)
def test_the_spelled_out_kernel_agrees_with_the_fused_one(lengths):
    mask = length_mask(lengths, torch.device("cpu"))
    query, key, value = torch.randn(3, len(lengths), 2, max(lengths), 8, dtype=torch.float64)
    expected = attend_fused(query, key, value, mask)
    found = attend_spelled_out(query, key, value, mask, dropout_rate=0.0)
    assert_close(found, expected)
