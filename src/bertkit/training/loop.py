"""The one loop. A step is a pure function of (seed, step) and the weights.

The loop is handed everything that knows a model or a task, in a `Job`. Before each micro-batch it
seeds torch's default generator from (seed, step, micro-batch), and nothing below it seeds, so that
dropout follows from them; a resumed run therefore needs no generator's state to go on bit for bit.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from bertkit.base.errors import NonFiniteError, StoppedError
from bertkit.training.device import mixed_precision
from bertkit.training.display import Display, show_training
from bertkit.training.log import RunLog
from bertkit.training.optimizer import build_optimizer
from bertkit.training.run import Run, RunState
from bertkit.training.schedule import learning_rate_at
from bertkit.training.settings import TrainingSettings
from bertkit.training.signals import StopRequest, catch_stop_signals

CHECKPOINT_INTERVAL_SECONDS = 300.0
NUM_EVALUATIONS = 10
MOST_SKIPPED_IN_A_ROW = 10
AFTER_DIVERGENCE = "lower --learning-rate and begin again with another --output"


class Batch(Protocol):
    """What the loop has to know of a batch."""

    @property
    def num_tokens(self) -> int:
        """Real tokens, padding not counted."""

    @property
    def target_counts(self) -> dict[str, int]:
        """How many targets each loss is summed over."""

    def describe(self) -> str:
        """The examples' names, for messages."""

    def to(self, device: torch.device) -> Self:
        """The same batch on another device."""


class Scores(Protocol):
    """Sums over a batch's targets."""

    @property
    def losses(self) -> dict[str, Tensor]:
        """Loss sums, by the names of `target_counts`."""

    @property
    def hits(self) -> dict[str, Tensor]:
        """How often the likeliest answer was right."""


AnyBatch = TypeVar("AnyBatch", bound=Batch)


@dataclass(frozen=True)
class Job(Generic[AnyBatch]):
    """Everything that knows a model or a task.

    Attributes:
        model: what is trained; on its device.
        batches_at: step → its micro-batches; a pure function.
        score: model and micro-batch → sums of losses; differentiable.
        evaluate: held-out metrics; `loss` among them.
        count_operations: floating-point operations of a training step on a micro-batch.
        save_model: writes the model's files into a folder.
        shares: metrics from 0 to 1 that are worth watching, and what to call each.
    """

    model: nn.Module
    batches_at: Callable[[int], Sequence[AnyBatch]]
    score: Callable[[Any, AnyBatch], Scores]
    evaluate: Callable[[], dict[str, float]]
    count_operations: Callable[[AnyBatch], float]
    save_model: Callable[[Path], None]
    shares: Mapping[str, str]


@dataclass(frozen=True)
class Machine:
    """Where it runs.

    Attributes:
        device: the model's.
        precision: of matrix products.
        peak_operations: floating-point operations a second of a large matrix product.
    """

    device: torch.device
    precision: Literal["fp32", "bf16"]
    peak_operations: float


@dataclass(frozen=True)
class StepResult:
    """What one step did.

    Attributes:
        metrics: mean losses, accuracies and the gradient's norm.
        num_tokens: real tokens.
        num_operations: floating-point operations of its matrix products.
        is_applied: False where loss or gradient was not finite, and the weights stayed.
        examples: names of the examples.
    """

    metrics: dict[str, float]
    num_tokens: int
    num_operations: float
    is_applied: bool
    examples: str


def fit(
    job: Job[AnyBatch],
    settings: TrainingSettings,
    *,
    run: Run,
    state: RunState,
    num_steps: int,
    machine: Machine,
) -> RunState:
    """Train until `num_steps` are done, writing log and checkpoints.

    Args:
        job: what to train.
        settings: how.
        run: where log and checkpoints go.
        state: where the run stands; its checkpoint's weights are in the model already.
        num_steps: steps of the whole run.
        machine: where it computes.

    Raises:
        StoppedError: a signal came; a checkpoint is written.
        NonFiniteError: too many steps in a row had a loss or gradient that isn't finite, or the
            held-out loss isn't.
        StorageError: the disk refused; the last checkpoint stays.
    """
    optimizer = build_optimizer(job.model, settings)
    if state.step:
        run.load(state, job.model, optimizer)
    loop = _Loop(job, settings, run, num_steps, machine, optimizer)
    with (
        RunLog(run.log_path, state.step) as log,
        show_training(num_steps, state.step, job.shares) as display,
        catch_stop_signals() as stop,
    ):
        return loop.go(state, log, display, stop)


