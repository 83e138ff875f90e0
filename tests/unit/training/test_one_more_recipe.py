"""One more recipe: a line's job from `jobs.py`, and what its run is."""

from pathlib import Path

import pytest
from safetensors.torch import load_file
from tests.unit.recipes.stopping import read_rows, stop_at
from tests.unit.training.jobs import LineJob, TrainingSettings

from bertkit.base.errors import ResumeError, StoppedError
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.training.job import Machine
from bertkit.training.lifecycle import Recipe, open_run, train
from bertkit.training.record import RunRecord, RunState
from bertkit.training.run import Run

SETTINGS = TrainingSettings(steps=12, batch_size=6, accumulate=2, device="cpu", learning_rate=0.1)


class LineFitting(Recipe[LineJob, Path]):
    def __init__(self, settings: TrainingSettings) -> None:
        self.settings = settings

    def describe(self, run: Run) -> RunRecord:
        values = self.settings.dump_with_fixed_budget()
        return RunRecord(
            settings=values, data_fingerprint="points", model={}, num_steps=0, versions={}
        )

    def open(self, checkpoint: Path | None, machine: Machine) -> LineJob:
        job = LineJob(self.settings, dropout=0.3, poison=None)
        job.machine = machine
        if checkpoint is not None:
            job.model.load_state_dict(load_file(checkpoint / "model.safetensors"))
        return job

    def decide_steps(self, job: LineJob, before: RunRecord | None, wanted: RunRecord) -> int:
        return self.settings.steps

    def finish(self, job: LineJob, run: Run, state: RunState) -> Path:
        return checkpoint_path(run.folder, state.step) / "model.safetensors"


class LineInMinutes(LineFitting):
    """Reserves time that it estimates with the number of steps, in the first process alone."""

    def decide_steps(self, job: LineJob, before: RunRecord | None, wanted: RunRecord) -> int:
        if before is None:
            job.seconds_after = 7.0
        return 12 if before is None else before.num_steps

    def plan(self, job: LineJob, run: Run, state: RunState, num_steps: int) -> RunState:
        self.reserved_seconds = state.reserved_seconds
        raise StoppedError("before the first checkpoint")


def test_a_run_without_a_checkpoint_keeps_the_time_after_its_last_step(tmp_path):
    recipe = LineInMinutes(SETTINGS.model_copy(update={"steps": None, "minutes": 5.0}))
    for _ in range(3):
        with pytest.raises(StoppedError):
            train(recipe, tmp_path / "run")
        assert recipe.reserved_seconds == 7.0


@pytest.mark.parametrize("step", [1, 7])
def test_it_is_locked_and_resumed_bit_for_bit(tmp_path, monkeypatch, capsys, step):
    whole, output = tmp_path / "whole" / "run", tmp_path / "stopped" / "run"
    expected = train(LineFitting(SETTINGS), whole).read_bytes()
    with monkeypatch.context() as patch:
        stop_at(step, patch)
        with pytest.raises(StoppedError):
            train(LineFitting(SETTINGS), output)
    with pytest.raises(ResumeError, match="--seed 0 → 1"):
        train(LineFitting(SETTINGS.model_copy(update={"seed": 1})), output)
    assert train(LineFitting(SETTINGS), output).read_bytes() == expected
    assert f"resuming after step {step + 1}" in capsys.readouterr().err
    assert read_rows(output.parent) == read_rows(whole.parent)
    with open_run(Run(output)), pytest.raises(ResumeError, match="another process is training"):
        train(LineFitting(SETTINGS), output)
