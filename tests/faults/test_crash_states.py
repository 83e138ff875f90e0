"""A power cut after any operation, whatever of it reached the disk: the next start goes on."""

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from tests.faults.disk import (
    KilledError,
    Recorder,
    Tree,
    check_states,
    list_outcomes,
    read_tree,
    rename_before_syncing,
    write_tree,
)
from tests.logs import rows_without_clock
from tests.unit.training import jobs
from tests.unit.training.jobs import TrainingSettings

from bertkit.base import storage
from bertkit.base.errors import BertkitError, StoppedError
from bertkit.base.output import LOCK_FILE
from bertkit.checkpoints.run_folder import (
    CHECKPOINTS,
    checkpoint_path,
    list_checkpoints,
    verify_checkpoint,
)
from bertkit.training import log as log_module
from bertkit.training.job import Watched
from bertkit.training.lifecycle import open_run
from bertkit.training.loop import fit
from bertkit.training.record import LOG_FILE, RECORD_FILE, RunRecord, RunState
from bertkit.training.run import Run
from bertkit.training.settings import LoopSettings

SETTINGS = TrainingSettings(
    batch_size=6, learning_rate=0.02, eval_every=4, checkpoint_every=3, keep=2
)
NUM_STEPS = 14  # five checkpoints, the last one between two of the rhythm
NUM_FEATURES = 40  # weights and optimizer fill several pages
RECORD = RunRecord(settings={}, data_fingerprint="", model={}, num_steps=NUM_STEPS, versions={})
Bug = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """No waiting for a disk that isn't cut off, no TensorBoard, and files of several pages."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr(log_module, "find_spec", lambda name: None)
    monkeypatch.setattr(jobs, "FEATURES", NUM_FEATURES)


@dataclass
class Story:
    """What was done to a disk, and what it came to.

    Attributes:
        root: the folder that stands for the disk.
        recorder: what was done.
        checkpoints: steps and files, in the order in which they were made.
        finished: number of operations and of checkpoints done, each time one was finished.
        rows: the finished log.
    """

    root: Path
    recorder: Recorder
    checkpoints: list[tuple[int, Tree]] = field(default_factory=list)
    finished: list[tuple[int, int]] = field(default_factory=list)
    rows: list[dict] = field(default_factory=list)

    def note_checkpoints(self) -> None:
        """Remember all that there are now."""
        for path in list_checkpoints(self.root / "run"):
            checkpoint = (step_of(path), read_tree(path))
            if checkpoint not in self.checkpoints:
                self.checkpoints.append(checkpoint)

    def promise(self, num_done: int) -> int:
        """How many of the checkpoints were finished by then."""
        return max((number for count, number in self.finished if count <= num_done), default=0)


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def train(folder: Path, *, stop_at_evaluation: int | None = None) -> None:
    """Begin or go on, as the recipe does; SIGTERM may come in an evaluation."""
    run = Run(folder)
    with open_run(run):
        run.read_record()
        state = run.newest_state()
        job = jobs.build_job(SETTINGS, dropout=0.3)
        if stop_at_evaluation is not None:
            job = jobs.vary(job, evaluate=stopping(job.evaluate, stop_at_evaluation))
        if state.step:
            jobs.load_weights(job, run, state)
        run.write_record(RECORD)
        if state.evaluated_step != NUM_STEPS:
            fit(job, run, state, NUM_STEPS)


def stopping(evaluate: Callable[[], dict], stop_at: int) -> Callable[[], dict]:
    """An evaluation that asks its process to stop when it is called for the so-manieth time."""
    numbers = count(1)

    def evaluate_or_stop() -> dict:
        if next(numbers) == stop_at:
            os.kill(os.getpid(), signal.SIGTERM)
        return evaluate()

    return evaluate_or_stop


def tell(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    killed_after: Sequence[tuple[str, str]] = (),
    stop_at_evaluation: int | None = None,
    bug: Bug | None = None,
) -> Story:
    """Train on a recorded disk; the process is killed after some operations, and started anew."""
    root = tmp_path / "disk"
    root.mkdir()
    with monkeypatch.context() as patches:
        story = Story(root, Recorder(patches))
        save = Run.save

        def save_and_note(run: Run, state: RunState, *rest: object) -> Path:
            path = save(run, state, *rest)
            story.note_checkpoints()
            story.finished.append((len(story.recorder.operations), len(story.checkpoints)))
            return path

        patches.setattr(Run, "save", save_and_note)
        if bug is not None:
            bug(patches)
        for place in killed_after:
            story.recorder.kill_after = place
            with pytest.raises(KilledError):
                train(root / "run")
            story.recorder.restart()
            story.note_checkpoints()
        if stop_at_evaluation is not None:
            with pytest.raises(StoppedError):
                train(root / "run", stop_at_evaluation=stop_at_evaluation)
        train(root / "run")
    story.rows = rows_without_clock(root / "run" / LOG_FILE)
    return story


def check_state(story: Story, num_done: int, _: Tree, folder: Path) -> int:
    """Start on what a power cut left; returns the step from which training would go on."""
    run = Run(folder / "run")
    assert not run.is_foreign
    with open_run(run):
        record, state = run.read_record(), run.newest_state()
        assert record in (RECORD, None)
        found = [(step_of(path), read_tree(path)) for path in list_checkpoints(run.folder)]
        number = story.checkpoints.index(found[-1]) + 1 if found else 0
        assert number >= story.promise(num_done)
        assert state.step == (found[-1][0] if found else 0)
        assert record is not None or not found
        run.write_record(RECORD)
        with log_module.RunLog(run.log_path, state.step, state.num_log_rows):
            pass
    steps = {"eval": state.step if state.evaluated_step == state.step else state.step - 1}
    expected = [row for row in story.rows if row["step"] <= steps.get(row["event"], state.step)]
    assert rows_without_clock(run.log_path) == (expected if state.step else [])
    check_litter(run.folder, story.checkpoints)
    return state.step


def check_litter(run: Path, checkpoints: list[tuple[int, Tree]]) -> None:
    """Nothing is there that a run without a crash doesn't have."""
    own = {RECORD_FILE, LOG_FILE, LOCK_FILE, CHECKPOINTS}
    assert {path.name for path in run.iterdir()} <= own
    kept = list_checkpoints(run)
    assert len(kept) <= SETTINGS.keep + 1
    if (run / CHECKPOINTS).exists():
        assert set((run / CHECKPOINTS).iterdir()) == set(kept)
    for path in kept:
        assert (step_of(path), read_tree(path)) in checkpoints


