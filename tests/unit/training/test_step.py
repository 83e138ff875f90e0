"""A step that isn't finite is kept with all that shows it again, and the run ends in time."""

import errno
import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.training.jobs import Points, Sums, build_job, load_weights, score, vary
from torch import nn

from bertkit.base import storage
from bertkit.base.errors import DamagedFileError, MissingFileError, NonFiniteError, StorageError
from bertkit.training.job import Job
from bertkit.training.log import RunLog, read_log
from bertkit.training.loop import fit
from bertkit.training.replica import Replica
from bertkit.training.run import Run, RunState
from bertkit.training.settings import TrainingSettings
from bertkit.training.step import (
    MOST_DUMPS,
    align_weights,
    clip_gradients,
    dump_path,
    list_dumps,
    read_dump,
    take_step,
)


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


def train(
    run: Run,
    num_steps: int,
    poison: Callable[[int], bool] | None = None,
    settings: TrainingSettings = SETTINGS,
) -> tuple[Job[Points], RunState]:
    job = build_job(settings, poison=poison)
    state = run.newest_state()
    if state.step:
        load_weights(job, run, state)
    return job, fit(job, run, state, num_steps)


def test_a_dump_has_batch_weights_and_settings_from_before_the_step(run, capfd):
    with pytest.raises(NonFiniteError):
        train(run, 40, poison=lambda step: step >= 7)
    before = build_job(SETTINGS)
    replica = Replica.build(before)
    for step in range(7):
        take_step(before, replica, step, step_rate(run, step))
    dump = read_dump(dump_path(run.folder, 8))
    assert dump.weights.keys() == before.model.state_dict().keys()
    for name, tensor in before.model.state_dict().items():
        assert torch.equal(dump.weights[name], tensor), name
    poisoned = build_job(SETTINGS, poison=lambda step: True).batches_at(7)
    for found, expected in zip(dump.batches, poisoned, strict=True):
        assert torch.equal(found["inputs"].nan_to_num(9), expected.inputs.nan_to_num(9))
        assert torch.equal(found["targets"], expected.targets)
    assert dump.record.step == 8
    assert dump.record.metrics["loss"] == "nan"
    assert dump.record.settings == SETTINGS.model_dump(mode="json")
    assert dump.record.versions["torch"] == torch.__version__
    said = capfd.readouterr().err
    assert f"step 8 is saved with its weights and batches in {dump_path(run.folder, 8)}" in said
    assert "replay" not in said  # it reads what this job's recipe doesn't write


def test_a_dump_that_a_command_reads_is_told_with_the_command(run, capfd):
    job = vary(build_job(SETTINGS, poison=lambda step: step == 1), can_replay=True)
    fit(job, run, RunState(), 2)
    assert f"`bertkit replay {dump_path(run.folder, 2)}` replays step 2" in capfd.readouterr().err


def test_a_disk_that_refuses_a_dump_ends_nothing_and_hides_nothing(run, monkeypatch, capfd):
    open_new = storage.open_new

    def refuse(path: Path) -> int:
        if path.name.startswith("batches"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return open_new(path)

    monkeypatch.setattr(storage, "open_new", refuse)
    _, state = train(run, 9, poison=lambda step: step == 7)
    assert state.step == 9
    cause, refusal = [line for line in capfd.readouterr().err.splitlines() if "step 8" in line]
    assert cause.startswith("step 8: loss or gradient is not finite; the step was skipped")
    assert refusal.startswith("step 8 can't be replayed, because its dump wasn't written: ")
    assert refusal.endswith("can't be written: No space left on device")
    assert not list((run.folder / "dumps").iterdir())


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


def step_rate(run: Run, step: int) -> float:
    rows = [row for row in read_log(run.log_path) if row["event"] == "train"]
    return rows[step]["learning_rate"]


def test_only_the_first_few_of_a_run_are_dumped_and_the_same_after_resuming(run):
    def fail_often(step: int) -> bool:
        return step in {2, 4, 6, 7, 9}

    train(run, 11, poison=fail_often)
    dumps = list_dumps(run.folder)
    assert [path.name for path in dumps] == ["step-00000003", "step-00000005", "step-00000007"]
    assert len(dumps) == MOST_DUMPS
    for path in dumps:
        os.utime(path, (0, 0))
    for number in (10, 11):
        (folder,) = (run.folder / "checkpoints").glob(f"*{number}")
        folder.rename(run.folder / f"away-{number}")
    train_again = run.newest_state().step
    assert train_again == 0
    train(run, 11, poison=fail_often)
    assert list_dumps(run.folder) == dumps
    assert all(path.stat().st_mtime_ns for path in dumps)  # each was written again


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


def test_a_weight_that_is_not_finite_is_dumped_as_it_is(run):
    job = build_job(SETTINGS)
    with torch.no_grad():
        job.model.inner.weight[0, 0] = torch.inf
    job = vary(job, evaluate=lambda: {"loss": 1.0})
    with pytest.raises(NonFiniteError):
        fit(job, run, RunState(), 20)
    assert read_dump(dump_path(run.folder, 1)).weights["inner.weight"][0, 0] == torch.inf


def test_the_run_ends_after_as_many_in_a_row_as_asked_for_and_more_can_be_allowed(run):
    def fail(step: int) -> bool:
        return 6 <= step < 10

    few = SETTINGS.model_copy(update={"max_skipped_steps": 3})
    with pytest.raises(NonFiniteError, match=r"that was 3 steps in a row: lower --learning-rate"):
        train(run, 12, poison=fail, settings=few)
    assert run.newest_state().step == 5
    with pytest.raises(NonFiniteError, match="that was 3 steps in a row"):
        train(run, 12, poison=fail, settings=few)
    _, state = train(run, 12, poison=fail)
    assert state.step == 12
    assert state.num_skipped == 0


@pytest.mark.parametrize(
    "name", ["weights.safetensors", "batches.safetensors", "dump.json", "manifest.json"]
)
def test_a_flipped_bit_in_a_dump_is_named(run, name):
    train(run, 3, poison=lambda step: step == 1)
    path = dump_path(run.folder, 2)
    content = bytearray((path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (path / name).write_bytes(content)
    with pytest.raises(DamagedFileError, match=name):
        read_dump(path)


def test_what_is_no_dump_is_told_with_the_dumps_that_are_there(run, tmp_path):
    train(run, 3, poison=lambda step: step == 1)
    with pytest.raises(MissingFileError, match=r"run isn't a dump.*dumps/step-00000002"):
        read_dump(run.folder)
    with pytest.raises(MissingFileError, match=r"nowhere isn't a dump"):
        read_dump(tmp_path / "nowhere")
