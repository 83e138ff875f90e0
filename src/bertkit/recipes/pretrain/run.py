"""Pre-train a BERT on shards: build the parts and hand them to the loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.base.errors import ResumeError, pluralize
from bertkit.base.progress import announce
from bertkit.base.remote_folder import publishes_output
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.recipes.pretrain.job import (
    Phase,
    PretrainingContext,
    begin_model,
    build_model,
    build_phases,
    join_phases,
    prepare_context,
)
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.reports.notebook import show_metrics
from bertkit.training.budget import StepPace, count_steps, measure_pace, seconds_of_run
from bertkit.training.job import Machine
from bertkit.training.lifecycle import open_run, start_or_resume, train_to_end
from bertkit.training.log import read_evaluation
from bertkit.training.run import (
    Run,
    RunRecord,
    RunState,
    describe_versions,
    has_same_budget,
    recognize_source,
)
from bertkit.training.settings import DEFAULT_MINUTES


@dataclass(frozen=True)
class PretrainResult:
    """The result of a run."""

    checkpoint: Path
    num_steps: int
    num_tokens: int  # without padding
    elapsed_seconds: float  # time spent training, over all its parts
    metrics: dict[str, float]

    def _repr_html_(self) -> str:
        """Show the metrics in a notebook."""
        return show_metrics(f"{self.checkpoint}: {self.num_tokens:,} tokens", self.metrics)


@dataclass(frozen=True)
class DryRun:
    """The cost of a run that isn't started."""

    num_parameters: int
    num_steps: int
    seconds: float  # of the whole run, with its evaluations
    pace: StepPace  # of the steps with examples of max_length
    long_pace: StepPace | None  # of those of long_length
    share_of_peak: float | None  # None where the step is faster
    device: str
    precision: str


@publishes_output()
def pretrain(data: Path, output: Path, settings: PretrainSettings) -> PretrainResult:
    """Pre-train on the shards that `prepare` wrote, or resume the run in `output`.

    A `ResumeError` says that `output` holds something else, such as a run with other settings, data
    or source, or that another process trains in it; a `StoppedError` that a signal came, and that
    the same call resumes; a `NonFiniteError` that the loss became infinite and stayed so.
    """
    run = Run(output)
    with open_run(run, inputs=[data]):
        return _pretrain(run, prepare_context(data, settings, run), settings)


def _pretrain(run: Run, context: PretrainingContext, settings: PretrainSettings) -> PretrainResult:
    """Start or resume a run whose lock this process holds."""
    before = run.read_record()
    wanted = recognize_source(before, describe_run(context, settings), "start_from")
    record, state = start_or_resume(run, wanted)
    phases = build_phases(context, settings, build_model(context, settings, run, state))
    record = decide_steps(before, record, phases, settings, context.machine)
    record = run.write_record(record)
    job = join_phases(phases, record.num_steps)
    if settings.deadline:
        state = set_deadline(state, settings, record.num_steps)
    state = train_to_end(run, job, settings, record, state, context.machine)
    if state.step != record.num_steps:
        record = record.model_copy(update={"num_steps": state.step})
        run.write_record(record)
    return PretrainResult(
        checkpoint=checkpoint_path(run.folder, state.step),
        num_steps=record.num_steps,
        num_tokens=state.tokens,
        elapsed_seconds=state.elapsed_seconds,
        metrics=read_evaluation(run.log_path) or job.evaluate(),
    )


def set_deadline(state: RunState, settings: PretrainSettings, num_steps: int) -> RunState:
    """Return the state with the deadline; a new one, or one that was moved, has a new plan."""
    seconds = 60.0 * (settings.minutes or DEFAULT_MINUTES)
    if state.deadline_seconds == seconds:
        return state
    num_steps = max(num_steps, state.step + 1)
    return state.model_copy(update={"deadline_seconds": seconds, "num_steps": num_steps})


def describe_run(context: PretrainingContext, settings: PretrainSettings) -> RunRecord:
    """Return the run's record, without its number of steps."""
    values = settings.model_dump(mode="json", exclude={"new_heads"})  # affects no weight
    if settings.start_from is not None:  # a shell adds a / to a folder's name or doesn't
        values["start_from"] = str(Path(settings.start_from))
    return RunRecord(
        settings=values,
        data_fingerprint=context.shards.fingerprint,
        model=context.config.to_dict(),
        num_steps=0,
        versions=describe_versions(context.machine.device, context.machine.precision),
        source={} if context.source is None else context.source.identify(),
    )


def decide_steps(
    before: RunRecord | None,
    record: RunRecord,
    phases: Sequence[Phase],
    settings: PretrainSettings,
    machine: Machine,
) -> RunRecord:
    """Return the record with the number of steps: a resumed run has as many as before, or more."""
    if before is not None and has_same_budget(before, record):
        return record
    if settings.steps is None and settings.tokens is None:
        announce("measuring a few steps to convert the minutes to steps")
    num_steps = mix_steps(phases, [count_steps(phase.job, settings, machine) for phase in phases])
    if num_steps < record.num_steps and not settings.deadline:
        raise ResumeError(
            f"the run has {pluralize(record.num_steps, 'step')}, and the new budget is"
            f" {num_steps:,}; a run's budget can only grow"
        )
    return record.model_copy(update={"num_steps": num_steps})


def mix_steps(phases: Sequence[Phase], counts: Sequence[int]) -> int:
    """Return how many steps fit in the budget, from the number that would fit of each phase."""
    pairs = zip(phases, counts, strict=True)
    return max(1, round(1 / sum(phase.share / count for phase, count in pairs)))


def dry_run(data: Path, settings: PretrainSettings) -> DryRun:
    """Measure a few steps and an evaluation, and write nothing."""
    context = prepare_context(data, settings)
    model = begin_model(context, settings)
    phases, machine = build_phases(context, settings, model), context.machine
    paces = [measure_pace(phase.job, settings, machine) for phase in phases]
    counts = [
        count_steps(phase.job, settings, machine, pace)
        for phase, pace in zip(phases, paces, strict=True)
    ]
    num_steps, pace = mix_steps(phases, counts), paces[0]
    return DryRun(
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        num_steps=num_steps,
        seconds=sum(
            phase.share * seconds_of_run(pace, settings, num_steps)
            for phase, pace in zip(phases, paces, strict=True)
        ),
        pace=pace,
        long_pace=paces[1] if paces[1:] else None,
        share_of_peak=machine.share_of_peak(pace.operations_per_step / pace.step_seconds),
        device=str(machine.device),
        precision=machine.precision,
    )
