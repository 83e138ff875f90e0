"""A step that isn't finite isn't applied, and the run ends in time."""

import math
from functools import partial

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.training import jobs
from tests.unit.training.jobs import Points, Sums, TrainingSettings, build_job, score, vary
from torch import nn

from bertkit.base.errors import NonFiniteError, StorageError
from bertkit.training import loop
from bertkit.training.log import RunLog
from bertkit.training.replica import Replica
from bertkit.training.step import align_weights, clip_gradients, take_step


@pytest.fixture
def model():
    model = nn.Linear(2, 1)
    model.weight.grad = torch.tensor([[3.0, 0.0]])
    model.bias.grad = torch.tensor([4.0])
    return model


def test_gradients_are_scaled_down_to_the_norm(model):
    assert clip_gradients(model, 1.0) == 5.0
    assert_close(model.weight.grad, torch.tensor([[0.6, 0.0]]))
    assert_close(model.bias.grad, torch.tensor([0.8]))


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


SETTINGS = TrainingSettings(
    batch_size=12, accumulate=3, learning_rate=0.02, eval_every=100, checkpoint_every=5
)


train = partial(jobs.train, settings=SETTINGS)


def test_a_step_that_is_not_finite_is_told_before_the_log_may_refuse(run, monkeypatch, capfd):
    write = RunLog.write

    def refuse(log: RunLog, event: str, step: int, **values: object) -> None:
        if event == "not-finite":
            raise StorageError("the log can't be written")
        write(log, event, step, **values)

    monkeypatch.setattr(RunLog, "write", refuse)
    with pytest.raises(StorageError):
        train(run, 9, poison=lambda step: step == 7)
    assert "step 8: loss or gradient is not finite" in capfd.readouterr().err


def test_a_gradient_that_is_not_finite_is_not_applied_either(run):
    """The square root of 0 is 0, and its slope isn't finite."""

    def score_with_steep_slope(model: torch.nn.Module, batch: Points) -> Sums:
        sums = score(model, batch)
        return Sums({"fit": sums.losses["fit"] + (0 * model.outer.bias).abs().sqrt().sum()}, {})

    job = vary(build_job(SETTINGS), loss=score_with_steep_slope)
    replica = Replica.build(job)
    before = {name: tensor.clone() for name, tensor in job.model.state_dict().items()}
    result = take_step(job, replica, 0, 0.1)
    assert result.metrics["loss"] < 1e9
    assert not result.is_applied
    assert not replica.optimizer.state
    assert all(torch.equal(before[n], t) for n, t in job.model.state_dict().items())


def test_the_run_ends_after_too_many_in_a_row(run, monkeypatch):
    def fail(step: int) -> bool:
        return 6 <= step < 10

    monkeypatch.setattr(loop, "MAX_SKIPPED_STEPS", 3)
    with pytest.raises(NonFiniteError, match=r"that was 3 steps in a row: lower --learning-rate"):
        train(run, 12, poison=fail)
    assert run.newest_state().step == 5
    with pytest.raises(NonFiniteError, match="that was 3 steps in a row"):
        train(run, 12, poison=fail)
    monkeypatch.undo()
    _, state = train(run, 12, poison=fail)
    assert state.step == 12
    assert state.num_skipped == 0
