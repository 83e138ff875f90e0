"""A watched metric: the best checkpoint is made and stays, and a run may end early."""

import math
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
import torch
from safetensors.torch import load_file
from tests.logs import rows_without_clock
from tests.unit.training.jobs import another, build_job, load_weights, vary

from bertkit.base.errors import StoppedError
from bertkit.checkpoints.run_folder import checkpoint_path, list_checkpoints
from bertkit.training.job import Watched
from bertkit.training.log import read_log
from bertkit.training.loop import fit, update_best
from bertkit.training.record import RunState
from bertkit.training.run import Run
from bertkit.training.settings import LoopSettings

pytestmark = pytest.mark.usefixtures("quick")

SETTINGS = LoopSettings(
    batch_size=6, learning_rate=0.02, eval_every=2, checkpoint_every=100, keep=1
)
NUM_STEPS = 15
# Before the first step, and after every second one; the best are those after 4 and 8.
CURVE = (0.9, 0.3, 0.6, 0.6, 0.7, math.nan, 0.7, 0.5, 0.8)


def train(
    run: Run,
    *,
    curve: Sequence[float] = CURVE,
    patience: int | None = None,
    is_higher_better: bool = True,
    may_be_first: bool = False,
    find_loss: Callable[[], float] | None = None,
    interrupt: Callable[[int], None] = lambda step: None,
) -> RunState:
    """Begin or go on, as a recipe does, with a metric that follows a curve."""
    state = run.newest_state()
    run.rotate(SETTINGS.keep, state.best_step)
    job = build_job(SETTINGS, dropout=0.3)
    if state.step:
        load_weights(job, run, state)
    num_done = state.step

    def examples_at(step: int):
        nonlocal num_done
        interrupt(step)
        num_done = step + 1
        return job.examples_at(step)

    def evaluate() -> dict[str, float]:
        found = job.evaluate() if find_loss is None else {"loss": find_loss()}
        return {**found, "quality": curve[-(-num_done // SETTINGS.eval_every)]}

    watched = Watched("quality", is_higher_better, patience, may_be_first=may_be_first)
    watching = vary(job, examples_at=examples_at, evaluate=evaluate, watched=watched)
    if state.is_done(NUM_STEPS):
        return state
    return fit(watching, run, state, NUM_STEPS)


def steps_of(run: Run) -> list[int]:
    return [int(path.name.removeprefix("step-")) for path in list_checkpoints(run.folder)]


def content_of(run: Run) -> dict[str, bytes | RunState]:
    """All that counts of the checkpoints of a run, whatever the clock said."""
    found: dict[str, bytes | RunState] = {}
    for path in list_checkpoints(run.folder):
        for name in ("model.safetensors", "optimizer.safetensors"):
            found[f"{path.name}/{name}"] = (path / name).read_bytes()
        state = RunState.model_validate_json((path / "run_state.json").read_bytes())
        found[path.name] = state.model_copy(update={"elapsed_seconds": 0.0})
    return found


def test_the_best_checkpoint_stays_beside_the_newest(run):
    curve = (*CURVE[:-1], 0.1)
    state = train(run, curve=curve)
    assert (state.best_step, state.best_metric, state.num_not_better) == (8, 0.7, 4)
    assert steps_of(run) == [8, 15]
    assert not state.has_ended_early


def test_a_last_step_that_is_best_is_saved_once(run, monkeypatch):
    saved, save = [], Run.save
    monkeypatch.setattr(
        Run, "save", lambda self, state, *rest: saved.append(state.step) or save(self, state, *rest)
    )
    state = train(run)
    assert saved == [2, 4, 8, 15]
    assert (state.best_step, steps_of(run)) == (15, [15])


def test_checkpoints_that_a_job_needs_are_made_and_stay(run):
    job = vary(build_job(SETTINGS), needed_steps=lambda step: {3, 5, step + 1})
    fit(job, run, RunState(), NUM_STEPS)
    assert steps_of(run) == [3, 5, 15]


def test_what_is_measured_before_the_first_step_is_shown_and_never_best(run, capfd):
    state = train(run, curve=(0.9, *[0.1] * 8), patience=3)
    assert (state.best_step, state.best_metric, state.step) == (2, 0.1, 8)
    said = capfd.readouterr().err.splitlines()
    assert "quality 0.900  held-out" in said[0]
    assert said[0].endswith("held-out")
    assert "quality 0.100  held-out, best so far" in said[1]


def test_a_run_ends_early_when_nothing_gets_better(run, capfd):
    state = train(run, patience=2)
    assert (state.step, state.has_ended_early) == (12, True)
    assert (state.best_step, state.best_metric, state.num_not_better) == (8, 0.7, 2)
    assert steps_of(run) == [8, 12]
    rows = list(read_log(run.log_path))
    assert rows_without_clock(run.log_path)[-1] == {
        "event": "ended-early",
        "step": 12,
        "metric": "quality",
        "best": 0.7,
        "best_step": 8,
    }
    (ended,) = [line for line in capfd.readouterr().err.splitlines() if "early" in line]
    assert ended == (
        "step 12: stopped early: no improvement over step 8 (quality 0.700) in 2 evaluations"
    )
    assert train(run, patience=2) == run.newest_state()
    assert list(read_log(run.log_path)) == rows


def test_where_no_value_is_finite_the_loss_selects_the_best(run, capfd):
    losses = iter([0.5, 3.0, 2.0, 4.0, 5.0, 6.0])
    curve = [math.nan, math.inf, *[math.nan] * 7]
    state = train(run, curve=curve, patience=3, find_loss=lambda: next(losses))
    assert (state.step, state.best_step, state.has_ended_early) == (10, 4, True)
    assert (state.best_metric, state.best_step_loss) == (None, 2.0)
    assert steps_of(run) == [4, 10]
    rows = [row for row in read_log(run.log_path) if row["event"] == "eval"]
    assert [row["quality"] for row in rows] == [None] * 6
    assert (
        "stopped early: no improvement over step 4 (held-out loss 2.000) in 3 evaluations; quality"
        " is undefined on this set"
    ) in capfd.readouterr().err


def test_a_value_replaces_losses_as_soon_as_one_is_finite():
    watched, state = Watched("quality", is_higher_better=True), RunState()
    seen = []
    for step, (value, loss) in enumerate(
        [(0.0, 1.0), (math.nan, 3.0), (math.nan, 2.0), (0.1, 9.0), (math.nan, 1.0), (0.2, 9.0)]
    ):
        metrics = {"quality": value, "loss": loss}
        state = update_best(watched, metrics, state.model_copy(update={"step": step}), 10)
        seen.append(state.best_step)
    assert seen == [None, 1, 2, 3, 3, 5]


@pytest.mark.parametrize(("loss", "best_step"), [(0.9, 1), (1.1, 0)])
def test_of_the_first_weights_and_equally_good_ones_those_with_the_lower_loss_are_best(
    loss, best_step
):
    watched = Watched("quality", is_higher_better=True, may_be_first=True)
    state = RunState()
    seen = []
    for step, each in enumerate([1.0, loss, loss / 2]):
        metrics = {"quality": 0.5, "loss": each}
        state = update_best(watched, metrics, state.model_copy(update={"step": step}), 10)
        seen.append(state.best_step)
    assert seen == [0, best_step, best_step or 2]


def test_first_weights_that_are_a_model_already_stay_the_best_on_a_tie():
    watched = Watched("quality", is_higher_better=True, may_be_first=True, stays_on_tie=True)
    state = RunState()
    for step, loss in enumerate([1.0, 0.5]):
        metrics = {"quality": 0.5, "loss": loss}
        state = update_best(watched, metrics, state.model_copy(update={"step": step}), 10)
    assert (state.best_step, state.num_not_better) == (0, 1)


def test_weights_whose_head_is_not_random_may_be_the_best_before_the_first_step(tmp_path, run):
    curve = (0.9, *[0.5] * 8)

    def interrupt(step: int) -> None:
        if step == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(run, curve=curve, may_be_first=True, interrupt=interrupt)
    assert steps_of(run) == [0]
    state = train(run, curve=curve, may_be_first=True)  # resumes, with the saved weights
    assert (state.step, state.best_step, state.best_metric) == (15, 0, 0.9)
    assert steps_of(run) == [0, 15]
    first = build_job(SETTINGS, dropout=0.3).model.state_dict()
    saved = load_file(checkpoint_path(run.folder, 0) / "model.safetensors")
    assert all(torch.equal(saved[name], tensor) for name, tensor in first.items())
    whole = another(run, "whole")
    train(whole, curve=curve, may_be_first=True)
    assert content_of(whole) == content_of(run)


def test_a_run_that_lost_its_patience_at_the_last_step_has_not_ended_early(run):
    state = train(run, curve=[0.0, *[0.5] * 8], patience=7)
    assert (state.step, state.num_not_better, state.has_ended_early) == (15, 7, False)


@pytest.mark.parametrize(("is_higher_better", "best_step"), [(True, 3), (False, 2)])
def test_either_direction_can_be_better_and_equal_is_not(is_higher_better, best_step):
    watched = Watched("quality", is_higher_better)
    state = RunState()
    for step, value in enumerate([0.0, 0.5, 0.2, 0.9, 0.9, 0.2, -math.inf, math.inf]):
        metrics = {"quality": value, "loss": 1 / (1 + step)}
        state = update_best(watched, metrics, state.model_copy(update={"step": step}), 10)
    assert state.best_step == best_step
    assert state.num_not_better == 7 - best_step


def test_the_loss_decides_ties_where_it_is_to_and_keeps_patience():
    watched = Watched("quality", is_higher_better=True, patience=2, is_tie_by_loss=True)
    state = RunState()
    seen = []
    for step, (value, loss) in enumerate(
        [(0.0, 9.0), (0.0, 5.0), (0.0, 4.0), (0.0, 4.0), (0.0, 3.0), (0.0, 6.0), (0.2, 7.0)]
    ):
        metrics = {"quality": value, "loss": loss}
        state = update_best(watched, metrics, state.model_copy(update={"step": step}), 10)
        seen.append(state.best_step)
    assert seen == [None, 1, 2, 2, 4, 4, 6]
    assert not state.has_ended_early


def interrupted(
    method: Callable, number: int, is_after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let a process die before or after a run's method is called for the so-manieth time."""
    calls: list[str] = []

    def call(*arguments):
        calls.append(method.__name__)
        if len(calls) == number and not is_after:
            raise KeyboardInterrupt
        result = method(*arguments)
        if len(calls) == number:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(Run, method.__name__, call)


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize(
    ("method", "number"),
    [
        *((Run.save, number) for number in (1, 2, 3, 4)),
        *((Run.rotate, number) for number in (2, 3, 4, 5)),  # the first is a start's
    ],
)
def test_a_run_killed_around_each_checkpoint_comes_to_the_same_end(
    tmp_path, run, monkeypatch, method, number, is_after
):
    train(run, patience=2)
    other = another(run)
    with monkeypatch.context() as patches:
        interrupted(method, number, is_after, patches)
        with pytest.raises(KeyboardInterrupt):
            train(other, patience=2)
    torch.manual_seed(999)
    state = train(other, patience=2)
    assert (state.step, state.best_step, state.has_ended_early) == (12, 8, True)
    assert rows_without_clock(other.log_path) == rows_without_clock(run.log_path)
    assert content_of(other) == content_of(run)


@pytest.mark.parametrize("num_reads", range(24))
def test_a_signal_between_any_two_lines_changes_no_best_and_no_end(run, stopped_at_read, num_reads):
    curve = (0.9, 0.3, 0.2, 0.2)
    with stopped_at_read(num_reads), suppress(StoppedError):
        train(run, curve=curve, patience=2)
    state = train(run, curve=curve, patience=2)
    assert (state.step, state.best_step, state.has_ended_early) == (6, 2, True)
    assert steps_of(run) == [2, 6]
    events = [(row["event"], row["step"]) for row in read_log(run.log_path)]
    assert [each for each in events if each[0] != "train"] == [
        *(("eval", step) for step in (0, 2, 4, 6)),
        ("ended-early", 6),
    ]


def test_going_on_from_an_older_checkpoint_finds_the_same_best(tmp_path, run):
    """The newest one is lost, and with it the best."""
    train(run)
    other = another(run)
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Run, "rotate", lambda *_: None)
        train(other)
    shutil.rmtree(checkpoint_path(other.folder, 15))
    shutil.rmtree(checkpoint_path(other.folder, 8))
    assert other.newest_state().best_step == 4
    train(other)
    assert content_of(other) == content_of(run)


def test_a_state_from_before_metrics_were_watched_loads():
    assert RunState.model_validate({"step": 3, "best_loss": 1.0}).best_step is None
