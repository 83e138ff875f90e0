"""PyTorch's engine gives what the model's own modules give."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.closeness import assert_close
from tests.unit.inference.small import build_model

from bertkit.inference.engines.engine import TorchEngine
from bertkit.nn.block import ACTIVATIONS
from bertkit.nn.packing import PackedBatch

BATCH = PackedBatch.from_sequences(
    [[2, 5, 6, 3], [2, 9, 7, 3], [2, 3], [2, 7, 8, 9, 5, 3]],
    [[0, 0, 0, 0], [0, 0, 1, 1], [0, 0], [0, 0, 0, 1, 1, 1]],
)


def assert_agrees(model, batch, tolerance=1e-5):
    with torch.no_grad():  # not inference mode: attention then takes its other way
        expected = list(model.eval().encoder.hidden_states(batch))
    found = TorchEngine(model, range(len(expected)))(batch)
    for ours, theirs in zip(found, expected, strict=True):
        scale = max(1.0, float(theirs.abs().max()))
        assert_close(ours, theirs, within=tolerance * scale)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_agrees(activation):
    assert_agrees(build_model(hidden_act=activation), BATCH)


@given(
    head_size=st.sampled_from([1, 4, 5, 16, 32]),
    num_heads=st.integers(1, 4),
    intermediate_size=st.integers(1, 70),
    num_layers=st.integers(1, 3),
    lengths=st.lists(st.integers(1, 24), min_size=1, max_size=12),
)
@settings(max_examples=20)
def test_random_shapes_agree(head_size, num_heads, intermediate_size, num_layers, lengths):
    model = build_model(
        hidden_size=head_size * num_heads,
        num_attention_heads=num_heads,
        intermediate_size=intermediate_size,
        num_hidden_layers=num_layers,
    )
    ids = [torch.randint(0, 15, (length,)).tolist() for length in lengths]
    assert_agrees(model, PackedBatch.from_single(ids), tolerance=1e-4)


def test_float64_runs_as_it_is():
    model = build_model().double()
    engine = TorchEngine(model)
    assert engine.encoder is model.encoder
    with torch.no_grad():
        expected = model.encoder(BATCH)
    found = engine(BATCH)[0]
    assert found.dtype == torch.float32
    assert_close(found, expected.float())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("bf16", 0.1)])
def test_a_gpu_agrees_with_the_cpu(precision, tolerance):
    sizes = {"hidden_size": 32, "intermediate_size": 64, "initializer_range": 0.1}
    expected = TorchEngine(build_model(**sizes))(BATCH)[0]
    engine = TorchEngine(build_model(**sizes).cuda(), precision=precision)
    found = engine(BATCH)[0]
    assert found.is_cuda
    assert found.dtype == torch.float32
    assert_close(found.cpu(), expected, within=tolerance)
