"""A model as one rank trains it: whole, or a shard of it; alone, or together with other ranks.

With several ranks each has a whole copy, and gradients are averaged while they are computed
(`DistributedDataParallel`). With `fsdp` weights, gradients and the optimizer's state are divided
among the ranks, and a block's weights are whole while it computes (`fully_shard`). The job's own
model then takes no step: the first rank gives it the weights when it is evaluated or saved.

Source: Li et al. 2020, "PyTorch Distributed: Experiences on Accelerating Data Parallel Training";
Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models".
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Self

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.parallel import DistributedDataParallel

from bertkit.base.errors import SettingsError
from bertkit.training.job import AnyBatch, Job, Score, Scores
from bertkit.training.optimizer import build_optimizer, to_whole
from bertkit.training.ranks import Ranks, current_ranks


class ModelWithLoss(nn.Module):
    """A model and its loss as one module: batch → sums of losses."""

    def __init__(self, model: nn.Module, score: Score[Any]) -> None:
        super().__init__()
        self.model = model
        self._score = score

    def forward(self, batch: Any) -> Scores:
        """Compute the losses of a batch."""
        return self._score(self.model, batch)


@dataclass(frozen=True)
class Replica(Generic[AnyBatch]):
    """The model and the optimizer of one rank."""

    model: nn.Module  # whose parameters are trained
    scoring: nn.Module  # called with a batch; its backward pass averages gradients over the ranks
    optimizer: torch.optim.AdamW
    ranks: Ranks

    @classmethod
    def build(cls, job: Job[AnyBatch]) -> Self:
        """Build the replica of a job's model; all ranks begin with the weights of the first."""
        ranks, model, settings = current_ranks(), job.model, job.settings
        if settings.fsdp and ranks.count == 1:
            raise SettingsError("--fsdp divides a model among processes; start several by torchrun")
        scoring: nn.Module
        if settings.fsdp:
            scoring = _divide(job)
            model = scoring.model
            if not ranks.is_first:
                job.model.cpu()  # only the first rank evaluates and saves it
        elif ranks.count > 1 and any(each.requires_grad for each in model.parameters()):
            scoring = DistributedDataParallel(
                ModelWithLoss(model, job.loss),
                find_unused_parameters=True,  # such as a pooler that an objective has no use for
                gradient_as_bucket_view=True,
            )
        else:
            scoring = ModelWithLoss(model, job.loss)
        optimizer = build_optimizer(
            model, settings, job.learning_rate_scales, job.muon_learning_rate
        )
        return cls(model, scoring, optimizer, ranks)

    def update(self, model: nn.Module) -> None:
        """Give the job's model the weights, if they are divided among ranks."""
        if self.model is model:
            return
        with torch.no_grad():
            pairs = zip(model.parameters(), self.model.parameters(), strict=True)
            for parameter, shard in pairs:
                whole = to_whole(shard)
                if self.ranks.is_first:
                    parameter.copy_(whole)


@contextmanager
def averaging(scoring: nn.Module, *, is_last: bool) -> Iterator[None]:
    """Let the backward pass in the block average gradients over ranks only if it is a step's last.

    Gradients add up until then.
    """
    if isinstance(scoring, FSDPModule):
        scoring.set_requires_gradient_sync(is_last)
        yield
    elif isinstance(scoring, DistributedDataParallel) and not is_last:
        with scoring.no_sync():
            yield
    else:
        yield


def _divide(job: Job[AnyBatch]) -> ModelWithLoss:
    """Return a copy whose weights are divided among the ranks, block by block."""
    mesh = init_device_mesh(job.machine.device.type, (current_ranks().count,))
    for parameter in job.model.parameters():
        torch.distributed.broadcast(parameter.data, src=0)
    divided = ModelWithLoss(copy.deepcopy(job.model), job.loss)
    for module in divided.modules():
        if isinstance(module, nn.ModuleList):
            for block in module:
                fully_shard(block, mesh=mesh)
    fully_shard(divided, mesh=mesh)
    return divided
