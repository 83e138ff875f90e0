"""Train a recurrent net or resume a run, with bertkit's common loop, record and checkpoints."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertkit.base.checksums import FileRecord
from bertkit.base.files import write_json
from bertkit.base.progress import announce
from bertkit.checkpoints.file_names import CONFIG_FILE
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.hardware.allocator import prepare_memory
from bertkit.hardware.device import choose_device, choose_precision, measure_peak
from bertkit.models.recurrent.net import SavedNet
from bertkit.studies.baselines.plan import BaselinePlan
from bertkit.studies.baselines.settings import NetSettings
from bertkit.training.budget import count_steps
from bertkit.training.job import Job, Machine, Watched
from bertkit.training.loop import fit
from bertkit.training.records.log import read_log
from bertkit.training.run import Run, RunRecord, check_resume, take_over
from bertkit.training.settings import BUDGET_FIELDS
from bertkit.training.signals import stop_at_once
from bertkit.training.step import evaluate_batches
from bertkit.training.versions import describe_versions


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
    make_plan: Callable[[], BaselinePlan], output: Path, settings: NetSettings
) -> RecurrentResult:
    """Train, or resume the run in `output`; for a finished run, only return its result.

    Args:
        make_plan: opens the data and returns the plan; a signal may interrupt it.
        output: the run's folder.
        settings: model and training settings; the budget can't change on resume.
    """
    run = Run(output)
    with stop_at_once(run.describe_stop), run.locked():
        return _train(run, make_plan(), settings)


def _train(run: Run, plan: BaselinePlan, settings: NetSettings) -> RecurrentResult:
    """Start or resume a run whose lock this process holds."""
    machine = choose_machine(settings)
    record, state = run.read_record(), run.newest_state()
    wanted = describe_run(plan, settings, machine)
    if record is not None:
        check_resume(record, wanted)
        wanted = take_over(record, wanted)
    if state.step:
        announce(f"going on after step {state.step:,} of {run.folder}")
        net = plan.load(checkpoint_path(run.folder, state.step))
    else:
        torch.manual_seed(settings.seed)
        net = plan.begin()
    job = build_job(plan, net.to(machine.device), machine)
    num_steps = count_steps(job, settings, machine) if record is None else record.num_steps
    run.write_record(wanted.model_copy(update={"num_steps": num_steps}))
    run.rotate(settings.keep, state.best_step)  # in case an earlier process was killed before it
    if not state.is_done(num_steps):
        state = fit(job, settings, run=run, state=state, num_steps=num_steps, machine=machine)
    best_step = state.step if state.best_step is None else state.best_step
    return RecurrentResult(
        checkpoint=checkpoint_path(run.folder, best_step),
        best_step=best_step,
        num_steps=num_steps,
        num_tokens=state.tokens,
        elapsed_seconds=state.elapsed_seconds,
        metrics=read_metrics(run, best_step),
    )


def read_metrics(run: Run, step: int) -> dict[str, float]:
    """Return the metrics that the log records for the evaluation after a step."""
    rows = [row for row in read_log(run.log_path) if row["event"] == "eval" and row["step"] == step]
    return {
        name: value
        for row in rows[-1:]
        for name, value in row.items()
        if name not in {"event", "step", "tokens"}
    }


def choose_machine(settings: NetSettings) -> Machine:
    """Choose device and precision."""
    device = choose_device(settings.device)
    precision = choose_precision(settings.precision, device)
    prepare_memory(device)
    return Machine(device, precision, measure_peak(device, precision))


def describe_run(plan: BaselinePlan, settings: NetSettings, machine: Machine) -> RunRecord:
    """Return the run's record, without its number of steps."""
    values = settings.model_dump(mode="json", exclude=set(BUDGET_FIELDS))
    budget = {name: getattr(settings, name) for name in sorted(BUDGET_FIELDS)}
    return RunRecord(
        settings={**values, "budget": budget},
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
        batches_at=plan.batches_at,
        score=plan.score,
        evaluate=lambda: evaluate_batches(net, plan.held_out, plan.judge, machine.device),
        count_operations=lambda batch: plan.count_operations(net, batch),
        save_model=lambda folder: {
            **net.save_pretrained(folder),
            **plan.tokenizer.save(folder),
        },
        save_architecture=save_architecture,
        batch_tensors=plan.batch_tensors,
        shares=plan.shares,
        watched=Watched("loss", is_higher_better=False),
    )
