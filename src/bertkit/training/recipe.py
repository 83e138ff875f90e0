"""A training run, of any recipe: locked, begun or resumed, trained to its last step, finished."""

import copy
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from bertkit.base.errors import ResumeError
from bertkit.base.progress import announce
from bertkit.checkpoints.run_folder import RUN_FOLDER, checkpoint_path
from bertkit.training.job import Job, Machine
from bertkit.training.lifecycle import (
    METRICS_FILE,
    FinishedRecord,
    drop_checkpoints,
    drop_left_checkpoints,
    open_run,
)
from bertkit.training.loop import fit
from bertkit.training.ranks import current_ranks
from bertkit.training.run import (
    Run,
    RunRecord,
    RunState,
    check_resume,
    describe_versions,
    keep_precision,
    keep_versions,
    recognize_source,
)
from bertkit.training.settings import OptimizationSettings

AnyJob = TypeVar("AnyJob", bound=Job[Any])
Result = TypeVar("Result")

WRITTEN_KEYS = {"architectures", "dtype", "torch_dtype"}  # of a config; each checkpoint sets them

logger = logging.getLogger(__name__)


class Recipe(ABC, Generic[AnyJob, Result]):
    """What one kind of training does differently from the others; `train` calls it in this order.

    Attributes:
        inputs: files and folders that are read, which the output must not overlap with.
        source_setting: the setting that names the model that the first weights come from.
    """

    settings: OptimizationSettings
    inputs: Sequence[str | Path] = ()
    source_setting: str = "model"

    def place_run(self, output: Path) -> Run:
        """Return the run of an output folder."""
        return Run(output)

    def check_output(self, output: Path) -> None:
        """Raise an error to reject an output folder for a reason of the recipe's own."""

    @abstractmethod
    def describe(self, run: Run) -> RunRecord:
        """Return what identifies the run; without what only `open` finds out.

        It is compared with the record of a run that was begun.
        """

    def find_finished(self, run: Run) -> Result | None:
        """Return the result of a finished run; None if something is left to do."""
        del run
        return None

    @abstractmethod
    def open(self, checkpoint: Path | None, machine: Machine) -> AnyJob:
        """Read data and model, the run's if it has a checkpoint."""

    def complete(self, record: RunRecord, job: AnyJob) -> RunRecord:
        """Return the run's record with what `open` found out."""
        del job
        return record

    @abstractmethod
    def decide_steps(self, job: AnyJob, before: RunRecord | None, record: RunRecord) -> int:
        """Return the number of steps; `record` has that of the run that is resumed, or 0."""

    def plan(self, job: AnyJob, run: Run, state: RunState, num_steps: int) -> RunState:
        """Prepare the job for so many steps; return the state to train from."""
        del job, run, num_steps
        return state

    @abstractmethod
    def finish(self, job: AnyJob, run: Run, state: RunState) -> Result:
        """Return the result of a trained run, and write what it leaves."""

    def load(self, job: AnyJob, run: Run, state: RunState) -> Result:
        """Return in the other ranks what the first one finished."""
        return self.finish(job, run, state)


class ModelRecipe(Recipe[AnyJob, Result]):
    """A recipe whose output is a model's folder, with the run in it and `metrics.json`."""

    settings: Any  # with keep_checkpoints
    saved_kind: type[FinishedRecord]

    def place_run(self, output: Path) -> Run:
        """Return the run in the model's folder."""
        return Run(output / RUN_FOLDER)

    @abstractmethod
    def recall(self, output: Path, saved: Any) -> Result:
        """Return the result of a finished run from what it saved."""

    def find_finished(self, run: Run) -> Result | None:
        """Return the result of a finished run whose files are as they were written."""
        output = run.folder.parent
        if not (output / METRICS_FILE).exists():
            return None
        saved = self.saved_kind.read(output)
        saved.check_files(output)
        if current_ranks().is_first and not self.settings.keep_checkpoints:
            drop_left_checkpoints(run)
        announce(f"{output} is already finished; nothing is trained")
        return self.recall(output, saved)

    def complete(self, record: RunRecord, job: AnyJob) -> RunRecord:
        """Return the record with the model's sizes and what identifies its source."""
        config = job.model.config.to_dict()
        sizes = {name: value for name, value in config.items() if name not in WRITTEN_KEYS}
        return record.model_copy(update={"model": sizes, "source": job.source})

    def choose_weights(self, job: AnyJob, run: Run, state: RunState) -> AnyJob:
        """Return the job with the weights that become the model: those of the best step."""
        return load_checkpoint(job, run, state.model_step)

    @abstractmethod
    def write_model(self, job: AnyJob, run: Run, state: RunState) -> Result:
        """Evaluate a job with its final weights and write the folder, `metrics.json` last."""

    def finish(self, job: AnyJob, run: Run, state: RunState) -> Result:
        """Write the model's folder; then remove the checkpoints, unless they are kept."""
        result = self.write_model(self.choose_weights(job, run, state), run, state)
        if not self.settings.keep_checkpoints:
            drop_checkpoints(run)
        return result

    def load(self, job: AnyJob, run: Run, state: RunState) -> Result:
        """Return the result from what the first rank saved."""
        output = run.folder.parent
        return self.recall(output, self.saved_kind.read(output))


