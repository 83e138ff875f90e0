"""Pre-train a BERT on shards: build the parts and hand them to the loop."""

from dataclasses import dataclass
from pathlib import Path

from bertkit.base.errors import ResumeError
from bertkit.base.progress import announce
from bertkit.base.wording import pluralize
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.objectives.objective import WordBatch
from bertkit.recipes.pretrain.job import (
    PretrainingContext,
    begin_model,
    build_job,
    build_model,
    gather,
)
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.training.budget import StepPace, count_steps, measure_pace, seconds_of_run
from bertkit.training.job import Job, Machine
from bertkit.training.loop import fit
from bertkit.training.records.log import read_log
from bertkit.training.run import (
    Run,
    RunRecord,
    check_resume,
    has_same_budget,
    recognize_source,
    take_over,
)
from bertkit.training.signals import stop_at_once
from bertkit.training.versions import describe_versions


@dataclass(frozen=True)
class PretrainResult:
    """What a run came to.

    Attributes:
        checkpoint: the folder of the last checkpoint.
        num_steps: steps of the whole run.
        num_tokens: real tokens seen.
        elapsed_seconds: time spent training, over all its parts.
        metrics: of the last evaluation.
    """

    checkpoint: Path
    num_steps: int
    num_tokens: int
    elapsed_seconds: float
    metrics: dict[str, float]


@dataclass(frozen=True)
class DryRun:
    """What a run would cost.

    Attributes:
        num_parameters: of the model with its heads.
        num_steps: steps of the whole run.
        seconds: time of the whole run, its evaluations included.
        pace: time and memory of a step.
        share_of_peak: of the machine's rate of multiplying matrices; None where the step is faster.
        device: where it would compute.
        precision: in which.
    """

    num_parameters: int
    num_steps: int
    seconds: float
    pace: StepPace
    share_of_peak: float | None
    device: str
    precision: str


def pretrain(data: Path, output: Path, settings: PretrainSettings) -> PretrainResult:
    """Pre-train, or go on with the run in `output`.

    On a CPU under Linux, the memory that this process frees stays with it from then on: training
    asks for the same blocks again and again.

    Args:
        data: what `prepare` wrote.
        output: the run's folder.
        settings: what can be chosen.

    Raises:
        ResumeError: `output` holds a run with other settings, data or source, or something else, or
            another process trains in it.
        InputError: the shards are too small to train on, or not of the source's tokenizer.
        CheckpointError: the source's config or tensors don't fit.
        MissingFileError, DamagedFileError: shards, run or source lack a file or have a damaged one.
        UnsafeFileError, HubError, SettingsError: the source can't be had, as in `resolve_model` and
            `open_checkpoint`.
        StorageError: writing failed.
        StoppedError: a signal came; the same call goes on.
        NonFiniteError: the loss went to infinity and stayed there.
    """
    run = Run(output)
    with stop_at_once(run.describe_stop), run.locked(inputs=[data]):
        return _pretrain(run, gather(data, settings, run), settings)


def _pretrain(
    run: Run, materials: PretrainingContext, settings: PretrainSettings
) -> PretrainResult:
    """Begin or go on with a run that is this process's alone."""
    record, state = run.read_record(), run.newest_state()
    wanted = recognize_source(record, describe_run(materials, settings), "start_from")
    if record is not None:
        check_resume(record, wanted)
    run.rotate(settings.keep)  # a process may have been killed before it did
    if state.step:
        announce(f"going on after step {state.step:,} of {run.folder}")
    job = build_job(materials, settings, build_model(materials, settings, run, state))
    record = decide_record(record, wanted, job, settings, materials.machine)
    run.write_record(record)
    num_steps = record.num_steps
    if not state.is_done(num_steps):
        state = fit(
            job, settings, run=run, state=state, num_steps=num_steps, machine=materials.machine
        )
    return PretrainResult(
        checkpoint=checkpoint_path(run.folder, state.step),
        num_steps=num_steps,
        num_tokens=state.tokens,
        elapsed_seconds=state.elapsed_seconds,
        metrics=last_metrics(run) or job.evaluate(),
    )


def describe_run(materials: PretrainingContext, settings: PretrainSettings) -> RunRecord:
    """All that decides a run, but for its number of steps."""
    values = settings.model_dump(mode="json", exclude={"new_heads"})  # it decides no weight
    if settings.start_from is not None:  # a shell adds a / to a folder's name or doesn't
        values["start_from"] = str(Path(settings.start_from))
    return RunRecord(
        settings=values,
        data_fingerprint=materials.shards.fingerprint,
        model=materials.config.to_dict(),
        num_steps=0,
        versions=describe_versions(materials.machine.device, materials.machine.precision),
        source={} if materials.source is None else materials.source.facts,
    )


def decide_record(
    before: RunRecord | None,
    wanted: RunRecord,
    job: Job[WordBatch],
    settings: PretrainSettings,
    machine: Machine,
) -> RunRecord:
    """Make the budget into steps, once: a run that is taken up keeps them, or gets more."""
    if before is not None:
        wanted = take_over(before, wanted)
        if has_same_budget(before, wanted):
            return wanted.model_copy(update={"num_steps": before.num_steps})
    if settings.steps is None and settings.tokens is None:
        announce("measuring a few steps, to make the minutes into steps")
    num_steps = count_steps(job, settings, machine)
    if before is not None and num_steps < before.num_steps:
        raise ResumeError(
            f"the run has {pluralize(before.num_steps, 'step')}, and the new budget is"
            f" {num_steps:,}; it may only grow"
        )
    return wanted.model_copy(update={"num_steps": num_steps})


def last_metrics(run: Run) -> dict[str, float]:
    """What the last evaluation found, as the log has it; empty where the log is lost."""
    evaluations = [row for row in read_log(run.log_path) if row["event"] == "eval"]
    return {
        name: value
        for row in evaluations[-1:]
        for name, value in row.items()
        if name not in {"event", "step", "tokens"}
    }


def dry_run(data: Path, settings: PretrainSettings) -> DryRun:
    """Measure a few steps and an evaluation, and write nothing.

    Raises:
        BertkitError: as in `pretrain`, but for what a run's folder may lack.
    """
    materials = gather(data, settings)
    model = begin_model(materials, settings)
    job = build_job(materials, settings, model)
    pace = measure_pace(job, settings, materials.machine)
    num_steps = count_steps(job, settings, materials.machine, pace)
    return DryRun(
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        num_steps=num_steps,
        seconds=seconds_of_run(pace, settings, num_steps),
        pace=pace,
        share_of_peak=materials.machine.share_of_peak(pace.operations_per_step / pace.step_seconds),
        device=str(materials.machine.device),
        precision=materials.machine.precision,
    )
