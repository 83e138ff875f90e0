"""Train a recurrent net or resume a run, with bertkit's common loop, record and checkpoints."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertkit.base.checksums import FileRecord
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.training import lifecycle
from bertkit.training.budget import count_steps
from bertkit.training.job import Job, Machine, Scores, Watched
from bertkit.training.lifecycle import Recipe
from bertkit.training.log import read_evaluation
from bertkit.training.record import RunRecord, RunState
from bertkit.training.run import Run
from bertkit.training.step import evaluate_batches
from bertkit_studies.baselines.plan import BaselinePlan
from bertkit_studies.baselines.settings import NetSettings
from bertkit_studies.recurrent.net import SavedNet


@dataclass(frozen=True)
class RecurrentResult:
    """The result of a run.

    Attributes:
        checkpoint: the folder of the checkpoint with the lowest held-out loss.
        best_step: the step of that checkpoint.
        num_steps: steps of the whole run.
        num_tokens: real tokens seen.
        elapsed_seconds: time spent training, over all resumed parts.
        metrics: the metrics of the evaluation after `best_step`.
    """

    checkpoint: Path
    best_step: int
    num_steps: int
    num_tokens: int
    elapsed_seconds: float
    metrics: dict[str, float]


class BaselineJob(Job[Any]):
    """The job of a plan's net for the training loop."""

    watched = Watched("loss", is_higher_better=False)

    settings: NetSettings

    def __init__(
        self, plan: BaselinePlan, net: SavedNet, machine: Machine, settings: NetSettings
    ) -> None:
        self.plan, self.model, self.machine, self.settings = plan, net, machine, settings
        self.num_micro_batches = plan.num_micro_batches
        self.progress_metrics = plan.progress_metrics

    def examples_at(self, step: int) -> Sequence[Any]:
        """Return the plan's examples."""
        return self.plan.examples_at(step)

    def collate(self, examples: Sequence[Any]) -> Any:
        """Build the plan's batch."""
        return self.plan.collate(examples)

    def loss(self, model: Any, batch: Any) -> Scores:
        """Return the plan's training loss."""
        return self.plan.score(model, batch)

    def evaluate(self) -> dict[str, float]:
        """Return the plan's losses on the held-out batches."""
        return evaluate_batches(
            self.model, self.plan.held_out, self.plan.judge, self.machine.device
        )

    def count_operations(self, batch: Any) -> float:
        """Return the plan's count."""
        return self.plan.count_operations(self.model, batch)

    def save_rest(self, folder: Path) -> dict[str, FileRecord]:
        """Write the tokenizer."""
        return self.plan.tokenizer.save(folder)


class Baseline(Recipe[BaselineJob, RecurrentResult]):
    """Training of a plan's net."""

    settings: NetSettings
    baseline: BaselinePlan

    def __init__(
        self, make_plan: Callable[[], BaselinePlan], settings: NetSettings, inputs: Sequence[Path]
    ) -> None:
        self.make_plan, self.settings, self.inputs = make_plan, settings, inputs

    def describe(self, run: Run) -> RunRecord:
        """Open the data; return settings, data and sizes."""
        self.baseline = self.make_plan()
        return RunRecord(
            settings=self.settings.dump_with_fixed_budget(),
            data_fingerprint=self.baseline.data_fingerprint,
            model=self.baseline.config.model_dump(mode="json"),
            num_steps=0,
            versions={},
            source=dict(self.baseline.source),
        )

    def open(self, checkpoint: Path | None, machine: Machine) -> BaselineJob:
        """Build the net."""
        if checkpoint is None:
            torch.manual_seed(self.settings.seed)
        net = self.baseline.begin() if checkpoint is None else self.baseline.load(checkpoint)
        return BaselineJob(self.baseline, net.to(machine.device), machine, self.settings)

    def decide_steps(self, job: BaselineJob, before: RunRecord | None, wanted: RunRecord) -> int:
        """Return the number of steps of the budget."""
        return (before.num_steps if before else 0) or count_steps(job)

    def finish(self, job: BaselineJob, run: Run, state: RunState) -> RecurrentResult:
        """Return the best checkpoint and its evaluation."""
        return RecurrentResult(
            checkpoint=checkpoint_path(run.folder, state.model_step),
            best_step=state.model_step,
            num_steps=state.step,
            num_tokens=state.tokens,
            elapsed_seconds=state.elapsed_seconds,
            metrics=read_evaluation(run.log_path, state.model_step),
        )


def train(
    make_plan: Callable[[], BaselinePlan],
    output: Path,
    settings: NetSettings,
    inputs: Sequence[Path] = (),
) -> RecurrentResult:
    """Train, or resume the run in `output`; for a finished run, only return its result.

    Args:
        make_plan: opens the data and returns the plan; a signal may interrupt it.
        output: the run's folder.
        settings: model and training settings; the budget can't change on resume.
        inputs: files and folders that are read, which `output` must not mix with.
    """
    return lifecycle.train(Baseline(make_plan, settings, inputs), output)
