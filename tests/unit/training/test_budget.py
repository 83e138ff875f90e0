"""Budgets become steps as they should, by a clock that the test turns."""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tests.closeness import close
from tests.unit.training.jobs import TrainingSettings, build_job, vary

from bertkit.training import budget
from bertkit.training.budget import (
    StepPace,
    count_steps,
    drop_warm_up,
    measure_pace,
    peak_memory_bytes,
    seconds_of_run,
)
from bertkit.training.settings import DEFAULT_MINUTES

STEP_SECONDS, EVALUATION_SECONDS = 0.5, 2.0
MEASURING_SECONDS = 17 * STEP_SECONDS + EVALUATION_SECONDS
PACE = StepPace(STEP_SECONDS, EVALUATION_SECONDS, 12.0, 24.0, 1)


@pytest.fixture
def job(monkeypatch):
    """A job whose steps and evaluations take time on a false clock."""
    now = [1000.0]
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: now[0]))
    real = build_job(TrainingSettings(batch_size=12))

    def score(model, batch):
        now[0] += STEP_SECONDS
        return real.loss(model, batch)

    def evaluate():
        now[0] += EVALUATION_SECONDS
        return real.evaluate()

    return vary(real, loss=score, evaluate=evaluate)


def test_the_pace_is_what_the_clock_says(job):
    pace = measure_pace(job)
    assert pace.step_seconds == close(STEP_SECONDS)
    assert pace.evaluation_seconds == close(EVALUATION_SECONDS)
    assert pace.tokens_per_step == 12
    assert pace.operations_per_step == 24.0
    assert pace.peak_memory_bytes > 1 << 20


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells it")
def test_peak_memory_is_not_that_of_the_program_that_began_this_one(monkeypatch):
    inherited = SimpleNamespace(ru_maxrss=1 << 40)
    monkeypatch.setattr(budget.resource, "getrusage", lambda _: inherited)
    assert 1 << 20 < peak_memory_bytes(torch.device("cpu")) < 1 << 40
    monkeypatch.setattr(budget.Path, "exists", lambda _: False)
    assert peak_memory_bytes(torch.device("cpu")) >= 1 << 40


def test_a_step_has_as_many_tokens_on_a_slow_machine(job, monkeypatch):
    uneven = vary(job, examples_at=lambda step: job.examples_at(step) * (1 + step % 5))
    monkeypatch.setattr(budget, "MEASURED_SECONDS", 100.0)
    quick = measure_pace(uneven)
    monkeypatch.setattr(budget, "MEASURED_SECONDS", 0.0)
    slow = measure_pace(uneven)
    assert quick.operations_per_step > slow.operations_per_step  # it measured other steps
    assert quick.tokens_per_step == slow.tokens_per_step
    asked = vary(uneven, settings=TrainingSettings(tokens=1_000))
    assert count_steps(asked) == math.ceil(1_000 / slow.tokens_per_step)


def test_measuring_leaves_the_weights_alone(job):
    before = [parameter.clone() for parameter in job.model.parameters()]
    measure_pace(vary(job, settings=TrainingSettings(learning_rate=1.0)))
    assert all(map(torch.equal, before, job.model.parameters()))


@pytest.mark.parametrize("minutes", [2.0, None])
def test_minutes_pay_for_measuring_and_for_eleven_evaluations(job, minutes):
    timed = vary(job, settings=TrainingSettings(minutes=minutes))
    seconds = 0.98 * (60 * (minutes or DEFAULT_MINUTES) - MEASURING_SECONDS)
    expected = int((seconds - 11 * EVALUATION_SECONDS) / STEP_SECONDS)
    assert count_steps(timed) == expected


def test_a_known_pace_is_not_measured_again(job):
    settings = TrainingSettings(minutes=2.0)
    untouched = vary(job, loss=None, evaluate=None, settings=settings)
    expected = int((0.98 * 120 - 11 * EVALUATION_SECONDS) / STEP_SECONDS)
    assert count_steps(untouched, PACE) == expected


def test_tokens_are_divided_by_those_of_a_step(job):
    assert count_steps(vary(job, settings=TrainingSettings(tokens=121))) == 11
    assert count_steps(vary(job, settings=TrainingSettings(steps=7))) == 7


@pytest.mark.parametrize(("eval_every", "evaluations"), [(1, 1001), (300, 5), (None, 11)])
def test_the_time_of_a_run_has_its_evaluations(eval_every, evaluations):
    settings = TrainingSettings(eval_every=eval_every)
    expected = 1000 * STEP_SECONDS + evaluations * EVALUATION_SECONDS
    assert seconds_of_run(PACE, settings, 1000) == close(expected)


def test_the_first_slower_steps_dont_count():
    assert drop_warm_up([9.0] * 10 + [1.0, 2.0, 1.0] + [1.0] * 8) == [1.0, 2.0, 1.0] + [1.0] * 8
    assert drop_warm_up([9.0, 8.0, 1.0]) == [1.0]
