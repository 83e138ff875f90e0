"""Converts a budget in tokens or minutes to a number of steps.

This is done once, before the first step. A run with a deadline is also planned anew while it
trains. Its plan is part of its state, and changes only at evaluations and when the time is over: a
step remains a function of seed, step and state, and a resumed run goes on with the same plan.
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

from bertkit.training.device import synchronize
from bertkit.training.job import AnyBatch, Job
from bertkit.training.ranks import current_ranks
from bertkit.training.replica import Replica
from bertkit.training.run import RunState
from bertkit.training.settings import (
    DEFAULT_MINUTES,
    NUM_EVALUATIONS,
    BudgetedSettings,
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
    settings = job.settings
    assert isinstance(settings, BudgetedSettings), "the job has a budget"
    if settings.steps is not None:
        return settings.steps
    if settings.tokens is not None:
        return math.ceil(settings.tokens / count_tokens_per_step(job))
    started = time.monotonic()
    pace = pace or measure_pace(job)
    seconds = 60.0 * (DEFAULT_MINUTES if settings.minutes is None else settings.minutes)
    return count_steps_in(seconds - (time.monotonic() - started), pace, settings)


def count_steps_in(seconds: float, pace: StepPace, settings: OptimizationSettings) -> int:
    """Return the number of steps that fit in a time, at least 1; all ranks get the first one's."""
    seconds *= 1.0 - CHECKPOINT_SHARE
    num_steps = max(1, int(seconds / seconds_per_step(pace, settings, seconds)))
    return current_ranks().from_first(lambda: num_steps)


def count_tokens_per_step(job: Job[AnyBatch]) -> float:
    """Return the mean tokens per step over the first steps; the same on every machine."""
    batches = (batch for step in range(SAMPLED_STEPS) for batch in job.batches_at(step))
    return sum(batch.num_tokens for batch in batches) / SAMPLED_STEPS


def seconds_per_step(
    pace: StepPace, settings: OptimizationSettings, budget_seconds: float
) -> float:
    """Return the time of a step plus its share of the evaluations, for a run of this budget."""
    if settings.eval_every is not None:
        return pace.step_seconds + pace.evaluation_seconds / settings.eval_every
    evaluating = min(0.9 * budget_seconds, (NUM_EVALUATIONS + 1) * pace.evaluation_seconds)
    return pace.step_seconds * budget_seconds / max(1e-9, budget_seconds - evaluating)


def seconds_of_run(pace: StepPace, settings: OptimizationSettings, num_steps: int) -> float:
    """Return the total time of all steps and evaluations."""
    num_evaluations = 1 + math.ceil(num_steps / settings.evaluation_interval(num_steps))
    return num_steps * pace.step_seconds + num_evaluations * pace.evaluation_seconds


def plan_steps(
    before: RunState, state: RunState, num_steps: int, deadline_seconds: float, steps_between: int
) -> int:
    """Return the number of steps of a run, after an evaluation, from the time that is left.

    Steps are assumed to take as long as those since the previous evaluation, and evaluations as
    long as this one. After the last of `num_steps` the run is over, also if time is left.

    Args:
        before: the state before the evaluation.
        num_steps: the number of steps as planned before.
        steps_between: number of steps between evaluations.
    """
    if not 0 < state.step < num_steps:
        return num_steps
    num_taken = state.step - (before.evaluated_step or 0)
    pace = (before.elapsed_seconds - before.evaluated_seconds) / num_taken
    evaluation = state.elapsed_seconds - before.elapsed_seconds
    left = (1.0 - CHECKPOINT_SHARE) * deadline_seconds - state.elapsed_seconds - evaluation
    return state.step + max(0, int(left / (pace + evaluation / steps_between)))


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
