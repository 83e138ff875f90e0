"""The life of a training run, of any recipe: locked, begun or resumed, trained, finished."""

import copy
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from bertkit.base.errors import ResumeError, storage_errors
from bertkit.base.files import remove_folder, remove_litter
from bertkit.base.members import find_member, has_member
from bertkit.base.output import list_names, open_output
from bertkit.base.progress import announce
from bertkit.base.signals import stop_at_once
from bertkit.checkpoints.run_folder import (
    CHECKPOINTS,
    METRICS_FILE,
    RUN_FOLDER,
    FinishedRecord,
    SavedMetrics,
    checkpoint_path,
    list_checkpoints,
)
from bertkit.training.budget import begin_plan, find_seconds
from bertkit.training.job import Job, Machine
from bertkit.training.loop import fit
from bertkit.training.ranks import current_ranks, joined_ranks
from bertkit.training.record import RECORD_FILE, RunRecord, RunState, keep_precision
from bertkit.training.run import Run, describe_versions
from bertkit.training.settings import DEFAULT_MINUTES, OptimizationSettings

Result = TypeVar("Result")


def drop_checkpoints(run: Run) -> None:
    """Remove the checkpoints of a finished run."""
    for path in list_checkpoints(run.folder):
        remove_folder(path)


def drop_left_checkpoints(run: Run) -> None:
    """Remove checkpoints that a killed process left in a finished run, except those to keep."""
    record = run.read_record()
    if record is not None and record.settings.get("keep", 0) is None:
        drop_checkpoints(run)
        remove_litter(run.folder / CHECKPOINTS)


logger = logging.getLogger(__name__)

# Of a config; each checkpoint sets them, or only other tools read them.
WRITTEN_KEYS = {"architectures", "dtype", "torch_dtype", "sentence_transformers"}
# Beside a model, and not among the files that metrics.json lists.
OTHER_FILES = (
    "README.md",
    "report.html",
    "confusion_matrix.svg",
    "predictions.json",
    "nbest_predictions.json",
    "null_odds.json",
)


@contextmanager
def open_run(
    run: Run,
    output: Path | None = None,
    *,
    inputs: Iterable[str | Path] = (),
    check: Callable[[Path], None] = lambda _: None,
    describe_stop: Callable[[], str] | None = None,
) -> Iterator[None]:
    """Lock a run for this process and the ranks that train with it.

    Outside of the loop a signal stops at once.

    `output` is the folder of the model, if the run is a folder in it; it must not overlap with
    `inputs`. `check` raises an error to reject it for a reason of the recipe's own. `describe_stop`
    returns the message after a signal; by default, which checkpoint is the newest.
    """

    def check_folder(folder: Path) -> None:
        """Raise `ResumeError` if it holds anything but a run, or a model and its run."""
        check(folder)
        with storage_errors(folder, "read"):
            is_file = folder.exists() and not folder.is_dir()
        others = list_names(folder) - {run.folder.name}
        if is_file or run.is_foreign or (others and run.is_new):
            raise ResumeError(
                f"{folder} holds something that this command didn't write; choose another --output"
            )

    with stop_at_once(describe_stop or run.describe_stop), joined_ranks() as ranks:
        if not ranks.is_first:
            ranks.wait()
            yield
            return
        with open_output(
            output or run.folder,
            "training in",
            inputs=inputs,
            check=check_folder,
            is_workplace=True,
        ):
            remove_litter(run.folder / CHECKPOINTS)  # what a crash left unfinished
            ranks.wait()
            yield


AnyJob = TypeVar("AnyJob", bound=Job[Any])


