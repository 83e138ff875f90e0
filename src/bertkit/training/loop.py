"""The training loop: step, log, evaluate, save.

Everything specific to a model or a task comes in a `Job`.
"""

import copy
import math
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Generic

from bertkit.base.errors import NonFiniteError, StoppedError, pluralize
from bertkit.base.signals import StopRequest, catch_stop_signals
from bertkit.reports.text import format_metric
from bertkit.training.budget import plan_steps
from bertkit.training.display import Display, show_training
from bertkit.training.history import SpikeFinder
from bertkit.training.job import AnyBatch, Job, Watched, open_lookahead
from bertkit.training.log import RunLog, SilentLog, read_log, tell_observer
from bertkit.training.record import RunState
from bertkit.training.replica import Replica
from bertkit.training.run import Run
from bertkit.training.step import StepResult, align_weights, take_step


def update_best(
    watched: Watched, metrics: Mapping[str, float], state: RunState, num_steps: int
) -> RunState:
    """Return the state updated with an evaluation; one of a random head is ignored."""
    if state.step == 0 and not watched.may_be_first:
        return state
    if is_better(watched, metrics, state):
        value = metrics[watched.metric]
        changes = {
            "best_metric": value if math.isfinite(value) else None,
            "best_step": state.step,
            "best_step_loss": metrics["loss"],
            "num_not_better": 0,
        }
        return state.model_copy(update=changes)
    num_not_better = state.num_not_better + 1
    is_enough = watched.patience is not None and num_not_better >= watched.patience
    return state.model_copy(
        update={
            "num_not_better": num_not_better,
            "has_ended_early": is_enough and state.step < num_steps,
        }
    )


def is_better(watched: Watched, metrics: Mapping[str, float], state: RunState) -> bool:
    """Whether metrics are better than the run's best so far.

    Until a value is finite, the lower loss is better. An equal value is better only if its loss is
    lower, and `is_tie_by_loss` is set, or the best are the weights before the first step and don't
    stay on a tie.
    """
    value, best, loss = metrics[watched.metric], state.best_metric, state.best_step_loss
    has_lower_loss = loss is None or metrics["loss"] < loss
    if not math.isfinite(value):
        return best is None and has_lower_loss
    if best is None:
        return True
    if value == best:
        is_left = state.best_step == 0 and not watched.stays_on_tie
        return (watched.is_tie_by_loss or is_left) and has_lower_loss
    return (value > best) == watched.is_higher_better


def describe_end(watched: Watched, state: RunState) -> str:
    """Describe why a run ended early."""
    metric, value, note = watched.metric, state.best_metric, ""
    if value is None:
        metric, value = "held-out loss", state.best_step_loss
        note = f"; {watched.metric} is undefined on this set"
    return (
        f"step {state.step:,}: stopped early: no improvement over step {state.best_step:,}"
        f" ({metric} {format_metric(watched.metric, value)}) in"
        f" {pluralize(state.num_not_better, 'evaluation')}{note}"
    )


CHECKPOINT_INTERVAL_SECONDS = 300.0
MAX_SKIPPED_STEPS = 10  # in a row; then the run ends
AFTER_DIVERGENCE = "lower --learning-rate and start again with another --output"


def fit(job: Job[AnyBatch], run: Run, state: RunState, num_steps: int) -> RunState:
    """Train for `num_steps` steps or until early stopping, writing the log and checkpoints.

    If a metric is watched, each evaluation with a new best value is followed by a checkpoint that
    is kept, as are the checkpoints that the job needs. The evaluation before the first step is
    never the best if the head is random then.

    Returns:
        The run's final state: at the last step, or earlier (`has_ended_early`). The best step is
        None if no metric is watched.
    """
    align_weights(job.model)
    replica = Replica.build(job)
    watched = None if job.watched is None else job.watched.metric
    if state.step:
        run.load(state, replica.model, replica.optimizer)
    with (
        nullcontext(SilentLog())
        if not replica.ranks.is_first
        else RunLog(run.log_path, state.step, state.num_log_rows) as log,
        show_training(state.plan(num_steps), state.step, job.progress_metrics, watched) as display,
        catch_stop_signals() as stop,
        open_lookahead(job.machine.device) as lookahead,
    ):
        job = copy.copy(job)
        job.lookahead = lookahead
        spikes = SpikeFinder.from_log(read_log(run.log_path))
        record = run.read_record()
        plans, evaluation_plans = dict[int, int](), set[int]()
        if record is not None:
            plans = {} if state.deadline_seconds is None else dict(record.plans)
            evaluation_plans = set(record.evaluation_plans)
        return _Loop(
            job, run, num_steps, replica, spikes, log, display, stop, plans, evaluation_plans
        ).go(state)