@dataclass(frozen=True)
class _Loop(Generic[AnyBatch]):
    job: Job[AnyBatch]
    settings: TrainingSettings
    run: Run
    num_steps: int
    machine: Machine
    optimizer: torch.optim.Optimizer

    def go(self, state: RunState, log: RunLog, display: Display, stop: StopRequest) -> RunState:
        """Step, log, evaluate, save."""
        eval_every = evaluation_interval(self.settings, self.num_steps)
        saved_step, saved_at = state.step, time.monotonic()
        if state.step == 0:
            state = self._evaluate(state, log, display)
        while state.step < self.num_steps:
            state = self._step(state, log, display)
            is_last = state.step == self.num_steps
            if state.step % eval_every == 0 or is_last:
                state = self._evaluate(state, log, display)
            is_stopping = stop.is_set  # read once: a signal may come between any two lines
            if is_last or is_stopping or self._is_checkpoint_due(state.step, saved_at):
                self._save(state, log)
                saved_step, saved_at = state.step, time.monotonic()
            if is_stopping and not is_last:
                raise StoppedError(
                    f"stopped after step {saved_step:,} of {self.num_steps:,} with a checkpoint;"
                    " the same command goes on from there"
                )
        return state

    def _is_checkpoint_due(self, step: int, saved_at: float) -> bool:
        if self.settings.checkpoint_every is not None:
            return step % self.settings.checkpoint_every == 0
        return time.monotonic() - saved_at > CHECKPOINT_INTERVAL_SECONDS

    def _step(self, state: RunState, log: RunLog, display: Display) -> RunState:
        started = time.monotonic()
        rate = learning_rate_at(
            state.step,
            num_steps=self.num_steps,
            peak=self.settings.learning_rate,
            warmup=self.settings.warmup,
            schedule=self.settings.schedule,
        )
        result = take_step(self.job, self.settings, self.optimizer, state.step, rate, self.machine)
        seconds = time.monotonic() - started
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
            "share_of_peak": result.num_operations / seconds / self.machine.peak_operations,
            "elapsed_seconds": state.elapsed_seconds,
        }
        if result.is_applied:
            log.write("train", state.step, **values)
            display.show_step(state.step, values)
        else:
            self._report_skipped(state, result, log, display)
        return state

    def _report_skipped(
        self, state: RunState, result: StepResult, log: RunLog, display: Display
    ) -> None:
        """Say that a step was not applied, and end the run when that goes on."""
        log.write("not-finite", state.step, examples=result.examples)
        text = (
            f"step {state.step}: loss or gradient is not finite and was not applied"
            f" (examples epoch/shard/index: {result.examples})"
        )
        display.say(text)
        if state.num_skipped >= MOST_SKIPPED_IN_A_ROW:
            raise NonFiniteError(
                f"{text}; that was {state.num_skipped} steps in a row: {AFTER_DIVERGENCE}"
            )

    def _evaluate(self, state: RunState, log: RunLog, display: Display) -> RunState:
        started = time.monotonic()
        with mixed_precision(self.machine.device, self.machine.precision):
            metrics = self.job.evaluate()
        if not math.isfinite(metrics["loss"]):
            raise NonFiniteError(
                f"after step {state.step:,} the held-out loss is {metrics['loss']};"
                f" {AFTER_DIVERGENCE}"
            )
        log.write("eval", state.step, tokens=state.tokens, **metrics)
        display.show_evaluation(state.step, metrics)
        best = metrics["loss"] if state.best_loss is None else state.best_loss
        return state.model_copy(
            update={
                "best_loss": min(best, metrics["loss"]),
                "elapsed_seconds": state.elapsed_seconds + time.monotonic() - started,
            }
        )

    def _save(self, state: RunState, log: RunLog) -> None:
        log.sync()
        self.run.save(state, self.job.model, self.optimizer, self.job.save_model)
        self.run.rotate(self.settings.keep)