class Recipe(ABC, Generic[AnyJob, Result]):
    """What one kind of training does differently from the others; `train` calls it in this order.

    Attributes:
        inputs: files and folders that are read, which the output must not overlap with.
        run_folder: the folder of the run in the output; by default the output itself.
        overwrite: whether another run in the output is replaced; None if the recipe never does.
        default_minutes: the budget, if the settings have none; None for one that isn't in minutes.
    """

    settings: OptimizationSettings
    inputs: Sequence[str | Path] = ()
    run_folder: str = ""
    overwrite: bool | None = None
    default_minutes: float | None = DEFAULT_MINUTES

    @abstractmethod
    def describe(self, run: Run) -> RunRecord:
        """Return what identifies the run; without what only `open` finds out.

        It is compared with the record of a run that was begun.
        """

    def find_hidden_size(self) -> int | None:
        """Return the hidden size of the model, which may decide the precision; None if unknown."""
        return None

    def find_finished(self, run: Run) -> Result | None:
        """Return the result of a finished run; None if something is left to do."""
        del run
        return None

    @abstractmethod
    def open(self, checkpoint: Path | None, machine: Machine) -> AnyJob:
        """Read data and model, the run's if it has a checkpoint."""

    def find_facts(self, job: AnyJob) -> dict[str, Any]:
        """Return the fields of the run's record that `open` found out."""
        del job
        return {}

    @abstractmethod
    def decide_steps(self, job: AnyJob, before: RunRecord | None, wanted: RunRecord) -> int:
        """Return the number of steps; `before` is the record of the run that is resumed."""

    def plan(self, job: AnyJob, run: Run, state: RunState, num_steps: int) -> RunState:
        """Prepare the job for so many steps; return the state to train from."""
        del job, run, num_steps
        return state

    @abstractmethod
    def finish(self, job: AnyJob, run: Run, state: RunState) -> Result:
        """Return the result of a trained run, and write what it leaves."""

    def load(self, job: AnyJob, run: Run, state: RunState) -> Result:
        """Return the result in the other ranks; by default `finish` does.

        A recipe whose `finish` writes files overrides it.
        """
        return self.finish(job, run, state)


class ModelRecipe(Recipe[AnyJob, Result]):
    """A recipe whose output is a model's folder, with the run in it and `metrics.json`."""

    settings: Any
    saved_kind: type[FinishedRecord]
    result_kind: Callable[[Path, Any], Result]  # of an output folder and what it saved
    run_folder = RUN_FOLDER

    def find_finished(self, run: Run) -> Result | None:
        """Return the result of a finished run whose files are as they were written."""
        output = run.folder.parent
        if not (output / METRICS_FILE).exists():
            return None
        saved = self.saved_kind.read(output)
        saved.check_files(output)
        if current_ranks().is_first and self.settings.keep is None:
            drop_left_checkpoints(run)
        announce(f"{output} is already finished; nothing is trained")
        return self.result_kind(output, saved)

    def find_facts(self, job: AnyJob) -> dict[str, Any]:
        """Return the model's sizes and what identifies its source."""
        config = job.model.config.to_dict()
        sizes = {name: value for name, value in config.items() if name not in WRITTEN_KEYS}
        return {"model": sizes, "source": job.source}

    @abstractmethod
    def write_model(self, job: AnyJob, run: Run, state: RunState) -> FinishedRecord:
        """Choose the weights, evaluate them and write the folder, `metrics.json` last."""

    def finish(self, job: AnyJob, run: Run, state: RunState) -> Result:
        """Write the model's folder; then remove the checkpoints, unless they are kept."""
        saved = self.write_model(job, run, state)
        if self.settings.keep is None:
            drop_checkpoints(run)
        return self.result_kind(run.folder.parent, saved)

    def load(self, job: AnyJob, run: Run, state: RunState) -> Result:
        """Return the result from what the first rank saved."""
        output = run.folder.parent
        return self.result_kind(output, self.saved_kind.read(output))


