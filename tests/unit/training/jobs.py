"""A job that knows no BERT: fit a line to points that follow from the step."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from bertkit.base.checksums import FileRecord, record_file
from bertkit.checkpoints.run_folder import checkpoint_path, seal_checkpoint
from bertkit.checkpoints.safetensors_file import write_safetensors
from bertkit.checkpoints.torch_tensors import lazy_tensors
from bertkit.nn.dropout import Dropout
from bertkit.training.job import Job, Machine
from bertkit.training.loop import fit
from bertkit.training.record import RunState
from bertkit.training.run import Run
from bertkit.training.settings import BudgetSettings, LoopSettings

FEATURES = 6

AnyJob = TypeVar("AnyJob", bound=Job[Any])


class TrainingSettings(LoopSettings, BudgetSettings):
    """Settings of a run with a budget in steps, tokens or minutes."""


@dataclass(frozen=True)
class Points:
    inputs: Tensor
    targets: Tensor
    name: str

    @property
    def num_tokens(self) -> int:
        return len(self.targets)

    @property
    def target_counts(self) -> dict[str, int]:
        return {"fit": len(self.targets)}

    def describe(self) -> str:
        return self.name

    def to(self, device: torch.device) -> Self:
        return self


@dataclass(frozen=True)
class Sums:
    losses: dict[str, Tensor]
    correct: dict[str, Tensor]
    counts: dict[str, Tensor] = field(default_factory=dict)


class Line(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.inner = nn.Linear(FEATURES, FEATURES)
        self.dropout = Dropout(dropout)
        self.outer = nn.Linear(FEATURES, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.outer(self.dropout(self.inner(inputs).relu()))[:, 0]


def score(model: nn.Module, batch: Points) -> Sums:
    found = model(batch.inputs)
    close = (found.detach() - batch.targets).abs() < 0.5
    return Sums({"fit": (found - batch.targets).square().sum()}, {"fit": close.sum()})


def draw(step: int, count: int) -> Points:
    generator = torch.Generator().manual_seed(1000 + step)
    inputs = torch.randn(count, FEATURES, generator=generator)
    return Points(inputs, inputs.sum(dim=1), f"step {step}")


class LineJob(Job[Points]):
    machine = Machine(torch.device("cpu"), "fp32", peak_operations=1e9)

    def __init__(
        self, settings: TrainingSettings, dropout: float, poison: Callable[[int], bool] | None
    ) -> None:
        torch.manual_seed(0)
        self.model, self.poison = Line(dropout), poison
        self.settings = settings
        self.batch_size, self.num_micro_batches = settings.batch_size, settings.accumulate
        self.progress_metrics = {"fit_accuracy": "close"}

    def examples_at(self, step: int) -> list[tuple[int, int, float]]:
        factor = math.inf if self.poison is not None and self.poison(step) else 1.0
        return [(step, index, factor) for index in range(self.batch_size)]

    def collate(self, examples: Sequence[tuple[int, int, float]]) -> Points:
        step, _, factor = examples[0]
        points, chosen = draw(step, self.batch_size), [index for _, index, _ in examples]
        return Points(points.inputs[chosen] * factor, points.targets[chosen], points.name)

    def loss(self, model: nn.Module, batch: Points) -> Sums:
        return score(model, batch)

    def evaluate(self) -> dict[str, float]:
        self.model.eval()
        with torch.no_grad():
            return {"loss": float(score(self.model, draw(-1, 50)).losses["fit"]) / 50}

    def count_operations(self, batch: Points) -> float:
        return 2.0 * batch.num_tokens

    def save_model(self, folder: Path) -> dict[str, FileRecord]:
        name = "model.safetensors"
        return {name: write_safetensors(folder / name, lazy_tensors(self.model.state_dict()))}

    def save_rest(self, folder: Path) -> dict[str, FileRecord]:
        return {}


def build_job(
    settings: TrainingSettings, *, dropout: float = 0.0, poison: Callable[[int], bool] | None = None
) -> LineJob:
    return LineJob(settings, dropout, poison)


def vary(job: AnyJob, **changes: Any) -> AnyJob:
    """A copy of a job with other attributes, or with functions in place of methods."""
    assert all(hasattr(job, name) for name in changes), changes.keys()
    varied = copy.copy(job)
    vars(varied).update(changes)
    return varied


def another(run: Run, name: str = "other") -> Run:
    """A run beside another, with its record."""
    other = Run(run.folder.with_name(name))
    other.write_record(run.read_record())
    return other


def train(
    run: Run, num_steps: int, settings: TrainingSettings, **changes: Any
) -> tuple[LineJob, RunState]:
    """Begin or go on, as a recipe does."""
    job, state = build_job(settings, **changes), run.newest_state()
    if state.step:
        load_weights(job, run, state)
    return job, fit(job, run, state, num_steps)


def load_weights(job: Job[Points], run: Run, state: RunState) -> None:
    path = checkpoint_path(run.folder, state.step) / "model.safetensors"
    job.model.load_state_dict(load_file(path))


def seal_again(checkpoint: Path, step: int) -> None:
    """Seal a checkpoint that was changed, as if it had been written so."""
    (checkpoint / "manifest.json").unlink()
    files = {path.name: record_file(path) for path in checkpoint.iterdir()}
    seal_checkpoint(checkpoint, step, files)
