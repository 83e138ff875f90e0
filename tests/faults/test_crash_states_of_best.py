"""A power cut after any operation of a run that watches a metric: its best checkpoint is there."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from tests.faults.disk import Operation, Recorder, list_outcomes, write_tree
from tests.unit.training.jobs import build_job, load_weights, vary

from bertkit.base.errors import MissingFileError
from bertkit.checkpoints.run_folder import checkpoint_path, list_checkpoints, verify_checkpoint
from bertkit.training import log as log_module
from bertkit.training import loop
from bertkit.training.job import Machine, Watched
from bertkit.training.lifecycle import open_run
from bertkit.training.run import Run, RunRecord, RunState
from bertkit.training.settings import LoopSettings

SETTINGS = LoopSettings(batch_size=4, learning_rate=0.02, eval_every=1, checkpoint_every=9, keep=1)
CURVE = (0.0, 0.2, 0.6, 0.5, 0.4)  # before the first step and after each; ends early at the last
NUM_STEPS = 6
MACHINE = Machine(torch.device("cpu"), "fp32", peak_operations=1e9)
RECORD = RunRecord(settings={}, data_fingerprint="", model={}, num_steps=NUM_STEPS, versions={})


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """No waiting for a disk, and no TensorBoard."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr(log_module, "find_spec", lambda name: None)


def train(folder: Path) -> RunState:
    """Begin or go on, as a recipe does."""
    run = Run(folder)
    with open_run(run):
        state = run.newest_state()
        run.rotate(SETTINGS.keep, state.best_step)
        job = build_job(SETTINGS)
        if state.step:
            load_weights(job, run, state)
        steps = iter(range(state.step + (state.evaluated_step is not None), NUM_STEPS + 1))

        def evaluate() -> dict[str, float]:
            return {**job.evaluate(), "quality": CURVE[next(steps)]}

        run.write_record(RECORD)
        if state.is_done(NUM_STEPS):
            return state
        watching = vary(job, evaluate=evaluate, watched=Watched("quality", True, patience=2))
        return loop.fit(
            watching, SETTINGS, run=run, state=state, num_steps=NUM_STEPS, machine=MACHINE
        )


def record(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[Operation]:
    root.mkdir()
    with monkeypatch.context() as patches:
        recorder = Recorder(patches)
        train(root / "run")
    return recorder.operations


def states_after_a_cut(operations: list[Operation], root: Path, folder: Path) -> Iterator[Run]:
    """The run as each outcome of a power cut leaves it; those that look the same come once."""
    for _, tree in list_outcomes(operations, root, promise=lambda num_done: 0):
        write_tree(tree, folder)
        yield Run(folder / "run")
        shutil.rmtree(folder)


def check_best(run: Run) -> tuple[int, int | None]:
    """The newest state is of a run whose best checkpoint is whole; returns both steps."""
    state = run.newest_state()
    if state.best_step is not None:
        verify_checkpoint(checkpoint_path(run.folder, state.best_step))
    return state.step, state.best_step


def test_after_any_power_cut_the_best_checkpoint_is_whole(tmp_path, monkeypatch):
    operations = record(tmp_path / "disk", monkeypatch)
    runs = states_after_a_cut(operations, tmp_path / "disk", tmp_path / "found")
    found = [check_best(run) for run in runs]
    assert set(found) == {(0, None), (1, 1), (2, 2), (4, 2)}
    assert len(found) > 50


def test_from_what_a_power_cut_left_the_run_ends_at_the_same_step(tmp_path, monkeypatch):
    operations = record(tmp_path / "disk", monkeypatch)
    runs = states_after_a_cut(operations, tmp_path / "disk", tmp_path / "found")
    for number, run in enumerate(runs):
        if number % 20 == 0:
            state = train(run.folder)
            assert (state.step, state.best_step, state.has_ended_early) == (4, 2, True)
            assert _steps_of(run) == [2, 4]


def _steps_of(run: Run) -> Sequence[int]:
    return [int(path.name.removeprefix("step-")) for path in list_checkpoints(run.folder)]


def test_a_rotation_that_forgets_the_best_is_found(tmp_path, monkeypatch):
    rotate = Run.rotate
    monkeypatch.setattr(Run, "rotate", lambda run, keep, also: rotate(run, keep))
    operations = record(tmp_path / "disk", monkeypatch)
    runs = states_after_a_cut(operations, tmp_path / "disk", tmp_path / "found")
    with pytest.raises(MissingFileError, match="step-00000002"):
        list(map(check_best, runs))
