"""The mean of weights is that in float64, and only weights of one model have one."""

import weakref

import pytest
import torch

from bertkit.base.errors import CheckpointError
from bertkit.training.optimization.averaging import average_weights


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
    assert average_weights(large)["a"].item() == pytest.approx(1 / 3)


def test_of_one_checkpoint_it_is_itself_and_no_view_of_it():
    state = {"a": torch.ones(2, dtype=torch.float64), "steps": torch.tensor([3])}
    found = average_weights([state])
    state["a"].zero_()
    assert found["a"].tolist() == [1.0, 1.0]
    assert found["steps"].tolist() == [3]


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
