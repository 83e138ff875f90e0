import math

import pytest
import torch
from torch import nn

from bertkit.training.step import align_weights, clip_gradients


@pytest.fixture
def model():
    model = nn.Linear(2, 1)
    model.weight.grad = torch.tensor([[3.0, 0.0]])
    model.bias.grad = torch.tensor([4.0])
    return model


def test_gradients_are_scaled_down_to_the_norm(model):
    assert clip_gradients(model, 1.0) == 5.0
    torch.testing.assert_close(model.weight.grad, torch.tensor([[0.6, 0.0]]))
    torch.testing.assert_close(model.bias.grad, torch.tensor([0.8]))


def test_small_gradients_stay_as_they_are(model):
    assert clip_gradients(model, 5.0) == 5.0
    assert model.weight.grad.tolist() == [[3.0, 0.0]]
    assert model.bias.grad.tolist() == [4.0]


def test_a_parameter_without_gradient_is_passed_over(model):
    model.bias.grad = None
    assert clip_gradients(model, 1.0) == 3.0


def test_a_norm_that_is_not_finite_is_told(model):
    model.bias.grad = torch.tensor([math.nan])
    assert math.isnan(clip_gradients(model, 1.0))


def test_weights_are_aligned_and_stay_what_they_are():
    memory = torch.arange(40, dtype=torch.float32)
    model = nn.Linear(3, 4)
    model.weight = nn.Parameter(memory[1:13].view(4, 3))
    tied = model.weight
    expected = model.weight.tolist()
    align_weights(model)
    assert model.weight is tied
    assert model.weight.tolist() == expected
    assert model.weight.data_ptr() % 64 == 0
