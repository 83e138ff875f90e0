"""Heads that matter are told from those that don't, in both ways."""

import pytest
import torch
from tests.unit.inference.small import build_model

from bertkit.interpret.ablation import importance_by_ablation, importance_by_gradient
from bertkit.nn.packing import PackedBatch

BATCHES = [PackedBatch.from_single([ids]) for ids in ([2, 5, 7, 3], [2, 6, 9, 10, 3])]


@pytest.fixture
def model():
    model = build_model().eval()
    with torch.no_grad():
        model.encoder.layers[0].attention.output.weight[:, 4:] = 0.0  # head 1.2 adds nothing
    return model


def loss(model, batch):
    return model.encoder(batch)[0].square().mul(torch.arange(8.0)).sum()


def test_a_head_that_adds_nothing_has_no_importance(model):
    with torch.inference_mode():
        changes = importance_by_ablation(model, lambda: float(loss(model, BATCHES[0])))
    gradients = importance_by_gradient(model, [lambda b=b: loss(model, b) for b in BATCHES])
    for importance in (changes, gradients):
        assert importance.shape == (2, 2)
        assert importance[0, 1] == 0
        assert (importance.abs().flatten()[[0, 2, 3]] > 1e-6).all()


def test_the_gradient_is_the_slope_of_the_gate(model):
    from bertkit.interpret.ablation import gate_heads

    model = model.double()
    found = importance_by_gradient(model, [lambda: loss(model, BATCHES[0])])
    step = 1e-4
    gates = torch.ones(2, 2)
    for layer, head in ((0, 0), (1, 0), (1, 1)):
        values = []
        for change in (step, -step):
            gates[layer, head] = 1 + change
            with torch.no_grad(), gate_heads(model.encoder, gates):
                values.append(float(loss(model, BATCHES[0])))
            gates[layer, head] = 1
        slope = (values[0] - values[1]) / (2 * step)
        assert float(found[layer, head]) == pytest.approx(abs(slope), rel=1e-2)


def test_no_example_is_refused(model):
    with pytest.raises(ValueError, match="at least one example"):
        importance_by_gradient(model, [])
