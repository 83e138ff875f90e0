"""The folder of a model whose run is finished: its record, and the files that it vouches for."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal, Self, TypeVar

from pydantic import ConfigDict, Field

from bertkit.base.checksummed_model import ChecksummedModel
from bertkit.base.checksums import record_file
from bertkit.base.errors import BertkitError, DamagedFileError, MissingFileError
from bertkit.base.files import remove_folder, remove_litter
from bertkit.base.members import find_member, has_member
from bertkit.base.progress import announce
from bertkit.checkpoints.run_folder import CHECKPOINTS, list_checkpoints
from bertkit.training.run import Run, RunRecord, check_resume

METRICS_FILE = "metrics.json"

MaybeNumber = float | None


class FinishedRecord(ChecksummedModel):
    """What `metrics.json` of every recipe says; a number that isn't defined is null there.

    Attributes:
        warnings: what is odd.
        num_steps: that were trained.
        best_step: the best single one.
        has_ended_early: whether nothing had become better for long enough.
        files: SHA-256 of the model's files, by name.
    """

    description: ClassVar[str] = "the metrics of a finished run"

    format_version: Literal[1] = 1
    warnings: tuple[str, ...]
    num_steps: int
    best_step: int
    has_ended_early: bool
    files: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def read(cls, output: Path) -> Self:
        """The content of a folder's `metrics.json`."""
        return cls.load(output / METRICS_FILE)

    def write(self, output: Path) -> None:
        """Write it; what a run writes last, and what tells that it is finished."""
        self.save(output / METRICS_FILE)

    def check_files(self, output: Path) -> None:
        """Hold the model's files against their checksums."""
        cure = f"restore it, or remove {output / METRICS_FILE} to train again"
        for name, sha256 in self.files.items():
            if not (output / name).exists():
                raise MissingFileError(f"{output / name} is missing; {cure}")
            if record_file(find_member(output, name)).sha256 != sha256:
                raise DamagedFileError(f"{output / name} isn't what was written; {cure}")


class SavedMetrics(FinishedRecord):
    """The metrics in `metrics.json` of any recipe, without the rest of it.

    Attributes:
        metrics: of the held-out examples.
    """

    model_config = ConfigDict(extra="ignore")

    metrics: dict[str, MaybeNumber]


SavedRecord = TypeVar("SavedRecord", bound=FinishedRecord)


def read_finished(run: Run, wanted: RunRecord, kind: type[SavedRecord]) -> SavedRecord | None:
    """Return what a finished run saved; None if something is left to do.

    Args:
        run: the run, in a folder of the model's.
        wanted: the run's record as it would be now; the sizes of the model may be unknown.
        kind: the class of its `metrics.json`.

    Raises:
        ResumeError: the run has other settings or data.
        MissingFileError, DamagedFileError: a file of the model is missing or was changed.
    """
    record = run.read_record()
    if record is None:
        return None
    check_resume(record, wanted.model_copy(update={"model": record.model}))
    output = run.folder.parent
    if not (output / METRICS_FILE).exists():
        return None
    saved = kind.read(output)
    saved.check_files(output)
    if not wanted.settings.get("keep_checkpoints"):
        drop_left_checkpoints(run)
    announce(f"{output} is already finished; nothing is trained")
    return saved


def read_metrics(folder: Path) -> dict[str, float]:
    """Return the held-out metrics of a model's folder; none, if no recipe recorded any there.

    A record that isn't whole, or is another tool's, is announced: the model can be used without.
    """
    if not has_member(folder, METRICS_FILE):
        return {}
    try:
        return undefine(SavedMetrics.load(find_member(folder, METRICS_FILE)).metrics)
    except BertkitError as error:
        announce(f"the model's metrics are left out: {error}")
        return {}


def drop_checkpoints(run: Run) -> None:
    """Remove the checkpoints of a finished run."""
    for path in list_checkpoints(run.folder):
        remove_folder(path)


def drop_left_checkpoints(run: Run) -> None:
    """Remove checkpoints that a killed process left in a finished run, unless they are to stay."""
    record = run.read_record()
    if record is not None and record.settings.get("keep_checkpoints") is False:
        drop_checkpoints(run)
        remove_litter(run.folder / CHECKPOINTS)


def define(values: Mapping[str, float]) -> dict[str, MaybeNumber]:
    """Numbers as JSON takes them: None for one that isn't defined."""
    return {name: define_number(value) for name, value in values.items()}


def define_number(value: float) -> MaybeNumber:
    """A number as JSON takes it: None for one that isn't defined."""
    return float(value) if math.isfinite(value) else None


def undefine(values: Mapping[str, MaybeNumber]) -> dict[str, float]:
    """The numbers that were saved: NaN for None."""
    return {name: undefine_number(value) for name, value in values.items()}


def undefine_number(value: MaybeNumber) -> float:
    """A number that was saved: NaN for None."""
    return math.nan if value is None else value
