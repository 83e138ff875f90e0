"""A run on disk: what it was begun with, and its checkpoints with all that resuming needs."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from torch import nn, optim

from bertkit.base.checksummed_json import read_checksummed_json, write_checksummed_json
from bertkit.base.errors import DamagedFileError, ResumeError, storage_errors
from bertkit.base.files import (
    durable_folder,
    make_folder,
    read_json,
    remove_litter,
    write_json,
)
from bertkit.base.output import list_names, open_output
from bertkit.base.progress import announce
from bertkit.base.settings import describe_validation
from bertkit.checkpoints.identity import is_same_model
from bertkit.checkpoints.run_folder import (
    CHECKPOINTS,
    checkpoint_path,
    list_checkpoints,
    rotate_checkpoints,
    seal_checkpoint,
    verify_checkpoint,
)
from bertkit.checkpoints.safetensors_file import read_safetensors, write_safetensors
from bertkit.training.dump import DUMPS
from bertkit.training.job import SaveFiles
from bertkit.training.optimizer import load_optimizer_tensors, optimizer_tensors
from bertkit.training.settings import BUDGET_FIELDS, MAY_CHANGE

RECORD_FILE = "settings.json"
STATE_FILE = "run_state.json"
OPTIMIZER_FILE = "optimizer.safetensors"
LOG_FILE = "log.jsonl"


class RunState(BaseModel):
    """Where a run stands. With weights and optimizer, this is all that resuming needs.

    Attributes:
        step: steps done.
        tokens: real tokens seen.
        evaluated_step: the step after which the last evaluation was; None before the first.
        best_loss: the lowest held-out loss so far.
        num_skipped: steps in a row whose gradient was not finite, up to now.
        elapsed_seconds: time spent training, over all its parts.
        num_log_rows: rows that the log had when it was synced for this checkpoint.
        best_metric: the best value of the watched metric after a step; None where there is none.
        best_step: the step after which it was; its checkpoint is kept.
        best_step_loss: the held-out loss there.
        num_not_better: evaluations in a row that were not better, up to now.
        has_ended_early: whether they ended the run before its last step.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int = 0
    tokens: int = 0
    evaluated_step: int | None = None
    best_loss: float | None = None
    num_skipped: int = 0
    elapsed_seconds: float = 0.0
    num_log_rows: int = 0
    best_metric: float | None = None
    best_step: int | None = None
    best_step_loss: float | None = None
    num_not_better: int = 0
    has_ended_early: bool = False

    def is_done(self, num_steps: int) -> bool:
        """Whether a run of so many steps is at its end, and evaluated there."""
        return self.has_ended_early or self.evaluated_step == num_steps