def enumerate_states(story: Story, since: int = 0) -> list[int]:
    """Check all states after at least so many operations."""
    check = partial(check_state, story)
    return check_states(story.recorder.operations, story.root, check, story.promise, since)


def test_after_any_power_cut_the_newest_whole_checkpoint_loads(tmp_path, monkeypatch):
    story = tell(tmp_path, monkeypatch)
    steps = enumerate_states(story)
    assert [step for step, _ in story.checkpoints] == [3, 6, 9, 12, 14]
    assert [number for _, number in story.finished] == [1, 2, 3, 4, 5]
    assert set(steps) == {0, 3, 6, 9, 12, 14}
    assert len(steps) > 200


# Each time a start finds what the one before it left, and is killed itself.
KILLS = [
    ("make_folder", "disk/run"),
    ("make_folder", "run/checkpoints"),
    ("open_new", "step-00000003.partial/optimizer.safetensors.partial"),
    ("remove", "step-00000003.partial/model.safetensors"),
    ("rename", "checkpoints/step-00000006"),
    ("rename", "checkpoints/step-00000003.partial"),
    ("remove", "step-00000003.partial/manifest.json"),
    ("open_end", "log.jsonl"),
]


@pytest.mark.exhaustive
def test_nor_does_a_power_cut_after_processes_that_were_killed_lose_one(tmp_path, monkeypatch):
    story = tell(tmp_path, monkeypatch, killed_after=KILLS)
    steps = enumerate_states(story)
    assert [step for step, _ in story.checkpoints] == [3, 6, 9, 12, 14]
    assert [number for _, number in story.finished] == [1, 3, 4, 5]
    assert set(steps) == {0, 3, 6, 9, 12, 14}
    assert len(steps) > 200


