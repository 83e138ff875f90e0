"""One training step: a pure function of (seed, step), the weights and the optimizer's state.

Before each micro-batch torch's default generator is seeded from (seed, step, micro-batch), and
nothing else seeds it, so a resumed run continues bit for bit without a saved generator state. Each
rank computes some of the micro-batches, and dropout doesn't depend on which rank it is.

Some libraries sum matrix products in another order if the data isn't aligned to 64 bytes, as in a
memory-mapped file. Weights are therefore aligned before the first step.

Source: Intel's oneMKL developer guide, "Obtaining Numerically Reproducible Results".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from bertkit.training.job import AnyBatch, Job, Machine, MicroBatch, Score
from bertkit.training.optimizer import set_learning_rate, to_whole
from bertkit.training.ranks import ALONE, Ranks
from bertkit.training.replica import Replica, averaging

ALIGNMENT_BYTES = 64  # as in memory that torch allocates


@dataclass(frozen=True)
class StepResult:
    """The result of one step."""

    metrics: dict[str, float]
    num_tokens: int  # without padding
    num_operations: float
    is_applied: bool  # False if loss or gradient was not finite


def align_weights(model: nn.Module) -> None:
    """Copy weights that aren't aligned, so that products don't differ in their last bits."""
    for parameter in model.parameters():
        if parameter.data_ptr() % ALIGNMENT_BYTES:
            parameter.data = parameter.data.clone()


def take_step(
    job: Job[AnyBatch], replica: Replica[AnyBatch], step: int, learning_rate: float
) -> StepResult:
    """Take one optimizer step; it is applied only if loss and gradient are finite.

    With several ranks each computes its micro-batches, and all return the result of the whole step.
    """
    ranks, optimizer, settings = replica.ranks, replica.optimizer, job.settings
    parts = job.share_at(step, ranks.rank, ranks.count)
    optimizer.zero_grad(set_to_none=True)
    metrics = add_gradients(replica.scoring, parts, settings.seed, step, job.machine, ranks)
    metrics["gradient_norm"] = clip_gradients(replica.model, settings.clip_norm)
    if is_finite(metrics):
        set_learning_rate(optimizer, learning_rate)
        with job.machine.mixed_precision():
            optimizer.step()
    counted = [part.batch for part in parts if part.counts]
    num_tokens, num_operations = ranks.sum(
        (
            sum(batch.num_tokens for batch in counted),
            sum(job.count_operations(batch) for batch in counted),
        )
    )
    return StepResult(
        metrics=metrics,
        num_tokens=int(num_tokens),
        num_operations=num_operations,
        is_applied=is_finite(metrics),
    )


def add_gradients(
    scoring: nn.Module,
    parts: Sequence[MicroBatch[AnyBatch]],
    seed: int,
    step: int,
    machine: Machine,
    ranks: Ranks = ALONE,
) -> dict[str, float]:
    """Run micro-batches forward and backward; return the step's mean losses and accuracies.

    The total loss is the sum of each loss's mean over all targets in the step, so splitting the
    step into micro-batches, or dividing it among ranks, changes only rounding. `scoring` averages
    gradients over the ranks, so each rank's loss is multiplied by their number.
    """
    scoring.train()
    totals = _count_targets(parts, ranks)
    losses: dict[str, Tensor] = {}
    correct: dict[str, Tensor] = {}
    counts: dict[str, Tensor] = {}
    for part in parts:
        weight = 1.0 if part.counts else 0.0
        torch.manual_seed(derive_seed(seed, step, part.number))
        with averaging(scoring, is_last=part is parts[-1]):
            with machine.mixed_precision():
                scores = scoring(part.batch.to(machine.device))
            means = [total / totals[name] for name, total in scores.losses.items()]
            loss = torch.stack(means).sum() * (weight * ranks.count)
            loss.backward()  # type: ignore[no-untyped-call]
        _add(losses, {name: weight * value.detach() for name, value in scores.losses.items()})
        _add(correct, {name: weight * value for name, value in scores.correct.items()})
        _add(counts, {name: weight * value for name, value in scores.counts.items()})
    sums, hits, counted = _sum_over_ranks((losses, correct, counts), ranks)
    metrics = _mean_metrics(sums, hits, totals)
    return {"loss": sum(metrics[f"{name}_loss"] for name in totals), **metrics, **counted}


def _count_targets(parts: Sequence[MicroBatch[AnyBatch]], ranks: Ranks) -> dict[str, int]:
    """Return the number of targets of each loss in the whole step, at least 1."""
    counted = [part.batch.target_counts for part in parts if part.counts]
    names = list(parts[0].batch.target_counts)
    sums = ranks.sum([sum(counts[name] for counts in counted) for name in names])
    return {name: max(1, int(total)) for name, total in zip(names, sums, strict=True)}


def _sum_over_ranks(groups: Sequence[Mapping[str, Tensor]], ranks: Ranks) -> list[dict[str, float]]:
    """Sum the numbers of each group over the ranks; the device waits once."""
    numbers = torch.stack([value.double() for group in groups for value in group.values()])
    sums = iter(ranks.sum(numbers.tolist()))
    return [{name: next(sums) for name in group} for group in groups]


def clip_gradients(model: nn.Module, clip_norm: float) -> float:
    """Clip a model's gradients to a norm; return their norm before clipping.

    Source: Pascanu et al. 2013, "On the difficulty of training recurrent neural networks".
    """
    parameters = [each for each in model.parameters() if each.grad is not None]
    norm = nn.utils.get_total_norm([each.grad for each in parameters if each.grad is not None])
    value = float(to_whole(norm))
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
    correct: dict[str, float] = {}
    totals: dict[str, int] = {}
    for batch in batches:
        scores = score(model, batch.to(device))
        _add(totals, batch.target_counts)
        _add(losses, {name: float(total) for name, total in scores.losses.items()})
        _add(correct, {name: float(total) for name, total in scores.correct.items()})
        if advance is not None:
            advance(1)
    metrics = _mean_metrics(losses, correct, totals)
    return {"loss": sum(metrics[f"{name}_loss"] for name in totals), **metrics}


Amount = TypeVar("Amount", int, float, Tensor)


def _add(sums: dict[str, Amount], more: Mapping[str, Amount]) -> None:
    """Add numbers to the sums of the same names, in place."""
    for name, number in more.items():
        sums[name] = sums[name] + number if name in sums else number


def _mean_metrics(
    losses: Mapping[str, Tensor | float],
    correct: Mapping[str, Tensor | float],
    totals: Mapping[str, int],
) -> dict[str, float]:
    """Divide sums by their numbers of targets; return them as `NAME_loss` and `NAME_accuracy`."""
    return {
        **{f"{name}_loss": float(value) / totals[name] for name, value in losses.items()},
        **{f"{name}_accuracy": float(value) / totals[name] for name, value in correct.items()},
    }