@dataclass(frozen=True)
class _Loop(Generic[AnyBatch]):
    job: Job[AnyBatch]
    run: Run
    num_steps: int
    replica: Replica[AnyBatch]
    spikes: SpikeFinder
    log: RunLog | SilentLog
    display: Display
    stop: StopRequest
    plans: dict[int, int]  # of the run so far, also of steps that are repeated
    evaluation_plans: set[int]  # the steps of those made after an evaluation

    def go(self, state: RunState) -> RunState:
        """Evaluate, save and step until the last step is done and evaluated.

        A signal may arrive between any two lines. If it interrupts an evaluation, the resumed run
        repeats that evaluation. Where one rank gets a signal, all stop after the same step.
        """
        is_new = state.evaluated_step is None
        saved_step, saved_at = -1 if is_new else state.step, time.monotonic()
        while True:
            if self._is_evaluation_due(state):
                state = self._evaluate(state)
            is_done = state.is_done(self.num_steps)
            is_due, is_stopped = self.replica.ranks.any(
                self._is_checkpoint_due(state, saved_at), self.stop.is_set
            )
            is_unsaved = (
                state.step > max(saved_step, 0) or state.step == state.best_step != saved_step
            )
            if is_done or ((is_due or is_stopped) and is_unsaved):
                after = self._save(state)
                if is_done:
                    return state
                state, saved_step, saved_at = after, state.step, time.monotonic()
            if saved_step == state.step:  # a signal may have come meanwhile
                (is_stopped,) = self.replica.ranks.any(self.stop.is_set)
            if is_stopped:
                raise StoppedError(self._describe_stop(state))
            state = self._plan_again(self._step(state))

    def _describe_stop(self, state: RunState) -> str:
        if state.step == 0:
            return "stopped before the first step; the same command starts again"
        num_steps = state.plan(self.num_steps)
        return (
            f"stopped after step {state.step:,} of {num_steps:,} with a checkpoint;"
            " the same command resumes from there"
        )

    def _is_evaluation_due(self, state: RunState) -> bool:
        num_steps, settings = state.plan(self.num_steps), self.job.settings
        interval = settings.evaluation_interval(num_steps)
        is_time = state.step % interval == 0
        if state.num_steps is not None and settings.eval_every is None and state.step:
            # The interval changes with the plan, and begins at the last evaluation.
            is_past = state.step - (state.evaluated_step or 0) >= interval
            is_time = is_past and 2 * (num_steps - state.step) > interval
        return (is_time or state.step == num_steps) and state.evaluated_step != state.step

    def _is_checkpoint_due(self, state: RunState, saved_at: float) -> bool:
        if state.step == state.best_step or state.step in self.job.needed_steps(state.step):
            return True
        if self.job.settings.checkpoint_every is not None:
            return state.step % self.job.settings.checkpoint_every == 0
        return time.monotonic() - saved_at > CHECKPOINT_INTERVAL_SECONDS

    def _step(self, state: RunState) -> RunState:
        started = time.perf_counter()
        rate = self.job.settings.learning_rate_at(state.step, state.plan(self.num_steps))
        result = take_step(self.job, self.replica, state.step, rate)
        seconds = time.perf_counter() - started
        state = state.model_copy(
            update={
                "step": state.step + 1,
                "tokens": state.tokens + result.num_tokens,
                "num_skipped": 0 if result.is_applied else state.num_skipped + 1,
                "elapsed_seconds": state.elapsed_seconds + seconds,
            }
        )
        values = {
            **result.metrics,
            "learning_rate": rate,
            "tokens": state.tokens,
            "tokens_per_second": result.num_tokens / seconds,
            "elapsed_seconds": state.elapsed_seconds,
        }
        operations = result.num_operations / self.replica.ranks.count
        share = self.job.machine.share_of_peak(operations / seconds)
        if share is not None:
            values["share_of_peak"] = share
        if result.is_applied:
            self.log.write("train", state.step, **values)
            self.display.show_step(state.step, values)
            tell_observer("step", state.step, values)
            self._watch_loss(state.step, result)
        else:
            self._report_skipped(state)
        return state

    def _watch_loss(self, step: int, result: StepResult) -> None:
        """Report a loss far above the recent losses."""
        spike = self.spikes.see(step, result.metrics["loss"])
        if spike is None:
            return
        examples = self.job.name_examples(step - 1)
        self.log.write("spike", step, **asdict(spike), examples=examples)
        self.display.say(
            f"step {step:,}: the loss, {spike.loss:.3f}, is far above recent losses,"
            f" {spike.expected:.3f} ± {spike.deviation:.3f}"
            f" ({self.job.example_names}: {examples})"
        )

    def _report_skipped(self, state: RunState) -> None:
        """Report a step that was not applied; raise after too many of them in a row."""
        examples = self.job.name_examples(state.step - 1)
        text = (
            f"step {state.step:,}: loss or gradient is not finite; the step was skipped"
            f" ({self.job.example_names}: {examples})"
        )
        self.display.say(text)  # before writing may fail
        self.log.write("not-finite", state.step, examples=examples)
        if state.num_skipped >= MAX_SKIPPED_STEPS:
            raise NonFiniteError(
                f"{text}; that was {pluralize(state.num_skipped, 'step')} in a row:"
                f" {AFTER_DIVERGENCE}"
            )

    def _evaluate(self, state: RunState) -> RunState:
        """Evaluate on held-out data and log it; return the same state if a signal interrupts it."""
        started = time.monotonic()
        self.replica.update(self.job.model)
        with self.job.machine.mixed_precision():
            metrics = self.replica.ranks.from_first(lambda: self._measure(state.step))
        if metrics is None:
            return state
        if not math.isfinite(metrics["loss"]):
            raise NonFiniteError(
                f"after step {state.step:,} the held-out loss is {metrics['loss']};"
                f" {AFTER_DIVERGENCE}"
            )
        self.log.write("eval", state.step, tokens=state.tokens, **metrics)
        best = metrics["loss"] if state.best_loss is None else state.best_loss
        state = state.model_copy(
            update={
                "evaluated_step": state.step,
                "best_loss": min(best, metrics["loss"]),
            }
        ).spend(time.monotonic() - started, is_evaluation=True)
        if (watched := self.job.watched) is not None:
            state = update_best(watched, metrics, state, state.plan(self.num_steps))
        self.display.show_evaluation(state.step, metrics, is_best=state.step == state.best_step)
        tell_observer("evaluation", state.step, metrics)
        state = self._plan_again(state, is_evaluation=True)
        if watched is not None and state.has_ended_early:
            best_fields = {"best": state.best_metric, "best_step": state.best_step}
            self.log.write("ended-early", state.step, metric=watched.metric, **best_fields)
            self.display.say(describe_end(watched, state))
        return state

    def _measure(self, step: int) -> dict[str, float] | None:
        """Return the held-out metrics; None if a signal interrupts the evaluation."""
        metrics = self.stop.run(self.job.evaluate)
        if metrics is not None and self.job.keep_evaluation is not None:
            self.job.keep_evaluation(step)
        return metrics

    def _plan_again(self, state: RunState, *, is_evaluation: bool = False) -> RunState:
        """Return the state with a new number of steps, the first rank's, where a plan is due.

        After an evaluation it always is.
        """
        if state.deadline_seconds is None:
            return state
        num_steps = self.replica.ranks.from_first(lambda: self._find_plan(state, is_evaluation))
        if num_steps is None:
            return state
        state = state.plan_again(num_steps, self.job.last_share)
        self.job.set_num_steps(num_steps, state.phase_step)
        self.display.plan(num_steps)
        return state

    def _find_plan(self, state: RunState, is_evaluation: bool) -> int | None:
        """Return the number of steps; that of the run's record for a step that is repeated.

        A plan that was made after an evaluation is repeated only after it.
        """
        if state.step <= max(self.plans, default=-1):
            is_later = state.step in self.evaluation_plans and not is_evaluation
            return None if is_later else self.plans.get(state.step)
        assert state.deadline_seconds is not None, "the run has a plan"
        is_late = state.elapsed_seconds + state.reserved_seconds >= state.deadline_seconds
        if is_late and state.step:
            num_steps = state.step
        elif is_evaluation or state.is_plan_due:
            num_steps = min(plan_steps(state, self.job), self.job.max_steps or sys.maxsize)
        else:
            return None
        self.plans[state.step] = num_steps
        if is_evaluation:
            self.evaluation_plans.add(state.step)
        self.run.write_plans(self.plans, self.evaluation_plans)
        return num_steps

    def _save(self, state: RunState) -> RunState:
        """Write a checkpoint; return the state with the time that it took, if that counts."""
        started = time.monotonic()
        self.log.sync()
        state = state.model_copy(update={"num_log_rows": self.log.num_rows})
        self.replica.update(self.job.model)
        self.run.save(state, self.replica.model, self.replica.optimizer, self.job.save_model)
        kept = self.job.settings.num_kept
        self.run.rotate(kept, state.best_step, *self.job.needed_steps(state.step))
        if state.deadline_seconds is None:
            return state
        return state.spend(time.monotonic() - started)
