"""Muon makes the changes of matrices orthogonal; all other parameters are AdamW's."""

import pytest
import torch
from tests.closeness import assert_close, close

from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForMaskedLM
from bertkit.training.optimizer import MOMENTUM, build_optimizer, orthogonalize, set_learning_rate
from bertkit.training.settings import LoopSettings

SETTINGS = LoopSettings(learning_rate=0.01, weight_decay=0.1)
CONFIG = BertConfig(
    vocab_size=20,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=8,
)
MUON_RATE = 0.5
JOINED = "encoder.layers.0.attention.query_key_value.weight"


def build_model() -> BertForMaskedLM:
    torch.manual_seed(0)
    return BertForMaskedLM(CONFIG)


def take_steps(muon_learning_rate: float | None, num_steps: int = 1) -> dict[str, torch.Tensor]:
    """The parameters after steps with the same random gradients each time."""
    model = build_model()
    optimizer = build_optimizer(model, SETTINGS, muon_learning_rate=muon_learning_rate)
    for step in range(num_steps):
        fill_gradients(model, step)
        set_learning_rate(optimizer, SETTINGS.learning_rate)
        optimizer.step()
    return {name: each.detach() for name, each in model.named_parameters()}


def fill_gradients(model: BertForMaskedLM, step: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    return {name: each.grad for name, each in model.named_parameters()}


def is_matrix_of_a_block(name: str, tensor: torch.Tensor) -> bool:
    return ".layers." in name and tensor.dim() == 2


@pytest.mark.parametrize("shape", [(3, 16, 16), (1, 8, 32), (2, 64, 16)])
def test_singular_values_become_about_one_and_singular_vectors_stay(shape):
    torch.manual_seed(1)
    matrices = torch.randn(shape)
    for before, after in zip(matrices, orthogonalize(matrices), strict=True):
        left, _, right = torch.linalg.svd(before, full_matrices=False)
        inner = left.T @ after @ right.T
        values = inner.diagonal()
        assert_close(values, torch.full_like(values, 0.95), within=0.35)
        assert_close(inner, torch.diag(values), within=1e-3)


def test_a_matrix_of_zeros_stays_zero():
    assert not orthogonalize(torch.zeros(1, 4, 8)).any()


def test_matrices_of_blocks_change_by_orthogonal_matrices_and_others_as_with_adamw():
    before = {name: each.detach().clone() for name, each in build_model().named_parameters()}
    with_muon, with_adamw = take_steps(MUON_RATE), take_steps(None)
    for name, tensor in with_muon.items():
        if not is_matrix_of_a_block(name, tensor):
            assert torch.equal(tensor, with_adamw[name]), name
            continue
        decayed = before[name] * (1.0 - MUON_RATE * SETTINGS.weight_decay)
        num_parts = 3 if "query_key_value" in name else 1
        for change in (tensor - decayed).chunk(num_parts):
            rate = MUON_RATE * max(1.0, change.shape[0] / change.shape[1]) ** 0.5
            values = torch.linalg.svdvals(change) / rate
            assert 0.5 < values.min() <= values.max() < 1.35, name


def test_momentum_is_the_mean_of_gradients_and_the_step_looks_ahead():
    model = build_model()
    optimizer = build_optimizer(model, SETTINGS, muon_learning_rate=MUON_RATE)
    gradients = []
    for step in range(2):
        gradients.append(fill_gradients(model, step)[JOINED].clone())
        before = model.get_parameter(JOINED).detach().clone()
        set_learning_rate(optimizer, SETTINGS.learning_rate)
        optimizer.step()
    first, second = gradients
    mean = MOMENTUM * (1 - MOMENTUM) * first + (1 - MOMENTUM) * second
    assert_close(optimizer.state[model.get_parameter(JOINED)]["momentum"], mean)
    ahead = (1 - MOMENTUM) * second + MOMENTUM * mean
    change = orthogonalize(torch.stack(ahead.chunk(3))).flatten(end_dim=1)
    decayed = before * (1.0 - MUON_RATE * SETTINGS.weight_decay)
    expected = decayed - MUON_RATE * change
    assert_close(model.get_parameter(JOINED).detach(), expected)


def test_the_schedule_scales_both_rates():
    model = build_model()
    optimizer = build_optimizer(model, SETTINGS, muon_learning_rate=MUON_RATE)
    set_learning_rate(optimizer, 0.1 * SETTINGS.learning_rate)
    rates = sorted({group["lr"] for group in optimizer.param_groups})
    assert rates == close([0.1 * SETTINGS.learning_rate, 0.1 * MUON_RATE])


def test_a_parameter_without_a_gradient_stays():
    model = build_model()
    optimizer = build_optimizer(model, SETTINGS, muon_learning_rate=MUON_RATE)
    fill_gradients(model, 0)
    frozen = model.get_parameter(JOINED)
    frozen.grad = None
    before = frozen.detach().clone()
    optimizer.step()
    assert torch.equal(frozen, before)
    assert frozen not in optimizer.state
