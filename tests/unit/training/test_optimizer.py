"""The mean of weights is that in float64, and only weights of one model have one."""

import weakref
from collections.abc import Callable, Mapping
from types import MappingProxyType

import pytest
import torch
from tests.closeness import close
from tests.unit.training.jobs import Line, another, build_job, load_weights, seal_again, vary
from torch import nn

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.checkpoints.safetensors_file import write_safetensors
from bertkit.checkpoints.torch_tensors import lazy_tensors, read_safetensors
from bertkit.training.budget import measure_pace
from bertkit.training.job import Job
from bertkit.training.loop import fit
from bertkit.training.optimizer import average_weights, build_optimizer
from bertkit.training.run import Run
from bertkit.training.settings import LoopSettings


def test_it_is_the_mean_in_float64():
    torch.manual_seed(0)
    states = [{"a": torch.randn(3, 4), "b": torch.randn(2).to(torch.bfloat16)} for _ in range(7)]
    found = average_weights(iter(states))
    for name, tensor in found.items():
        mean = torch.stack([state[name].double() for state in states]).mean(dim=0)
        assert tensor.dtype == states[0][name].dtype
        assert torch.equal(tensor, mean.to(tensor.dtype))
    # In float32 the small one would be lost beside the large ones.
    large = [{"a": torch.tensor([value])} for value in (1e8, 1.0, -1e8)]
    assert average_weights(large)["a"].item() == close(1 / 3, "float32")


def test_checkpoints_are_held_one_at_a_time():
    alive: list[weakref.ref[torch.Tensor]] = []

    def states():
        for value in range(5):
            assert sum(reference() is not None for reference in alive) <= 1
            tensor = torch.full((4,), float(value))
            alive.append(weakref.ref(tensor))
            yield {"a": tensor}

    assert average_weights(states())["a"].tolist() == [2.0] * 4


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"a": torch.ones(3), "n": torch.tensor(1)}, r"a has the shape \[2\] in one and \[3\]"),
        ({"a": torch.ones(1), "n": torch.tensor(1)}, r"a has the shape \[2\] in one and \[1\]"),
        ({"a": torch.ones(2)}, "not all of them have n"),
        ({"a": torch.ones(2), "n": torch.tensor(1), "z": torch.ones(1)}, "not all .* have z"),
        ({"a": torch.ones(2), "n": torch.tensor(2)}, "n isn't made of floating-point numbers"),
    ],
)
def test_checkpoints_of_different_models_are_refused(other, message):
    first = {"a": torch.ones(2), "n": torch.tensor(1)}
    with pytest.raises(CheckpointError, match=message):
        average_weights([first, other])


def test_no_checkpoint_has_no_mean():
    with pytest.raises(CheckpointError, match="no checkpoint"):
        average_weights([])


pytestmark = pytest.mark.usefixtures("quick")

SETTINGS = LoopSettings(
    batch_size=6,
    learning_rate=0.02,
    eval_every=4,
    checkpoint_every=3,
    schedule="constant",
    warmup=0,
)


def scale_inner(factor: float) -> dict[str, float]:
    return {"inner.weight": factor, "inner.bias": factor}


def freeze_inner(job: Job) -> None:
    job.model.inner.requires_grad_(False)


def train(
    run: Run,
    num_steps: int,
    *,
    scales: Mapping[str, float] = MappingProxyType({}),
    change: Callable[[Job], object] = lambda job: None,
    settings: LoopSettings = SETTINGS,
) -> Line:
    job = build_job(settings, dropout=0.3)
    change(job)
    state = run.newest_state()
    if state.step:
        load_weights(job, run, state)
    job = vary(job, learning_rate_scales=scales)
    fit(job, run, state, num_steps)
    return job.model


def test_a_scale_reaches_the_parameters_it_names(run):
    """A first step from the same gradients: a half of the rate is the rate times a half."""
    scaled = train(run, 1, scales=scale_inner(0.5))
    halved = SETTINGS.model_copy(update={"learning_rate": 0.01})
    slow = train(another(run, "slow"), 1, settings=halved)
    whole = train(another(run, "whole"), 1)
    for name, tensor in scaled.state_dict().items():
        same, other = (slow, whole) if name.startswith("inner.") else (whole, slow)
        assert torch.equal(tensor, same.state_dict()[name]), name
        assert not torch.equal(tensor, other.state_dict()[name]), name


