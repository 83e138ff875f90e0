"""What is captured is what the model computed, and capturing changes nothing."""

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.inference.small import build_model

from bertkit.interpret.capture import capture_attention
from bertkit.nn.packing import PackedBatch

IDS = [[2, 5, 7, 3], [2, 6, 3], [2, 9, 10, 11, 8, 3]]


@pytest.fixture(scope="module")
def model():
    return build_model().eval()


@pytest.fixture(scope="module")
def batch():
    return PackedBatch.from_single(IDS)


@torch.inference_mode()
def test_capturing_changes_no_output_and_leaves_no_hook(model, batch):
    plain = model.encoder(batch)
    with capture_attention(model.encoder):
        watched = model.encoder(batch)
    assert torch.equal(watched, plain)
    assert torch.equal(model.encoder(batch), plain)
    with pytest.raises(ZeroDivisionError), capture_attention(model.encoder):
        raise ZeroDivisionError
    hooks = [
        hook
        for module in model.modules()
        for hook in (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
    ]
    assert hooks == []


@torch.inference_mode()
def test_weights_make_the_context_that_the_model_computed(model, batch):
    with capture_attention(model.encoder) as layers:
        model.encoder(batch)
    assert len(layers) == 2
    for layer in layers:
        for sequence, ids in enumerate(IDS):
            heads = layer.heads(sequence)
            assert heads.query.shape == (2, len(ids), 4)
            assert_close(heads.weights.sum(dim=-1), torch.ones(2, len(ids)))
            assert_close(heads.weights @ heads.value, heads.context)
            assert float(heads.weights.std()) > 0.01  # not all tokens alike


@torch.inference_mode()
def test_a_layer_that_computes_first_tokens_only_has_weights_and_no_context(model, batch):
    with capture_attention(model.encoder) as layers:
        model.encoder.summary_states(batch)
        model.encoder(batch)
    assert len(layers) == 4
    first, last = (layer.heads(2) for layer in layers[:2])
    assert first.context is not None
    assert last.context is None
    assert last.weights.shape == (2, 6, 6)


def test_gradients_run_through_what_is_captured(model, batch):
    with capture_attention(model.encoder) as layers:
        model.encoder(batch)
    (gradient,) = torch.autograd.grad(
        layers[1].heads(0).weights[0, 0, 0], model.encoder.embeddings.word.weight
    )
    assert gradient.abs().sum() > 0
