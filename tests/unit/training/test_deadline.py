"""A run with a deadline ends in time, by a clock that the test turns, and resumes bit for bit."""

from types import SimpleNamespace

import pytest
from tests.unit.training.jobs import build_job, load_weights, vary

from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.training import loop
from bertkit.training.budget import plan_steps
from bertkit.training.log import read_log
from bertkit.training.loop import fit
from bertkit.training.run import Run, RunState
from bertkit.training.settings import TrainingSettings

DEADLINE, EVALUATION = 100.0, 3.0
SETTINGS = TrainingSettings(batch_size=6, learning_rate=0.02, checkpoint_every=1, keep=100)


def train(run, monkeypatch, step_seconds, num_steps, last=None):
    """Train on a false clock, with steps that take as long as a function of the step says."""
    state = run.newest_state().model_copy(update={"deadline_seconds": DEADLINE})
    now = [1000.0 * (1 + state.step)]
    clock = SimpleNamespace(monotonic=lambda: now[0], perf_counter=lambda: now[0])
    monkeypatch.setattr(loop, "time", clock)
    real = build_job(SETTINGS)

    def examples_at(step):
        if step == last:
            raise KeyboardInterrupt
        now[0] += step_seconds(step)
        return real.examples_at(step)

    def evaluate():
        now[0] += EVALUATION
        return real.evaluate()

    job = vary(real, examples_at=examples_at, evaluate=evaluate)
    if state.step:
        load_weights(job, run, state)
    return fit(job, run, state, num_steps)


@pytest.mark.parametrize(
    ("step_seconds", "least", "most"),
    [
        (lambda step: 1.0, 60, 70),  # as measured: eleven evaluations are 33 seconds
        (lambda step: 2.0, 28, 36),  # half as fast as measured
        (lambda step: 0.5, 105, 150),  # twice as fast
        (lambda step: 1.0 if step < 30 else 3.0, 40, 46),  # slower from then on
        (lambda step: 1.0 if step < 60 else 20.0, 60, 64),
    ],
)
def test_a_run_ends_in_time(run, monkeypatch, step_seconds, least, most):
    state = train(run, monkeypatch, step_seconds, num_steps=65)
    assert least <= state.step <= most
    assert state.elapsed_seconds <= DEADLINE + step_seconds(state.step) + EVALUATION
    assert state.evaluated_step == state.step == state.num_steps


def test_the_learning_rate_follows_the_plan(run, monkeypatch):
    train(run, monkeypatch, lambda step: 2.0, num_steps=65)
    rates = [row["learning_rate"] for row in read_log(run.log_path) if row["event"] == "train"]
    assert rates[-1] < 0.05 * max(rates)


def test_a_resumed_run_has_the_same_plan_bit_for_bit(tmp_path, run, monkeypatch):
    whole = train(run, monkeypatch, lambda step: 2.0, num_steps=65)
    other = Run(tmp_path / "other")
    other.write_record(run.read_record())
    with pytest.raises(KeyboardInterrupt):
        train(other, monkeypatch, lambda step: 2.0, num_steps=65, last=11)
    assert other.newest_state().num_steps not in {None, 65}
    resumed = train(other, monkeypatch, lambda step: 2.0, num_steps=65)
    assert resumed.model_copy(update={"num_log_rows": whole.num_log_rows}) == whole
    first, second = (list_checkpoints(each.folder)[-1] for each in (run, other))
    name = "model.safetensors"
    assert (first / name).read_bytes() == (second / name).read_bytes()


def test_without_a_deadline_a_state_has_no_plan(run):
    job = build_job(SETTINGS)
    state = fit(job, run, RunState(), 4)
    assert (state.num_steps, state.plan(4), state.evaluated_seconds) == (None, 4, 0.0)


def test_the_last_evaluation_ends_the_run_also_if_time_is_left():
    before = RunState(step=10, evaluated_step=5, elapsed_seconds=5.0, num_steps=10)
    after = before.model_copy(update={"evaluated_step": 10, "elapsed_seconds": 6.0})
    assert plan_steps(before, after, 10, 100.0, 5) == 10
    assert plan_steps(before, after, 20, 100.0, 5) == 10 + int(91.0 / 1.2)
