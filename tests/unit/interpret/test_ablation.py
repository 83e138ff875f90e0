"""Heads: their names, the model without some of them, and how much each matters."""

import pytest
import torch
from tests.closeness import assert_close, close
from tests.unit.inference.small import build_model
from tests.unit.inference.small_task import save_classifier

from bertkit.base.errors import SettingsError
from bertkit.inference.predictor import Classifier
from bertkit.interpret.ablation import (
    HeadName,
    ablate,
    gate_heads,
    importance_by_ablation,
    importance_by_gradient,
    parse_heads,
)
from bertkit.models.bert.config import BertConfig
from bertkit.nn.packing import PackedBatch


@pytest.fixture
def model():
    return build_model().eval()


BATCH = PackedBatch.from_single([[2, 5, 7, 3], [2, 6, 3]])


@torch.inference_mode()
def test_gates_scale_what_a_head_gathers_and_off_is_as_good_as_without_weights(model):
    with gate_heads(model.encoder, torch.tensor([[1.0, 0.5], [1.0, 1.0]])):
        gated = model.encoder(BATCH)
    model.encoder.layers[0].attention.output.weight[:, 4:] *= 0.5
    assert_close(model.encoder(BATCH), gated)
    with ablate(model, [(2, 1)]):
        off = model.encoder(BATCH)
    whole = model.encoder(BATCH)
    assert off != close(whole)
    model.encoder.layers[1].attention.output.weight[:, :4] = 0.0
    assert_close(model.encoder(BATCH), off)


def test_a_predictor_answers_without_a_head(tmp_path):
    classifier = Classifier.load(
        save_classifier(tmp_path / "labels"), engine="torch", precision="fp32"
    )
    whole = classifier("the cat saw the hat")
    with ablate(classifier.engine.model, [(1, 1), (2, 2), (2, 2)]):
        without = classifier("the cat saw the hat")
    assert without.probabilities != whole.probabilities
    assert classifier("the cat saw the hat") == whole


CONFIG = BertConfig(hidden_size=8, num_hidden_layers=6, num_attention_heads=4, intermediate_size=8)


def test_names_are_layer_and_head_from_1():
    assert parse_heads("5.3, 5.4,5.3,", CONFIG) == [HeadName(5, 3), HeadName(5, 4)]
    assert str(HeadName(5, 3)) == "5.3"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("", " , "), "at least one head"),
        (("5", "5.", "a.b", "5.3.1", "-1.2", "٥.٣", "5,3.4"), r"expected heads such as 5\.3,5\.4"),
        (("0.1", "7.1", "1.5", "1.0"), "layers 1 to 6, each with heads 1 to 4"),
    ],
)
def test_what_names_no_head_is_refused(texts, message):
    for text in texts:
        with pytest.raises(SettingsError, match=message):
            parse_heads(text, CONFIG)


BATCHES = [PackedBatch.from_single([ids]) for ids in ([2, 5, 7, 3], [2, 6, 9, 10, 3])]


@pytest.fixture
def idle(model):
    """The model, whose head 1.2 adds nothing."""
    with torch.no_grad():
        model.encoder.layers[0].attention.output.weight[:, 4:] = 0.0
    return model


def loss(model, batch):
    return model.encoder(batch)[0].square().mul(torch.arange(8.0)).sum()


def test_a_head_that_adds_nothing_has_no_importance(idle):
    with torch.inference_mode():
        changes = importance_by_ablation(idle, lambda: float(loss(idle, BATCHES[0])))
    gradients = importance_by_gradient(idle, [lambda b=b: loss(idle, b) for b in BATCHES])
    for importance in (changes, gradients):
        assert importance.shape == (2, 2)
        assert importance[0, 1] == 0
        assert (importance.abs().flatten()[[0, 2, 3]] > 1e-6).all()


def test_the_gradient_is_the_slope_of_the_gate(idle):
    model = idle.double()
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
        assert float(found[layer, head]) == close(abs(slope), within=0.01 * abs(slope))


def test_no_example_is_refused(model):
    with pytest.raises(ValueError, match="at least one example"):
        importance_by_gradient(model, [])
