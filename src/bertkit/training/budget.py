"""Converts a budget in tokens or minutes to a number of steps.

This is done before the first step. A run with a budget in minutes is planned again while it trains,
from the pace of its last steps. The plan is part of its state, and each one is in its record: a
step remains a function of seed, step and state, and a resumed run repeats the plans that it made.
"""

import copy
import math
import re
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median_high
from typing import TypeVar

import torch

from bertkit.base.settings import Settings
from bertkit.training.device import synchronize
from bertkit.training.job import AnyBatch, Job
from bertkit.training.ranks import current_ranks
from bertkit.training.record import RunState
from bertkit.training.replica import Replica
from bertkit.training.settings import (
    DEFAULT_MINUTES,
    NUM_EVALUATIONS,
    BudgetSettings,
    OptimizationSettings,
)
from bertkit.training.step import take_step

WARM_UP_STEPS = 2
MEASURED_STEPS = 48
MEASURED_SECONDS = 8.0  # after so long no further step is measured
SAMPLED_STEPS = 32
LEAST_STEPS = WARM_UP_STEPS + 1
CHECKPOINT_SHARE = 0.02  # of the time, reserved for checkpoints and other unmeasured work

AnyStep = TypeVar("AnyStep")


@dataclass(frozen=True)
class StepPace:
    """The cost of one step on this machine."""

    step_seconds: float
    evaluation_seconds: float
    tokens_per_step: float  # without padding, the mean of the first steps
    operations_per_step: float
    peak_memory_bytes: int  # of the device that computes, so far


@dataclass(frozen=True)
class MeasuredStep:
    """The cost of one step that was taken."""

    seconds: float
    num_tokens: int  # without padding
    num_operations: float


def measure_steps(
    job: Job[AnyBatch],
    replica: Replica[AnyBatch],
    *,
    least: int = LEAST_STEPS,
    after_step: Callable[[], None] = lambda: None,
) -> list[MeasuredStep]:
    """Take steps with a learning rate of 0 for a few seconds, at least so many; measure each."""
    steps: list[MeasuredStep] = []
    started = time.monotonic()
    for step in range(WARM_UP_STEPS + MEASURED_STEPS):
        begun = time.monotonic()
        result = take_step(job, replica, step, 0.0)
        synchronize(job.machine.device)
        seconds = time.monotonic() - begun
        steps.append(MeasuredStep(seconds, result.num_tokens, result.num_operations))
        after_step()
        (is_enough,) = replica.ranks.any(time.monotonic() - started > MEASURED_SECONDS)
        if step + 1 >= least and is_enough:
            break
    return steps


def measure_pace(job: Job[AnyBatch]) -> StepPace:
    """Measure a few steps on a copy of the model, which is then discarded."""
    trial = copy.copy(job)
    trial.model = copy.deepcopy(job.model)
    replica = Replica.build(trial)
    steps = measure_steps(trial, replica)
    begun = time.monotonic()
    with job.machine.mixed_precision():
        replica.ranks.from_first(job.evaluate)
    return StepPace(
        step_seconds=median_high(step.seconds for step in drop_warm_up(steps)),
        evaluation_seconds=time.monotonic() - begun,
        tokens_per_step=count_tokens_per_step(job),
        operations_per_step=sum(step.num_operations for step in steps) / len(steps),
        peak_memory_bytes=peak_memory_bytes(job.machine.device),
    )


