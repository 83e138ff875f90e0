"""One training step: a pure function of (seed, step), the weights and the optimizer's state.

Before each micro-batch torch's default generator is seeded from (seed, step, micro-batch), and
nothing else seeds it, so these determine dropout. A resumed run therefore continues bit for bit
without a saved generator state, and a single step can be replayed.

Some libraries sum matrix products in another order if the data isn't aligned to 64 bytes, as in a
memory-mapped file. Weights are therefore aligned before the first step.

Source: Intel's oneMKL developer guide, "Obtaining Numerically Reproducible Results".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bertkit.hardware.device import mixed_precision
from bertkit.training.job import AnyBatch, Job, Machine, Score
from bertkit.training.optimization.optimizer import set_learning_rate
from bertkit.training.settings import OptimizationSettings

ALIGNMENT_BYTES = 64  # as in memory that torch allocates


@dataclass(frozen=True)
class StepResult:
    """The result of one step.

    Attributes:
        metrics: mean losses, accuracies and the gradient norm.
        num_tokens: number of tokens, without padding.
        num_operations: floating-point operations in its matrix products.
        is_applied: False if loss or gradient was not finite and the weights didn't change.
        examples: names of the examples.
    """

    metrics: dict[str, float]
    num_tokens: int
    num_operations: float
    is_applied: bool
    examples: str


def align_weights(model: nn.Module) -> None:
    """Copy weights that aren't aligned, so that products don't differ in their last bits."""
    for parameter in model.parameters():
        if parameter.data_ptr() % ALIGNMENT_BYTES:
            parameter.data = parameter.data.clone()


def take_step(
    job: Job[AnyBatch],
    settings: OptimizationSettings,
    optimizer: torch.optim.Optimizer,
    step: int,
    learning_rate: float,
    machine: Machine,
) -> StepResult:
    """Take one optimizer step; it is applied only if loss and gradient are finite."""
    batches = job.batches_at(step)
    optimizer.zero_grad(set_to_none=True)
    metrics = add_gradients(job.model, batches, job.score, settings.seed, step, machine)
    metrics["gradient_norm"] = clip_gradients(job.model, settings.clip_norm)
    if is_finite(metrics):
        set_learning_rate(optimizer, learning_rate)
        with mixed_precision(machine.device, machine.precision):
            optimizer.step()
    return StepResult(
        metrics=metrics,
        num_tokens=sum(batch.num_tokens for batch in batches),
        num_operations=sum(job.count_operations(batch) for batch in batches),
        is_applied=is_finite(metrics),
        examples=", ".join(batch.describe() for batch in batches),
    )


def add_gradients(
    model: nn.Module,
    batches: Sequence[AnyBatch],
    score: Score[AnyBatch],
    seed: int,
    step: int,
    machine: Machine,
) -> dict[str, float]:
    """Run a step's micro-batches forward and backward; return mean losses and accuracies.

    The total loss is the sum of each loss's mean over all targets in the step, so splitting the
    step into micro-batches changes only rounding.
    """
    model.train()
    totals = {
        name: max(1, sum(batch.target_counts[name] for batch in batches))
        for name in batches[0].target_counts
    }
    whole: list[Tensor] = []
    losses: dict[str, Tensor] = {}
    hits: dict[str, Tensor] = {}
    for number, batch in enumerate(batches):
        torch.manual_seed(derive_seed(seed, step, number))
        with mixed_precision(machine.device, machine.precision):
            scores = score(model, batch.to(machine.device))
        loss = torch.stack([total / totals[name] for name, total in scores.losses.items()]).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            whole.append(loss.detach())
            _add(losses, scores.losses)
            _add(hits, scores.hits)
    return {"loss": float(sum(whole)), **_mean_metrics(losses, hits, totals)}


def clip_gradients(model: nn.Module, clip_norm: float) -> float:
    """Clip a model's gradients to a norm; return their norm before clipping.

    Source: Pascanu et al. 2013, "On the difficulty of training recurrent neural networks".
    """
    parameters = [each for each in model.parameters() if each.grad is not None]
    norm = nn.utils.get_total_norm([each.grad for each in parameters if each.grad is not None])
    value = float(norm)
    if not value <= clip_norm:
        nn.utils.clip_grads_with_norm_(parameters, clip_norm, norm)
    return value


def is_finite(metrics: dict[str, float]) -> bool:
    """Whether a step's loss and gradient norm are finite."""
    return bool(np.isfinite([metrics["loss"], metrics["gradient_norm"]]).all())


def derive_seed(seed: int, step: int, micro_batch: int) -> int:
    """Return the seed of torch's generator for one micro-batch."""
    return int(np.random.SeedSequence((seed, step, micro_batch)).generate_state(1, np.uint64)[0])


@torch.no_grad()
def evaluate_batches(
    model: nn.Module,
    batches: Sequence[AnyBatch],
    score: Score[AnyBatch],
    device: torch.device,
    advance: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Return mean losses and accuracies over batches, without dropout.

    `advance` is called with 1 after each batch.
    """
    model.eval()
    losses: dict[str, float] = {}
    hits: dict[str, float] = {}
    totals: dict[str, int] = {}
    for batch in batches:
        scores = score(model, batch.to(device))
        _add(totals, batch.target_counts)
        _add(losses, {name: float(total) for name, total in scores.losses.items()})
        _add(hits, {name: float(total) for name, total in scores.hits.items()})
        if advance is not None:
            advance(1)
    metrics = _mean_metrics(losses, hits, totals)
    return {"loss": sum(metrics[f"{name}_loss"] for name in totals), **metrics}


def _add(sums: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add numbers to the sums of the same names, in place."""
    for name, number in more.items():
        sums[name] = sums.get(name, 0) + number


def _mean_metrics(
    losses: Mapping[str, Tensor | float],
    hits: Mapping[str, Tensor | float],
    totals: Mapping[str, int],
) -> dict[str, float]:
    """Divide sums by their numbers of targets; return them as `NAME_loss` and `NAME_accuracy`."""
    return {
        **{f"{name}_loss": float(value) / totals[name] for name, value in losses.items()},
        **{f"{name}_accuracy": float(value) / totals[name] for name, value in hits.items()},
    }