def evaluation_interval(settings: TrainingSettings, num_steps: int) -> int:
    """Steps between evaluations."""
    return settings.eval_every or -(-num_steps // NUM_EVALUATIONS)


def take_step(
    job: Job[AnyBatch],
    settings: TrainingSettings,
    optimizer: torch.optim.Optimizer,
    step: int,
    learning_rate: float,
    machine: Machine,
) -> StepResult:
    """One optimiser step: a pure function of the weights, the optimiser's state, seed and step.

    The loss is the sum of each loss's mean over all targets of the step, so that cutting the step
    into micro-batches changes nothing but rounding.
    """
    job.model.train()
    batches = job.batches_at(step)
    totals = {
        name: max(1, sum(batch.target_counts[name] for batch in batches))
        for name in batches[0].target_counts
    }
    optimizer.zero_grad(set_to_none=True)
    sums: dict[str, Tensor] = {}
    for number, batch in enumerate(batches):
        torch.manual_seed(derive_seed(settings.seed, step, number))
        with mixed_precision(machine.device, machine.precision):
            scores = job.score(job.model, batch.to(machine.device))
        loss = torch.stack([total / totals[name] for name, total in scores.losses.items()]).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        for name, total in _rows(scores, loss).items():
            sums[name] = sums.get(name, 0) + total.detach()
    norm = nn.utils.clip_grad_norm_(job.model.parameters(), settings.clip_norm)
    metrics = _mean_metrics({name: float(value) for name, value in sums.items()}, totals)
    metrics["gradient_norm"] = float(norm)
    is_finite = bool(np.isfinite([metrics["loss"], metrics["gradient_norm"]]).all())
    if is_finite:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate
        optimizer.step()
    return StepResult(
        metrics=metrics,
        num_tokens=sum(batch.num_tokens for batch in batches),
        num_operations=sum(job.count_operations(batch) for batch in batches),
        is_applied=is_finite,
        examples=", ".join(batch.describe() for batch in batches),
    )


def derive_seed(seed: int, step: int, micro_batch: int) -> int:
    """The seed of torch's generator for one micro-batch."""
    return int(np.random.SeedSequence((seed, step, micro_batch)).generate_state(1, np.uint64)[0])


@torch.no_grad()
def evaluate_batches(
    model: nn.Module,
    batches: Sequence[AnyBatch],
    score: Callable[[Any, AnyBatch], Scores],
    device: torch.device,
) -> dict[str, float]:
    """Mean losses and accuracies over batches, without dropout."""
    model.eval()
    sums: dict[str, float] = {"loss": 0.0}
    totals: dict[str, int] = {}
    for batch in batches:
        scores = score(model, batch.to(device))
        for name, count in batch.target_counts.items():
            totals[name] = totals.get(name, 0) + count
        for name, total in _rows(scores, torch.zeros(())).items():
            sums[name] = sums.get(name, 0.0) + float(total)
    metrics = _mean_metrics(sums, totals)
    return {**metrics, "loss": sum(metrics[f"{name}_loss"] for name in totals)}


def _rows(scores: Scores, loss: Tensor) -> dict[str, Tensor]:
    """All sums of a batch under flat names."""
    return {
        "loss": loss,
        **{f"{name}_loss": total for name, total in scores.losses.items()},
        **{f"{name}_accuracy": total for name, total in scores.hits.items()},
    }


def _mean_metrics(sums: dict[str, float], totals: dict[str, int]) -> dict[str, float]:
    """Divide each sum by its number of targets; the whole loss is a sum of means already."""
    return {
        name: value / totals[name.rpartition("_")[0]] if name != "loss" else value
        for name, value in sums.items()
    }
