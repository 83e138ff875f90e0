"""The life of a training run: locked, resumed or started, trained to its last step.

Every recipe that trains goes through these functions in this order; `finished.py` has the end of
those that write a model beside run:

    with open_run(run, output, inputs=...):        # this process alone, with its stop signals
        finished = read_finished(run, wanted, ...)  # nothing to do?
        context = ...                               # the recipe reads data and model
        record, state = start_or_resume(run, wanted)
        job, num_steps = ...                        # the recipe builds the job
        run.write_record(...)
        state = train_to_end(run, job, ...)
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertkit.base.errors import ResumeError, storage_errors
from bertkit.base.output import list_names, open_output
from bertkit.base.progress import announce
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.training.job import AnyBatch, Job, Machine
from bertkit.training.loop import fit
from bertkit.training.run import Run, RunRecord, RunState, check_resume, keep_versions
from bertkit.training.settings import OptimizationSettings
from bertkit.training.signals import stop_at_once
from bertkit.training.versions import describe_versions

logger = logging.getLogger(__name__)

WRITTEN_KEYS = {"architectures", "dtype", "torch_dtype"}  # of a config; each checkpoint sets them


@contextmanager
def open_run(
    run: Run,
    output: Path | None = None,
    *,
    inputs: Iterable[str | Path] = (),
    check: Callable[[Path], object] = lambda _: None,
    describe_stop: Callable[[], str] | None = None,
) -> Iterator[None]:
    """Lock a run for this process, and stop at once on a signal outside of the loop.

    Args:
        run: the run.
        output: the folder of the model, if the run is a folder in it.
        inputs: files and folders that are read.
        check: raises an error to reject the folder for a reason of the recipe's own.
        describe_stop: the message after a signal; by default, which checkpoint is the newest.

    Raises:
        ResumeError: the folder holds something else, or another process trains there.
        SettingsError: the folder overlaps with an input.
        StorageError: the lock can't be created.
        StoppedError: a signal arrived.
    """

    def check_folder(folder: Path) -> None:
        check(folder)
        refuse_other_content(folder, run)

    with (
        stop_at_once(describe_stop or run.describe_stop),
        open_output(
            output or run.folder,
            "training in",
            inputs=inputs,
            check=check_folder,
            is_workplace=True,
        ),
    ):
        run.remove_unfinished()
        yield


def refuse_other_content(folder: Path, run: Run) -> None:
    """Raise `ResumeError` if a folder holds anything but a run, or a model and its run."""
    with storage_errors(folder, "read"):
        is_file = folder.exists() and not folder.is_dir()
    others = list_names(folder) - {run.folder.name}
    if is_file or run.is_foreign or (others and run.is_new):
        raise ResumeError(
            f"{folder} holds something that this command didn't write; choose another --output"
        )


def complete_record(
    record: RunRecord, config: dict[str, Any], machine: Machine, source: dict[str, Any]
) -> RunRecord:
    """Return a run's record with what is known once the model is loaded."""
    return record.model_copy(
        update={
            "model": {name: value for name, value in config.items() if name not in WRITTEN_KEYS},
            "versions": describe_versions(machine.device, machine.precision),
            "source": source,
        }
    )


def start_or_resume(run: Run, wanted: RunRecord) -> tuple[RunRecord, RunState]:
    """Return the record and the state to train from.

    Args:
        run: the run, which may be new.
        wanted: the record as it would be now; `num_steps` is 0.

    Returns:
        The record, with `num_steps` of the run that is resumed and 0 for a new one; and the state
        of the newest checkpoint, step 0 if there is none.

    Raises:
        ResumeError: the run has other settings, data or weights.
    """
    record, state = run.read_record(), run.newest_state()
    if record is not None:
        check_resume(record, wanted)
        wanted = keep_versions(record, wanted)
    if state.step:
        precision = wanted.precision if record is None else record.precision
        announce(f"resuming after step {state.step:,} of {run.folder}, in {precision} as before")
    return wanted, state


def train_to_end(
    run: Run,
    job: Job[AnyBatch],
    settings: OptimizationSettings,
    record: RunRecord,
    state: RunState,
    machine: Machine,
) -> RunState:
    """Take the steps that aren't done; the run's record is already written."""
    logger.info("training on %s in %s", machine.device, machine.precision)
    # Here too, because an earlier process may have been killed before it rotated.
    run.rotate(settings.keep, state.best_step, *job.needed_steps(state.step))
    if state.is_done(record.num_steps):
        return state
    return fit(job, settings, run=run, state=state, num_steps=record.num_steps, machine=machine)


def find_checkpoint(run: Run, step: int) -> Path:
    """Return the folder of a checkpoint that the run needs.

    Raises:
        ResumeError: it is missing.
    """
    path = checkpoint_path(run.folder, step)
    if not path.exists():
        raise ResumeError(f"{path} is missing; remove {run.folder} to start again")
    return path
