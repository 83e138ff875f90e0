"""A head that is switched off adds nothing, and the model is whole again afterwards."""

import pytest
import torch
from tests.unit.inference.small import build_model
from tests.unit.inference.small_task import save_classifier

from bertkit.base.errors import SettingsError
from bertkit.inference.predictor import Classifier
from bertkit.interpret.ablation import ablate, gate_heads
from bertkit.nn.packing import PackedBatch


@pytest.fixture
def model():
    return build_model().eval()


BATCH = PackedBatch.from_single([[2, 5, 7, 3], [2, 6, 3]])


@torch.inference_mode()
def test_a_head_without_weights_in_the_mixing_matrix_is_as_good_as_off(model):
    with ablate(model, [(2, 1)]):
        off = model.encoder(BATCH)
    whole = model.encoder(BATCH)
    assert not torch.allclose(off, whole)
    model.encoder.layers[1].attention.output.weight[:, :4] = 0.0
    torch.testing.assert_close(model.encoder(BATCH), off)


@torch.inference_mode()
def test_gates_scale_what_a_head_gathers(model):
    with gate_heads(model.encoder, torch.tensor([[1.0, 0.5], [1.0, 1.0]])):
        gated = model.encoder(BATCH)
    model.encoder.layers[0].attention.output.weight[:, 4:] *= 0.5
    torch.testing.assert_close(model.encoder(BATCH), gated)


def test_a_predictor_answers_without_a_head(tmp_path):
    classifier = Classifier.load(
        save_classifier(tmp_path / "labels"), engine="torch", precision="fp32"
    )
    whole = classifier("the cat saw the hat")
    with ablate(classifier.loaded.model, [(1, 1), (2, 2), (2, 2)]):
        without = classifier("the cat saw the hat")
    assert without.probabilities != whole.probabilities
    assert classifier("the cat saw the hat") == whole


@pytest.mark.parametrize("head", [(0, 1), (3, 1), (1, 0), (1, 3)])
def test_a_head_that_is_not_there_is_refused(model, head):
    with (
        pytest.raises(SettingsError, match=r"layers 1 to 2, each with heads 1 to 2"),
        ablate(model, [head]),
    ):
        pass