def drop_warm_up(steps: Sequence[AnyStep]) -> Sequence[AnyStep]:
    """Return the later half of the steps.

    Memory and kernels for the shapes of batches make the first ones slower.
    """
    return steps[max(WARM_UP_STEPS, len(steps) // 2) :]


def count_steps(job: Job[AnyBatch], pace: StepPace | None = None) -> int:
    """Return the number of steps that fit in the budget, at least 1.

    Without `pace` a budget in minutes measures it, and the time of measuring counts toward the
    budget.
    """
    budget: Settings = job.settings
    assert isinstance(budget, BudgetSettings), "the job has a budget"
    if budget.steps is not None:
        return budget.steps
    if budget.tokens is not None:
        return math.ceil(budget.tokens / count_tokens_per_step(job))
    started = time.monotonic()
    pace = pace or measure_pace(job)
    seconds = 60.0 * (budget.minutes or DEFAULT_MINUTES)
    return count_steps_in(seconds - (time.monotonic() - started), pace, job.settings)


def find_seconds(
    settings: Settings, default_minutes: float | None = DEFAULT_MINUTES
) -> float | None:
    """Return the seconds of a budget in minutes; None if the settings have another one."""
    if not isinstance(settings, BudgetSettings) or settings.steps or settings.tokens:
        return None
    minutes = settings.minutes or default_minutes
    return None if minutes is None else 60.0 * minutes


def count_steps_in(seconds: float, pace: StepPace, settings: OptimizationSettings) -> int:
    """Return the number of steps that fit in a time, at least 1; all ranks get the first one's."""
    seconds *= 1.0 - CHECKPOINT_SHARE
    if settings.eval_every is not None:
        step_seconds = pace.step_seconds + pace.evaluation_seconds / settings.eval_every
    else:
        evaluating = min(0.9 * seconds, (NUM_EVALUATIONS + 1) * pace.evaluation_seconds)
        step_seconds = pace.step_seconds * seconds / max(1e-9, seconds - evaluating)
    num_steps = max(1, int(seconds / step_seconds))
    return current_ranks().from_first(lambda: num_steps)


def count_tokens_per_step(job: Job[AnyBatch]) -> float:
    """Return the mean tokens per step over the first steps; the same on every machine."""
    batches = (batch for step in range(SAMPLED_STEPS) for batch in job.batches_at(step))
    return sum(batch.num_tokens for batch in batches) / SAMPLED_STEPS


def seconds_of_run(pace: StepPace, settings: OptimizationSettings, num_steps: int) -> float:
    """Return the total time of all steps and evaluations."""
    num_evaluations = 1 + math.ceil(num_steps / settings.evaluation_interval(num_steps))
    return num_steps * pace.step_seconds + num_evaluations * pace.evaluation_seconds


def begin_plan(
    state: RunState,
    num_steps: int,
    seconds: float | None,
    *,
    spent_seconds: float = 0.0,
    reserved_seconds: float = 0.0,
    last_share: float = 0.0,
) -> RunState:
    """Return the state of a run that begins or resumes with a budget of so many seconds.

    Args:
        num_steps: as planned at first.
        seconds: None without a budget in minutes; then the run has `num_steps` steps.
        spent_seconds: of these, before the first step, such as to measure the pace.
        reserved_seconds: of these, for work after the last step.
        last_share: the share of the steps that the last phase has.
    """
    if seconds is None:
        none = {"deadline_seconds": None, "num_steps": None, "phase_step": None}
        return state.model_copy(update=none)
    is_finished = state.deadline_seconds is None and state.is_done(num_steps)
    if state.deadline_seconds == seconds or is_finished:
        return state
    elapsed_seconds = state.elapsed_seconds + spent_seconds
    num_steps = max(num_steps, state.step + 1)
    # A new run's first evaluation plans its phases.
    has_phase = last_share and state.step
    phase_step = round((1.0 - last_share) * num_steps) if has_phase else None
    return state.model_copy(
        update={
            "deadline_seconds": seconds,
            "reserved_seconds": reserved_seconds,
            "num_steps": num_steps,
            "elapsed_seconds": elapsed_seconds,
            "planned_step": state.step,
            "planned_seconds": elapsed_seconds,
            "phase_step": phase_step,
        }
    )


def plan_steps(state: RunState, job: Job[AnyBatch]) -> int:
    """Return the number of steps of a run from the time that is left.

    Steps are assumed to take as long as those since the previous plan, evaluations as long as the
    last one, and steps of the job's last phase `last_cost` times as long as the others.
    """
    assert state.num_steps is not None, "the run has a plan"
    assert state.deadline_seconds is not None, "the run has a plan"
    num_taken = state.step - state.planned_step
    if not num_taken or state.step >= state.num_steps:
        return state.num_steps
    pace = (state.elapsed_seconds - state.planned_seconds) / num_taken
    share, cost = job.last_share, job.last_cost
    if state.phase_step is not None and state.step >= state.phase_step:
        pace *= cost if state.step == state.phase_step else 1.0
        share = 0.0
    evaluating = state.evaluation_seconds / job.settings.evaluation_interval(state.num_steps)
    left = (1.0 - CHECKPOINT_SHARE) * state.deadline_seconds - state.elapsed_seconds
    left -= state.evaluation_seconds + state.reserved_seconds
    whole = left + (pace + evaluating) * state.step
    return max(state.step, int(whole / (pace * (1.0 + share * (cost - 1.0)) + evaluating)))


def peak_memory_bytes(device: torch.device) -> int:
    """Return the process's peak memory: on the GPU for a CUDA device, otherwise in main memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")  # ru_maxrss may be the peak of the program that began this
    rows = status.read_text() if status.exists() else ""
    if found := re.search(r"^VmHWM:\s*(\d+) kB$", rows, re.MULTILINE):
        return int(found[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