class RunRecord(BaseModel):
    """What a run was begun with.

    Attributes:
        settings: the recipe's settings.
        data_fingerprint: identifies the data.
        model: the model's sizes, as its config has them.
        num_steps: steps of the whole run.
        versions: of the programs that matter to the bits.
        source: the checkpoint that its first weights come from; empty where they were drawn.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: dict[str, Any]
    data_fingerprint: str
    model: dict[str, Any]
    num_steps: int
    versions: dict[str, str]
    source: dict[str, Any] = {}


@dataclass(frozen=True)
class Run:
    """A run's folder."""

    folder: Path

    @property
    def log_path(self) -> Path:
        """The JSONL log."""
        return self.folder / LOG_FILE

    @property
    def is_foreign(self) -> bool:
        """Whether the folder holds something that isn't a run."""
        with storage_errors(self.folder, "read"):
            if (self.folder / RECORD_FILE).exists() or not self.folder.exists():
                return False
            if not self.folder.is_dir():
                return True
        return bool(list_names(self.folder))

    def refuse_strangers(self, _: Path) -> None:
        """See that the folder is new, or holds a run."""
        if self.is_foreign:
            raise ResumeError(
                f"{self.folder} holds something that isn't a run; choose another --output"
            )

    @contextmanager
    def locked(
        self,
        output: Path | None = None,
        *,
        inputs: Iterable[str | Path] = (),
        check: Callable[[Path], object] | None = None,
    ) -> Iterator[None]:
        """Hold the run for this process alone, and remove what a crash left unfinished.

        Args:
            output: the folder to hold, where more than the run is written; by default the run's.
            inputs: what is read, as in `open_output`.
            check: refuses the folder, as there; by default one that holds something else.
        """
        with open_output(
            output or self.folder,
            "training in",
            inputs=inputs,
            check=check or self.refuse_strangers,
            is_workplace=True,
        ):
            for name in (CHECKPOINTS, DUMPS):
                remove_litter(self.folder / name)
            yield

    def read_record(self) -> RunRecord | None:
        """What the run was begun with; None for a new run."""
        path = self.folder / RECORD_FILE
        if not path.exists():
            return None
        try:
            return RunRecord.model_validate(read_checksummed_json(path))
        except ValidationError as error:
            raise DamagedFileError(
                f"{path} isn't the record of a run: {describe_validation(error)}"
            ) from None

    def write_record(self, record: RunRecord) -> None:
        """Note what the run is begun with."""
        make_folder(self.folder)
        write_checksummed_json(self.folder / RECORD_FILE, record.model_dump(mode="json"))

    def newest_checkpoint(self) -> Path | None:
        """The newest checkpoint, verified; None where there is none."""
        checkpoints = list_checkpoints(self.folder)
        if not checkpoints:
            return None
        try:
            verify_checkpoint(checkpoints[-1])
        except (DamagedFileError, FileNotFoundError) as error:
            is_only = len(checkpoints) == 1
            way = "begin again, for there is no other" if is_only else "go on from the one before"
            raise DamagedFileError(f"{error}; remove {checkpoints[-1]} to {way}") from None
        return checkpoints[-1]

    def newest_state(self) -> RunState:
        """The state in the newest checkpoint, step 0 where there is none; errors as of that."""
        checkpoint = self.newest_checkpoint()
        if checkpoint is None:
            return RunState()
        return RunState.model_validate(read_json(checkpoint / STATE_FILE))

    def describe_stop(self) -> str:
        """What a signal leaves that came before the loop, behind it, or a second time."""
        checkpoints = list_checkpoints(self.folder)
        if not checkpoints:
            return "stopped before the first checkpoint; the same command begins again"
        return f"stopped at once; the same command goes on from {checkpoints[-1]}"

    def load(self, state: RunState, model: nn.Module, optimizer: optim.Optimizer) -> None:
        """Put the optimizer's state of a checkpoint back; the recipe loads the weights."""
        folder = checkpoint_path(self.folder, state.step)
        load_optimizer_tensors(optimizer, model, read_safetensors(folder / OPTIMIZER_FILE))

    def save(
        self, state: RunState, model: nn.Module, optimizer: optim.Optimizer, save_model: SaveFiles
    ) -> Path:
        """Write a checkpoint, whole or not at all.

        Args:
            state: where the run stands.
            model: its parameters name the optimizer's tensors.
            optimizer: its state goes beside the weights.
            save_model: writes the model's own files into a folder, as in `Job`.
        """
        path = checkpoint_path(self.folder, state.step)
        with durable_folder(path) as folder:
            moments = optimizer_tensors(optimizer, model)
            files = {
                **save_model(folder),
                OPTIMIZER_FILE: write_safetensors(folder / OPTIMIZER_FILE, moments),
                STATE_FILE: write_json(folder / STATE_FILE, state.model_dump(mode="json")),
            }
            seal_checkpoint(folder, state.step, files)
        return path

    def rotate(self, keep: int, *also: int | None) -> None:
        """Remove the oldest checkpoints, and what an interrupted one left behind.

        Args:
            keep: how many of the newest stay.
            also: the steps of those that stay however old they are.
        """
        rotate_checkpoints(self.folder, keep, *also)
        remove_litter(self.folder / CHECKPOINTS)


def check_resume(old: RunRecord, new: RunRecord) -> None:
    """Refuse to take up a run with other settings or data, or another source where one was read."""
    differences = _list_changes(old.settings, new.settings)
    differences += [f"model's {change}" for change in _list_changes(old.model, new.model)]
    if old.data_fingerprint != new.data_fingerprint:
        differences.append("data: it is not the data that it was begun with")
    if new.source and old.source != new.source:
        differences.append("source: its files or its commit are not those it was begun from")
    if differences:
        raise ResumeError(
            f"this run was begun with other settings ({'; '.join(differences)});"
            " use those again, or another --output"
        )


def recognize_source(old: RunRecord | None, new: RunRecord, setting: str) -> RunRecord:
    """Know a run's source by its files: its folder may be moved, or its path be spelled otherwise.

    Args:
        old: what the run was begun with; None for a new run.
        new: what it is taken up with.
        setting: the one that names the source.

    Returns:
        `new`, with the source's old name where the new one is a path to the same files.
    """
    if old is None or not old.source:
        return new
    before, now = old.settings.get(setting), new.settings.get(setting)
    if now in {before, None} or not is_same_model(now, old.source["sha256"]):
        return new
    return new.model_copy(update={"settings": {**new.settings, setting: before}})


def _list_changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What differs and may not, as `name: old → new`."""
    names = sorted((old.keys() | new.keys()) - MAY_CHANGE)
    return [
        f"{name}: {old.get(name)!r:.200} → {new.get(name)!r:.200}"  # labels may be thousands
        for name in names
        if old.get(name) != new.get(name)
    ]


def describe_other_machine(old: RunRecord, new: RunRecord) -> str:
    """What keeps a resumed run from being the same bit for bit; empty where nothing does."""
    return ", ".join(_list_changes(old.versions, new.versions))


def take_over(old: RunRecord, new: RunRecord) -> RunRecord:
    """The record of a run that is taken up: it began with the programs and the source of old."""
    if differences := describe_other_machine(old, new):
        announce(f"from here on not bit for bit what one run would be: {differences}")
    return new.model_copy(update={"versions": old.versions, "source": old.source})


def has_same_budget(old: RunRecord, new: RunRecord) -> bool:
    """Whether both name the same budget, so that the number of steps stays."""
    before, after = (
        json.dumps({name: record.settings.get(name) for name in sorted(BUDGET_FIELDS)})
        for record in (old, new)
    )
    return before == after