def test_groups_are_by_decay_then_scale_and_keep_the_order_of_the_model():
    model = Line()
    optimizer = build_optimizer(model, SETTINGS, scale_inner(0.5))
    found = [
        (group["weight_decay"], group["learning_rate_scale"], group["params"])
        for group in optimizer.param_groups
    ]
    expected = [
        (0.01, 0.5, [model.inner.weight]),
        (0.01, 1.0, [model.outer.weight]),
        (0.0, 0.5, [model.inner.bias]),
        (0.0, 1.0, [model.outer.bias]),
    ]
    for (decay, scale, parameters), expects in zip(found, expected, strict=True):
        assert (decay, scale) == expects[:2]
        assert all(one is other for one, other in zip(parameters, expects[2], strict=True))


@pytest.mark.parametrize("change", [lambda job: None, freeze_inner])
def test_resuming_with_scales_and_frozen_parameters_is_exact(run, change):
    whole = train(run, 8, scales=scale_inner(0.3), change=change)
    other = another(run, "other")
    train(other, 3, scales=scale_inner(0.3), change=change)
    resumed = train(other, 8, scales=scale_inner(0.3), change=change)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name
    first, second = (checkpoint_path(each.folder, 8) for each in (run, other))
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_a_frozen_parameter_stays_bit_for_bit_and_has_no_state(run):
    before = build_job(SETTINGS).model.state_dict()
    after = train(run, 8, change=freeze_inner).state_dict()
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]) == name.startswith("inner."), name
    path = checkpoint_path(run.folder, 8) / "optimizer.safetensors"
    assert {name.split(".")[0] for name in read_safetensors(path)} == {"outer"}


class Scale(nn.Module):
    """A head with no matrix: one factor."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.full((1,), 0.5))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs.sum(dim=1) * self.factor


def test_a_model_with_one_vector_trains_and_its_pace_is_measured(run):
    job = build_job(SETTINGS)
    scale = Scale()
    job = vary(job, model=scale, count_operations=lambda batch: 0.0)
    job = vary(job, save_model=lambda folder: {})
    pace = measure_pace(job)
    assert pace.step_seconds > 0.0
    assert pace.operations_per_step == 0.0
    assert scale.factor.item() == 0.5
    state = fit(job, run, run.newest_state(), 4)
    assert state.step == 4
    assert scale.factor.item() > 0.5


def add_unused(job: Job) -> None:
    """A parameter that needs a gradient and never gets one, as a head that a task doesn't use."""
    job.model.unused = nn.Linear(2, 2)


def test_a_parameter_that_never_had_a_gradient_has_no_state_to_resume(run):
    train(run, 8, change=add_unused)
    other = another(run, "other")
    train(other, 3, change=add_unused)
    train(other, 8, change=add_unused)
    first, second = (
        checkpoint_path(each.folder, 8) / "optimizer.safetensors" for each in (run, other)
    )
    assert first.read_bytes() == second.read_bytes()
    assert not any(name.startswith("unused") for name in read_safetensors(first))


@pytest.mark.parametrize("name", ["outer.bias.exp_avg", "outer.bias.step"])
def test_an_optimizer_state_that_lacks_a_part_is_refused(run, name):
    train(run, 3)
    path = checkpoint_path(run.folder, 3)
    tensors = read_safetensors(path / "optimizer.safetensors")
    del tensors[name]
    write_safetensors(path / "optimizer.safetensors", lazy_tensors(tensors))
    seal_again(path, 3)
    with pytest.raises(CheckpointError, match=r"isn't that of this model: outer\.bias"):
        train(run, 4)


def test_an_optimizer_state_of_parameters_that_are_frozen_now_is_refused(run):
    train(run, 3)
    with pytest.raises(CheckpointError, match=r"isn't that of this model: inner\."):
        train(run, 4, change=freeze_inner)
