"""A run on disk: its record, and its checkpoints."""

import os
import platform
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from torch import nn, optim

from bertkit._version import __version__
from bertkit.base.errors import DamagedFileError, storage_errors
from bertkit.base.files import durable_folder, make_folder, remove_litter
from bertkit.base.json_files import read_json, write_json
from bertkit.base.output import list_names
from bertkit.checkpoints.run_folder import (
    CHECKPOINTS,
    OPTIMIZER_FILE,
    checkpoint_path,
    list_checkpoints,
    rotate_checkpoints,
    seal_checkpoint,
    verify_checkpoint,
)
from bertkit.checkpoints.safetensors_file import write_safetensors
from bertkit.checkpoints.torch_tensors import lazy_tensors, read_safetensors
from bertkit.training.job import SaveFiles
from bertkit.training.optimizer import load_optimizer_tensors, optimizer_tensors
from bertkit.training.ranks import current_ranks
from bertkit.training.record import (
    LOG_FILE,
    RECORD_FILE,
    STATE_FILE,
    RunRecord,
    RunState,
    read_record,
)


def describe_versions(device: torch.device, precision: str) -> dict[str, str]:
    """Return the software versions and machine properties that exact results depend on."""
    versions = {
        "bertkit": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": str(torch.get_num_threads()),
        "device": device.type,
        "precision": precision,
        "processor": platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": str(os.cpu_count()),
    }
    if device.type == "cuda":
        versions["gpu"] = torch.cuda.get_device_name(device)
        versions["cuda"] = str(torch.version.cuda)
    if (count := current_ranks().count) > 1:
        versions["ranks"] = str(count)
    return versions


@dataclass(frozen=True)
class Run:
    """A run's folder."""

    folder: Path

    @classmethod
    def of(cls, checkpoint: Path) -> Self:
        """Return the run that has a checkpoint."""
        return cls(checkpoint.parents[1])

    @property
    def log_path(self) -> Path:
        """The JSONL log."""
        return self.folder / LOG_FILE

    @property
    def is_new(self) -> bool:
        """Whether the folder has no record of a run."""
        return not (self.folder / RECORD_FILE).exists()

    @property
    def is_foreign(self) -> bool:
        """Whether the folder holds something that isn't a run."""
        with storage_errors(self.folder, "read"):
            if not self.is_new or not self.folder.exists():
                return False
            if not self.folder.is_dir():
                return True
        return bool(list_names(self.folder))

    def read_record(self) -> RunRecord | None:
        """Read the run's record; None for a new run."""
        return read_record(self.folder)

    def write_record(self, record: RunRecord) -> RunRecord:
        """Write the run's record, before its first step, and return it.

        All ranks call this once they have read what was there before, and get the first one's.
        """
        ranks = current_ranks()
        ranks.wait()
        if ranks.is_first:
            make_folder(self.folder)
            record.save(self.folder / RECORD_FILE)
        return ranks.from_first(lambda: record)

    def read_plans(self) -> dict[int, int]:
        """Read the plans of the run's record."""
        record = self.read_record()
        return {} if record is None else dict(record.plans)

    def write_plans(self, plans: Mapping[int, int], evaluation_plans: Set[int]) -> None:
        """Write the plans into the run's record; the first rank calls this."""
        record = self.read_record()
        assert record is not None, "a run that trains was begun"
        changes = {"plans": dict(plans), "evaluation_plans": sorted(evaluation_plans)}
        record.model_copy(update=changes).save(self.folder / RECORD_FILE)

    def newest_checkpoint(self) -> Path | None:
        """The newest checkpoint, verified; None where there is none."""
        checkpoints = list_checkpoints(self.folder)
        if not checkpoints:
            return None
        try:
            verify_checkpoint(checkpoints[-1])
        except (DamagedFileError, FileNotFoundError) as error:
            way = "resume from the previous one"
            if len(checkpoints) == 1:
                way = "start again, because it is the only one"
            raise DamagedFileError(f"{error}; remove {checkpoints[-1]} to {way}") from None
        return checkpoints[-1]

    def newest_state(self) -> RunState:
        """The state of the newest checkpoint, or of step 0 if there is none."""
        return self.read_state(self.newest_checkpoint())

    def read_state(self, checkpoint: Path | None) -> RunState:
        """Read the state of a checkpoint; that of step 0 without one."""
        if checkpoint is None:
            return RunState()
        return RunState.model_validate(read_json(checkpoint / STATE_FILE))

    def describe_stop(self) -> str:
        """Describe what is saved after a signal outside the loop, or a second one."""
        checkpoints = list_checkpoints(self.folder)
        if not checkpoints:
            return "stopped before the first checkpoint; the same command starts again"
        return f"stopped at once; the same command resumes from {checkpoints[-1]}"

    def load(self, state: RunState, model: nn.Module, optimizer: optim.Optimizer) -> None:
        """Load the optimizer's state from a checkpoint; the recipe loads the weights."""
        folder = checkpoint_path(self.folder, state.step)
        load_optimizer_tensors(optimizer, model, read_safetensors(folder / OPTIMIZER_FILE))

    def save(
        self, state: RunState, model: nn.Module, optimizer: optim.Optimizer, save_model: SaveFiles
    ) -> Path:
        """Write a checkpoint, whole or not at all; all ranks call this and the first one writes."""
        path = checkpoint_path(self.folder, state.step)
        moments = optimizer_tensors(optimizer, model)
        if not current_ranks().is_first:
            return path
        with durable_folder(path) as folder:
            files = {
                **save_model(folder),
                OPTIMIZER_FILE: write_safetensors(folder / OPTIMIZER_FILE, lazy_tensors(moments)),
                STATE_FILE: write_json(folder / STATE_FILE, state.model_dump(mode="json")),
            }
            seal_checkpoint(folder, state.step, files)
        return path

    def rotate(self, keep: int, *also: int | None) -> None:
        """Remove old and unfinished checkpoints, in the first rank.

        The `keep` newest and those of the steps in `also` stay.
        """
        if not current_ranks().is_first:
            return
        rotate_checkpoints(self.folder, keep, *also)
        remove_litter(self.folder / CHECKPOINTS)