@pytest.mark.exhaustive
def test_nor_does_one_while_the_last_checkpoint_is_saved_again(tmp_path, monkeypatch):
    """A run that is stopped in its last evaluation saves that step twice, without and with it."""
    story = tell(tmp_path, monkeypatch, stop_at_evaluation=5)
    assert [step for step, _ in story.checkpoints] == [3, 6, 9, 12, 14, 14]
    assert set(enumerate_states(story, since=story.finished[-2][0])) == {14}


def test_from_what_a_power_cut_left_training_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    story = tell(tmp_path, monkeypatch)
    outcomes = list(list_outcomes(story.recorder.operations, story.root, promise=story.promise))
    for number, (_, tree) in enumerate(outcomes[::20]):
        write_tree(tree, tmp_path / str(number))
        run = tmp_path / str(number) / "run"
        train(run)
        last = read_tree(list_checkpoints(run)[-1])
        for name in ("model.safetensors", "optimizer.safetensors"):
            assert last[name] == story.checkpoints[-1][1][name]
        assert rows_without_clock(run / LOG_FILE) == story.rows
        assert len(list_checkpoints(run)) == SETTINGS.keep


def sync_no_names(patches: pytest.MonkeyPatch) -> None:
    patches.setattr(storage, "sync_folder", lambda path: None)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "bug",
    [
        rename_before_syncing,
        sync_no_names,
    ],
)
def test_a_planted_bug_is_found(tmp_path, monkeypatch, bug):
    story = tell(tmp_path, monkeypatch, bug=bug)
    with pytest.raises((AssertionError, BertkitError)):
        enumerate_states(story)


WATCHING = LoopSettings(batch_size=4, learning_rate=0.02, eval_every=1, checkpoint_every=9, keep=1)
CURVE = (0.0, 0.2, 0.6, 0.5, 0.4)  # before the first step and after each; ends early at the last
MOST_STEPS = 6


def train_watched(folder: Path) -> RunState:
    """Begin or go on, as a recipe does."""
    run = Run(folder)
    with open_run(run):
        state = run.newest_state()
        run.rotate(WATCHING.keep, state.best_step)
        job = jobs.build_job(WATCHING)
        if state.step:
            jobs.load_weights(job, run, state)
        steps = iter(range(state.step + (state.evaluated_step is not None), MOST_STEPS + 1))

        def evaluate() -> dict[str, float]:
            return {**job.evaluate(), "quality": CURVE[next(steps)]}

        run.write_record(RECORD)
        if state.is_done(MOST_STEPS):
            return state
        watching = jobs.vary(job, evaluate=evaluate, watched=Watched("quality", True, patience=2))
        return fit(watching, run, state, MOST_STEPS)


def check_best(_: int, __: Tree, folder: Path) -> tuple[int, int | None]:
    """The newest state is of a run whose best checkpoint is whole; returns both steps."""
    run = Run(folder / "run")
    state = run.newest_state()
    if state.best_step is not None:
        verify_checkpoint(checkpoint_path(run.folder, state.best_step))
    return state.step, state.best_step


def test_after_any_power_cut_the_best_checkpoint_is_whole(tmp_path, monkeypatch):
    root = tmp_path / "disk"
    root.mkdir()
    with monkeypatch.context() as patches:
        recorder = Recorder(patches)
        train_watched(root / "run")
    found = check_states(recorder.operations, root, check_best)
    assert set(found) == {(0, None), (1, 1), (2, 2), (4, 2)}
    assert len(found) > 50