def train(recipe: Recipe[AnyJob, Result], output: Path) -> Result:
    """Train, or resume the run in `output`; a finished model is only reported.

    A `ResumeError` says that `output` holds something else, such as a run with other settings or
    data, or that another process trains in it; a `StoppedError` that a signal came, and that the
    same call resumes; a `NonFiniteError` that the loss became infinite and stayed so.
    """
    run = recipe.place_run(output)
    with open_run(run, output, inputs=recipe.inputs, check=recipe.check_output):
        before = run.read_record()
        wanted = recognize_source(before, recipe.describe(run), recipe.source_setting)
        if before is not None:
            check_resume(before, wanted.model_copy(update={"model": wanted.model or before.model}))
            if (result := recipe.find_finished(run)) is not None:
                return result
        machine = Machine.choose(keep_precision(recipe.settings, run))
        state = run.newest_state()
        checkpoint = checkpoint_path(run.folder, state.step) if state.step else None
        job = recipe.open(checkpoint, machine)
        versions = describe_versions(machine.device, machine.precision)
        wanted = recipe.complete(wanted.model_copy(update={"versions": versions}), job)
        record = begin_or_resume(run, before, wanted, state)
        num_steps = recipe.decide_steps(job, before, record)
        record = run.write_record(record.model_copy(update={"num_steps": num_steps}))
        state = recipe.plan(job, run, state, record.num_steps)
        with job.caching(run.folder):
            state = train_to_end(job, run, record, state, machine)
        return finish(recipe, job, run, state)


def begin_or_resume(
    run: Run, before: RunRecord | None, wanted: RunRecord, state: RunState
) -> RunRecord:
    """Return the run's record, with `num_steps` of the run that is resumed and 0 for a new one.

    A `ResumeError` says that the run has other settings, data or weights.
    """
    if before is not None:
        check_resume(before, wanted)
        wanted = keep_versions(before, wanted)
    if state.step:
        precision = wanted.precision if before is None else before.precision
        announce(f"resuming after step {state.step:,} of {run.folder}, in {precision} as before")
    return wanted


def train_to_end(
    job: Job[Any], run: Run, record: RunRecord, state: RunState, machine: Machine
) -> RunState:
    """Train the remaining steps; record those of a run whose deadline changed their number."""
    logger.info("training on %s in %s", machine.device, machine.precision)
    # Here too, because an earlier process may have been killed before it rotated.
    run.rotate(job.settings.keep, state.best_step, *job.needed_steps(state.step))
    if not state.is_done(record.num_steps):
        state = fit(
            job, job.settings, run=run, state=state, num_steps=record.num_steps, machine=machine
        )
    if state.num_steps is not None and state.step != record.num_steps:
        run.write_record(record.model_copy(update={"num_steps": state.step}))
    return state


def finish(recipe: Recipe[AnyJob, Result], job: AnyJob, run: Run, state: RunState) -> Result:
    """Finish a trained run in the first rank; the others wait, and load the result."""
    ranks = current_ranks()
    if not ranks.is_first:
        ranks.wait()
        return recipe.load(job, run, state)
    result = recipe.finish(job, run, state)
    ranks.wait()
    return result


def load_checkpoint(job: AnyJob, run: Run, step: int) -> AnyJob:
    """Return a job with a checkpoint's weights; frozen parameters stay frozen."""
    path = checkpoint_path(run.folder, step)
    if not path.exists():
        raise ResumeError(f"{path} is missing; remove {run.folder} to start again")
    device = next(job.model.parameters()).device
    model = type(job.model).from_pretrained(path)
    for before, now in zip(job.model.parameters(), model.parameters(), strict=True):
        now.requires_grad_(before.requires_grad)
    loaded = copy.copy(job)
    loaded.model = model.to(device)
    return loaded
