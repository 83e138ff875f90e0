"""The importance view measures each head by what the model says, and tells what changed."""

import json

import pytest
import torch
from tests.closeness import close
from tests.unit.inference.small import save_kind
from tests.unit.inference.small_task import save_classifier, save_model

from bertkit.interpret.ablation import HeadName, ablate, gate_heads
from bertkit.interpret.head_predictions import compare, find_outcome
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.views.measures import collect_importance
from bertkit.interpret.views.view import ViewInputs
from bertkit.models.bert.encoder import BertModel
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.regress.task import Regress

TEXT = "the cat saw a hat ."


@pytest.fixture(scope="module")
def inspected(tmp_path_factory):
    return InspectedModel.load(save_classifier(tmp_path_factory.mktemp("importance") / "labels"))


def look(inspected, *heads, **options):
    names = [HeadName(*head) for head in heads]
    return ViewInputs(inspected, inspected.observe(inspected.read(TEXT), names), **options)


@torch.inference_mode()
def outcome_without(inspected, *heads):
    with ablate(inspected.model, heads):
        return find_outcome(inspected, inspected.read(TEXT))


def test_the_map_is_the_change_without_each_head(inspected):
    data = collect_importance(look(inspected))
    assert data["kind"] == "probability"
    whole = outcome_without(inspected)
    for layer in (1, 2):
        for head in (1, 2):
            expected = compare(whole, outcome_without(inspected, (layer, head))).probability
            assert data["ablation"][layer - 1][head - 1] == close(expected, "float32")
            assert abs(expected) > 1e-4
    assert data["whole"] is data["change"] is None
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_the_gradient_is_of_what_the_model_said(inspected):
    (row, _) = collect_importance(look(inspected))["gradient"]
    predicted = outcome_without(inspected).predictions[0].predicted.clone()
    gates = torch.ones(2, 2, requires_grad=True)
    with gate_heads(inspected.model.encoder, gates):
        scores = inspected.model.scores(inspected.read(TEXT).pack())
    loss = torch.nn.functional.cross_entropy(scores, predicted)
    (gradient,) = torch.autograd.grad(loss, gates)
    assert row == close(gradient[0].abs().tolist(), "float32")


def test_with_heads_off_it_tells_both_outcomes_and_their_distance(inspected):
    heads = ((1, 1), (2, 2))
    data = collect_importance(look(inspected, *heads))
    whole, now = outcome_without(inspected), outcome_without(inspected, *heads)
    assert data["change"]["probability"] == close(compare(whole, now).probability, "float32")
    (before,), (after,) = (data[name]["judgments"][0]["decisions"] for name in ("whole", "says"))
    assert after["kept"] == close(before["probability"] + data["change"]["probability"], "float32")
    assert data["ablation"][0][0] == data["gradient"][0][0] == 0
    assert data["ablation"][0][1] != 0


def test_a_plain_encoder_is_measured_by_how_far_its_vector_turns(tmp_path):
    save_kind(tmp_path / "plain", BertModel)
    data = collect_importance(look(InspectedModel.load(tmp_path / "plain")))
    assert data["kind"] == "vector"
    assert data["gradient"] is None
    assert all(0 < value < 2 for row in data["ablation"] for value in row)


def test_a_number_is_measured_by_its_change(tmp_path):
    folder = save_model(tmp_path / "numbers", Regress(RegressSettings(max_length=16)))
    inspected = InspectedModel.load(folder)
    data = collect_importance(look(inspected))
    assert data["kind"] == "number"
    whole, without = outcome_without(inspected).number, outcome_without(inspected, (2, 1)).number
    assert data["ablation"][1][0] == close(float(without - whole), "float32")
    assert data["gradient"][1][0] > 0
