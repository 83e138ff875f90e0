"""Train a recurrent net or resume a run, with bertkit's common loop, record and checkpoints."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertkit.base.checksums import FileRecord
from bertkit.base.files import write_json
from bertkit.checkpoints.file_names import CONFIG_FILE
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.training.budget import count_steps
from bertkit.training.job import Job, Machine, Watched
from bertkit.training.lifecycle import open_run, start_or_resume, train_to_end
from bertkit.training.log import read_evaluation
from bertkit.training.run import Run, RunRecord, describe_versions, keep_precision
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


def train(
    make_plan: Callable[[], BaselinePlan],
    output: Path,
    settings: NetSettings,
    inputs: Iterable[Path] = (),
) -> RecurrentResult:
    """Train, or resume the run in `output`; for a finished run, only return its result.

    Args:
        make_plan: opens the data and returns the plan; a signal may interrupt it.
        output: the run's folder.
        settings: model and training settings; the budget can't change on resume.
        inputs: files and folders that are read, which `output` must not mix with.
    """
    run = Run(output)
    with open_run(run, inputs=inputs):
        return _train(run, make_plan(), settings)


def _train(run: Run, plan: BaselinePlan, settings: NetSettings) -> RecurrentResult:
    """Start or resume a run whose lock this process holds."""
    machine = Machine.choose(keep_precision(settings, run))
    record, state = start_or_resume(run, describe_run(plan, settings, machine))
    if state.step:
        net = plan.load(checkpoint_path(run.folder, state.step))
    else:
        torch.manual_seed(settings.seed)
        net = plan.begin()
    job = build_job(plan, net.to(machine.device), machine)
    num_steps = record.num_steps or count_steps(job, settings, machine)
    record = run.write_record(record.model_copy(update={"num_steps": num_steps}))
    state = train_to_end(run, job, settings, record, state, machine)
    best_step = state.step if state.best_step is None else state.best_step
    return RecurrentResult(
        checkpoint=checkpoint_path(run.folder, best_step),
        best_step=best_step,
        num_steps=num_steps,
        num_tokens=state.tokens,
        elapsed_seconds=state.elapsed_seconds,
        metrics=read_evaluation(run.log_path, best_step),
    )


def describe_run(plan: BaselinePlan, settings: NetSettings, machine: Machine) -> RunRecord:
    """Return the run's record, without its number of steps."""
    return RunRecord(
        settings=settings.dump_with_fixed_budget(),
        data_fingerprint=plan.data_fingerprint,
        model=plan.config.model_dump(mode="json"),
        num_steps=0,
        versions=describe_versions(machine.device, machine.precision),
        source=dict(plan.source),
    )


def build_job(plan: BaselinePlan, net: SavedNet, machine: Machine) -> Job[Any]:
    """Build the job for the training loop."""

    def save_architecture(folder: Path) -> dict[str, FileRecord]:
        config = write_json(folder / CONFIG_FILE, net.config.model_dump(mode="json"))
        return {CONFIG_FILE: config, **plan.tokenizer.save(folder)}

    return Job(
        model=net,
        examples_at=plan.examples_at,
        collate=plan.collate,
        num_micro_batches=plan.num_micro_batches,
        score=plan.score,
        evaluate=lambda: evaluate_batches(net, plan.held_out, plan.judge, machine.device),
        count_operations=lambda batch: plan.count_operations(net, batch),
        save_model=lambda folder: {
            **net.save_pretrained(folder),
            **plan.tokenizer.save(folder),
        },
        save_architecture=save_architecture,
        batch_tensors=plan.batch_tensors,
        progress_metrics=plan.progress_metrics,
        watched=Watched("loss", is_higher_better=False),
    )
