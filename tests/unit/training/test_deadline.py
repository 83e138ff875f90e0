"""A run in minutes ends in time, by a clock that the test turns, and resumes bit for bit."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from tests.closeness import close
from tests.unit.training.jobs import TrainingSettings, build_job, load_weights, vary

from bertkit.base.files import remove_folder
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.training import loop
from bertkit.training.budget import begin_plan
from bertkit.training.log import read_log
from bertkit.training.loop import fit
from bertkit.training.record import RunState
from bertkit.training.run import Run

SECONDS, EVALUATION = 300.0, 3.0
SETTINGS = TrainingSettings(batch_size=6, learning_rate=0.02, checkpoint_every=1000)
MANY_CHECKPOINTS = SETTINGS.model_copy(update={"checkpoint_every": 10, "keep": 500})
pytestmark = pytest.mark.usefixtures("quick")


@dataclass
class Phases:
    """The second phase of a job, and where the job was told to begin it."""

    share: float = 0.0
    cost: float = 1.0
    begun: list[int | None] = field(default_factory=list)


def train(run, monkeypatch, step_seconds, num_steps, *, last=None, phases=None, settings=SETTINGS):
    """Train on a false clock, with steps that take as long as a function of the step says."""
    phases = phases or Phases()
    state = begin_plan(run.newest_state(), num_steps, SECONDS, last_share=phases.share)
    now = [1000.0 * (1 + state.step)]
    clock = SimpleNamespace(monotonic=lambda: now[0], perf_counter=lambda: now[0])
    monkeypatch.setattr(loop, "time", clock)
    real = build_job(settings)

    def examples_at(step):
        if step == last:
            raise KeyboardInterrupt
        is_long = bool(phases.begun) and step >= (phases.begun[-1] or 0)
        now[0] += step_seconds(step) * (phases.cost if is_long else 1.0)
        return real.examples_at(step)

    def evaluate():
        now[0] += EVALUATION
        return real.evaluate()

    def set_num_steps(_, phase_step):
        if phases.share:
            phases.begun.append(phase_step)

    job = vary(
        real,
        examples_at=examples_at,
        evaluate=evaluate,
        set_num_steps=set_num_steps,
        last_share=phases.share,
        last_cost=phases.cost,
    )
    if state.step:
        load_weights(job, run, state)
    return fit(job, run, state, num_steps)


PACES = {
    "as measured": lambda step: 1.0,
    "half as fast": lambda step: 2.0,
    "twice as fast": lambda step: 0.5,
    "slower early": lambda step: 1.0 if step < 60 else 2.0,
    "slower late": lambda step: 1.0 if step < 225 else 2.0,
    "faster early": lambda step: 1.0 if step < 60 else 0.5,
    "faster late": lambda step: 1.0 if step < 225 else 0.5,
    "uneven": lambda step: 0.5 if step % 3 else 2.0,
}


FEW = ("half as fast", "slower late", "faster late")


@pytest.mark.parametrize(
    "pace",
    [
        *FEW,
        *(
            pytest.param(name, marks=pytest.mark.exhaustive)
            for name in sorted(PACES.keys() - {*FEW})
        ),
    ],
)
def test_a_run_keeps_its_minutes_within_five_percent(run, monkeypatch, pace):
    state = train(run, monkeypatch, PACES[pace], num_steps=260)
    assert state.elapsed_seconds == close(SECONDS, within=0.05 * SECONDS)
    assert state.evaluated_step == state.step == state.num_steps


@pytest.mark.parametrize("pace", ["half as fast", "slower early"])
def test_both_phases_keep_their_proportion(run, monkeypatch, pace):
    phases = Phases(share=0.1, cost=4.0)
    state = train(run, monkeypatch, PACES[pace], num_steps=200, phases=phases)
    assert state.elapsed_seconds == close(SECONDS, within=0.05 * SECONDS)
    assert phases.begun[-1] == state.phase_step
    assert state.step - state.phase_step == close(0.1 * state.step, within=0.02 * state.step)


def test_a_machine_that_stalls_ends_the_run_at_once(run, monkeypatch):
    state = train(run, monkeypatch, lambda step: 1.0 if step < 150 else 200.0, num_steps=260)
    assert state.step <= 152
    assert state.evaluated_step == state.step == state.num_steps


def test_the_learning_rate_follows_the_plan(run, monkeypatch):
    train(run, monkeypatch, lambda step: 2.0, num_steps=260)
    rates = [row["learning_rate"] for row in read_log(run.log_path) if row["event"] == "train"]
    assert rates[-1] < 0.05 * max(rates)


def list_evaluations(run):
    """A resumed run adds its rows to those that the log has."""
    return [row["step"] for row in read_log(run.log_path) if row["event"] == "eval"]


@pytest.mark.parametrize(
    ("pace", "num_kept"), [("half as fast", 6), ("half as fast", 12), ("faster early", 8)]
)
def test_a_resumed_run_repeats_its_plans_bit_for_bit_on_a_slower_clock(
    run, monkeypatch, pace, num_kept
):
    """The second process repeats the steps after a checkpoint that the first one had passed."""
    whole = train(run, monkeypatch, PACES[pace], num_steps=260, settings=MANY_CHECKPOINTS)
    expected = (list_checkpoints(run.folder)[-1] / "model.safetensors").read_bytes()
    evaluations = list_evaluations(run)
    assert len(run.read_plans()) > 9
    for path in list_checkpoints(run.folder)[num_kept:]:
        remove_folder(path)
    again = train(run, monkeypatch, lambda step: 3.0, num_steps=260, settings=MANY_CHECKPOINTS)
    assert (again.step, again.num_steps) == (whole.step, whole.num_steps)
    path = list_checkpoints(run.folder)[-1] / "model.safetensors"
    assert path.read_bytes() == expected
    assert list_evaluations(run) == evaluations


def test_a_run_that_stopped_goes_on_with_the_plan_of_its_checkpoint(tmp_path, run, monkeypatch):
    pace = PACES["half as fast"]
    whole = train(run, monkeypatch, pace, num_steps=260, settings=MANY_CHECKPOINTS)
    other = Run(tmp_path / "other")
    other.write_record(run.read_record().model_copy(update={"plans": {}}))
    with pytest.raises(KeyboardInterrupt):
        train(
            other,
            monkeypatch,
            PACES["half as fast"],
            num_steps=260,
            last=41,
            settings=MANY_CHECKPOINTS,
        )
    assert other.newest_state().num_steps not in {None, 260}
    resumed = train(
        other, monkeypatch, PACES["half as fast"], num_steps=260, settings=MANY_CHECKPOINTS
    )
    assert resumed.model_copy(update={"num_log_rows": whole.num_log_rows}) == whole
    assert other.read_plans() == run.read_plans()


def test_without_minutes_a_state_has_no_plan(run):
    state = fit(build_job(SETTINGS), run, RunState(), 4)
    assert (state.num_steps, state.plan(4), run.read_plans()) == (None, 4, {})


def test_minutes_that_change_have_a_new_plan():
    new = begin_plan(RunState(), 40, 120.0, spent_seconds=8.0, reserved_seconds=5.0)
    assert (new.deadline_seconds, new.num_steps, new.elapsed_seconds) == (120.0, 40, 8.0)
    done = new.model_copy(update={"step": 55, "num_steps": 55, "evaluated_step": 55})
    assert begin_plan(done, 40, 120.0) == done
    moved = begin_plan(done, 50, 180.0)
    assert (moved.num_steps, moved.is_done(50), moved.planned_step) == (56, False, 55)
    assert begin_plan(moved, 60, None).plan(60) == 60


def test_a_budget_that_changes_divides_the_run_again():
    state = RunState(deadline_seconds=60.0, num_steps=100, step=95, phase_step=90)
    assert begin_plan(state, 1000, None, last_share=0.1).phase_step is None
    grown = begin_plan(state, 1000, 600.0, last_share=0.1)
    assert grown.phase_step == 900
    begun = begin_plan(state, 100, 61.0, last_share=0.1)
    assert (begun.phase_step, begun.plan_again(200, 0.1).phase_step) == (90, 90)


def test_a_finished_run_of_an_older_version_stays_finished():
    done = RunState(step=9, evaluated_step=9)
    assert begin_plan(done, 9, 120.0) == done