def train(recipe: Recipe[AnyJob, Result], output: Path) -> Result:
    """Train, or resume the run in `output`; a finished model isn't trained again.

    A `ResumeError` says that `output` holds something else, such as a run with other settings or
    data, or that another process trains in it; a `StoppedError` that a signal came, and that the
    same call resumes; a `NonFiniteError` that the loss became infinite and stayed so.
    """
    run = Run(output / recipe.run_folder)
    with open_run(run, output, inputs=recipe.inputs):
        before, is_replaced = run.read_record(), False
        wanted = recipe.describe(run).recognize_source(before)
        if before is not None:
            if not keep_run(before, wanted, overwrite=recipe.overwrite):
                before, wanted, is_replaced = None, recipe.describe(run), True
            elif (result := recipe.find_finished(run)) is not None:
                return result
        machine = Machine.choose(keep_precision(recipe.settings, before), recipe.find_hidden_size)
        checkpoint = None if is_replaced else run.newest_checkpoint()
        state = run.read_state(checkpoint)
        job = recipe.open(checkpoint, machine)
        found = recipe.find_facts(job)
        versions = describe_versions(machine.device, machine.precision)
        if before is not None:
            before.check_resume(wanted, found)
            found |= before.list_kept(wanted, versions)
        if state.step:
            precision = (before or wanted).precision
            announce(
                f"resuming after step {state.step:,} of {run.folder}, in {precision} as before"
            )
        started = time.monotonic()
        num_steps = recipe.decide_steps(job, before, wanted)
        seconds_after = job.seconds_after or found.get("seconds_after", 0.0)
        state = begin_plan(
            state,
            num_steps,
            find_seconds(recipe.settings, recipe.default_minutes),
            spent_seconds=time.monotonic() - started,
            reserved_seconds=seconds_after,
            last_share=job.last_share,
        )
        if is_replaced:  # only now, as data and model can be read
            replace_run(run, output)
        decided = {"num_steps": num_steps, "seconds_after": seconds_after}
        facts = {"versions": versions} | found | decided
        record = run.write_record(wanted.model_copy(update=facts))
        state = recipe.plan(job, run, state, record.num_steps)
        state = train_to_end(job, run, record, state)
        return finish(recipe, job, run, state)


def keep_run(before: RunRecord, wanted: RunRecord, *, overwrite: bool | None) -> bool:
    """Whether the run goes on; otherwise it is another one, to be replaced.

    It is a `ResumeError` if it may not be removed, and has other settings or data than are wanted.
    """
    try:
        before.check_resume(wanted)
    except ResumeError as error:
        if not overwrite:
            advice = "" if overwrite is None else ", or replace it with --overwrite"
            raise ResumeError(f"{error}{advice}") from None
        return False
    return True


def replace_run(run: Run, output: Path) -> None:
    """Remove the files of a run and of its model, but for the run's record, and files of others.

    So a process that is killed leaves a folder that the same command takes for a run.
    """
    ranks = current_ranks()
    ranks.wait()  # until all have read the record
    if ranks.is_first:
        announce(f"{output}: replacing the previous run")
        if (output / METRICS_FILE).exists():
            files = [name for name in SavedMetrics.read(output).files if has_member(output, name)]
            paths = [find_member(output, name) for name in files]
            others = [output / name for name in OTHER_FILES]
            for path in (output / METRICS_FILE, *paths, *others):
                remove_folder(path)
        for name in list_names(run.folder) - {RECORD_FILE}:
            remove_folder(run.folder / name)
    ranks.wait()


def train_to_end(job: AnyJob, run: Run, record: RunRecord, state: RunState) -> RunState:
    """Train the remaining steps; record those of a run whose deadline changed their number."""
    logger.info("training on %s in %s", job.machine.device, job.machine.precision)
    job.set_num_steps(state.plan(record.num_steps), state.phase_step)
    # Here too, because an earlier process may have been killed before it rotated.
    run.rotate(job.settings.num_kept, state.best_step, *job.needed_steps(state.step))
    if not state.is_done(record.num_steps):
        state = fit(job, run, state, record.num_steps)
        job.set_num_steps(state.plan(record.num_steps), state.phase_step)
    if state.num_steps is not None and state.step != record.num_steps:
        planned = run.read_record() or record
        run.write_record(planned.model_copy(update={"num_steps": state.step}))
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


def load_checkpoint(
    job: AnyJob, run: Run, step: int, load: Callable[[Path], Any] | None = None
) -> AnyJob:
    """Return a job with a checkpoint's weights, by `load` if that has only some of them.

    Frozen parameters stay frozen.
    """
    path = checkpoint_path(run.folder, step)
    if not path.exists():
        raise ResumeError(f"{path} is missing; remove {run.folder} to start again")
    device = next(job.model.parameters()).device
    model = (load or type(job.model).from_pretrained)(path)
    for before, now in zip(job.model.parameters(), model.parameters(), strict=True):
        now.requires_grad_(before.requires_grad)
    loaded = copy.copy(job)
    loaded.model = model.to(device)
    return loaded
