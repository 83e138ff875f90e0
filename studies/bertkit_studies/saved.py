"""The files of a study: its record, and the result or failure of each cell."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.errors import DamagedFileError, ResumeError, storage_errors
from bertkit.base.files import make_folder, remove_folder
from bertkit.base.output import list_names
from bertkit.base.settings import list_differences, list_flag_differences
from bertkit_studies.settings import MAY_CHANGE
from bertkit_studies.study import CELLS_FOLDER, Cell, Decision, Figure, Study

STUDY_FILE, RESULT_FILE, FAILURE_FILE = "study.json", "result.json", "failure.json"
SPENT_FILE = "spent.json"
WEIGHTS = "*.safetensors"
SEED_FOLDER = re.compile(r"seed(0|[1-9][0-9]{0,8})")
# Keys of the versions; runs that differ in one of these aren't comparable.
MACHINE = ("device", "gpu", "precision")
NO_STUDY = "without it the study can't be resumed; restore it, or choose another --output"
NO_CELL = "without it the same command runs the cell again"

Kind = TypeVar("Kind", bound=ChecksummedModel)


class StudyRecord(ChecksummedModel):
    """The settings and data that a study began with.

    Attributes:
        study: its name.
        settings: the settings that affect figures.
        data: the identity of its data.
        values: the values of its one-time decision.
        seconds: estimated seconds of a cell of each arm.
        versions: versions of software and machine.
    """

    description: ClassVar[str] = "a record of a study"

    format_version: Literal[1] = 1
    study: str
    settings: dict[str, Any]
    data: str
    values: dict[str, int | float | str] = Field(default_factory=dict)
    seconds: dict[str, float] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)

    @property
    def decision(self) -> Decision:
        """The one-time decision of the study."""
        return Decision(self.values, self.seconds)


class SavedFigure(BaseModel):
    """A figure of a cell; its value is null if undefined."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    measure: str
    value: float | None
    at: float | None = None


class CellResult(ChecksummedModel):
    """The result of a cell; writing it marks the cell as finished.

    Attributes:
        arm: the cell's arm.
        seed: the cell's seed.
        seconds: seconds over all calls, except calls that were killed.
        figures: the measured figures.
        versions: versions of software and machine when it finished.
    """

    description: ClassVar[str] = "a record of a study"

    format_version: Literal[1] = 1
    arm: str
    seed: int
    seconds: float
    figures: tuple[SavedFigure, ...]
    versions: dict[str, str] = Field(default_factory=dict)

    def list_figures(self) -> list[Figure]:
        """Return the figures."""
        return [
            Figure(each.measure, math.nan if each.value is None else each.value, each.at)
            for each in self.figures
        ]


class CellFailure(ChecksummedModel):
    """The error of a cell's last attempt."""

    description: ClassVar[str] = "a record of a study"

    format_version: Literal[1] = 1
    error: str
    message: str


class CellTime(ChecksummedModel):
    """The seconds spent so far on an unfinished cell."""

    description: ClassVar[str] = "a record of a study"

    format_version: Literal[1] = 1
    seconds: float


def describe_study(study: Study[Any]) -> StudyRecord:
    """Return the record of a study before its one-time decision."""
    settings = study.settings
    free = MAY_CHANGE | settings.places
    return StudyRecord(
        study=study.name,
        settings=settings.model_dump(mode="json", exclude=set(free)),
        data=study.identify_data(),
    )


def read_same(wanted: StudyRecord, folder: Path) -> StudyRecord | None:
    """Read the record of the study in a folder; None if the folder is new or empty.

    Args:
        wanted: the record that it must match.
        folder: the study's folder.
    """
    found = _read_study(folder)
    if found is not None:
        _check_same(found, wanted)
    return found


def _read_study(folder: Path) -> StudyRecord | None:
    """Read the record in a folder without comparing it."""
    with storage_errors(folder, "read"):
        if folder.exists() and not folder.is_dir():
            raise ResumeError(f"{folder} is a file; name a folder for the study by --output")
    names = list_names(folder)
    if STUDY_FILE in names:
        return _read(folder / STUDY_FILE, StudyRecord, NO_STUDY)
    if CELLS_FOLDER in names:
        raise ResumeError(
            f"{folder} holds runs of a study, but no {STUDY_FILE}, which has their settings;"
            f" {NO_STUDY}"
        )
    if names:
        raise ResumeError(
            f"{folder} holds something that `bertkit study` didn't write; choose another --output"
        )
    return None


def _check_same(old: StudyRecord, new: StudyRecord) -> None:
    """Reject resuming with another study, other settings or other data."""
    differences = [] if old.study == new.study else [f"study: {old.study} → {new.study}"]
    if not differences:
        differences = list_flag_differences(old.settings, new.settings)
        if old.data != new.data:
            differences.append("data: different data")
    if differences:
        raise ResumeError(
            f"this study was started with other settings ({'; '.join(differences)}); use the same"
            f" again, or"
            " another --output"
        )


def check_machine(record: StudyRecord, versions: Mapping[str, str]) -> None:
    """Reject running cells on another machine than the study began on."""
    differences = list_differences(record.versions, versions, MACHINE)
    if differences:
        raise ResumeError(
            f"this study was started on another machine ({'; '.join(differences)}), and figures"
            f" of both can't be compared; resume there, or choose another --output"
        )


def write_study(folder: Path, record: StudyRecord) -> None:
    """Write the study's record."""
    record.save(folder / STUDY_FILE)


def write_result(
    folder: Path,
    cell: Cell,
    figures: list[Figure],
    seconds: float,
    versions: Mapping[str, str],
) -> None:
    """Write a cell's result, and remove the weights in its folder, which aren't needed any more.

    Args:
        folder: the study's folder.
        cell: the finished cell.
        figures: the measured figures.
        seconds: seconds that it took.
        versions: versions of software and machine.
    """
    place = folder / cell.place
    result = CellResult(
        arm=cell.arm,
        seed=cell.seed,
        seconds=seconds,
        figures=tuple(
            SavedFigure(
                measure=each.measure,
                value=each.value if math.isfinite(each.value) else None,
                at=each.at,
            )
            for each in figures
        ),
        versions=dict(versions),
    )
    make_folder(place)
    result.save(place / RESULT_FILE)
    for name in (FAILURE_FILE, SPENT_FILE):
        remove_folder(place / name)
    for path in sorted(place.rglob(WEIGHTS)):
        remove_folder(path)


def clear_remains(folder: Path, cell: Cell) -> None:
    """Empty an unfinished cell's folder if it holds no weights to resume from.

    That happens when a result was removed: fine-tuning runs remain without their weights. The
    records of failure and time spent stay until the cell is finished.
    """
    place = folder / cell.place
    if place.is_dir() and not any(place.rglob(WEIGHTS)):
        for path in sorted(place.iterdir()):
            if path.name not in (FAILURE_FILE, SPENT_FILE):
                remove_folder(path)


def write_failure(folder: Path, cell: Cell, error: Exception) -> str:
    """Write why a cell failed, and return the reason."""
    place = folder / cell.place
    message = str(error) or "out of memory"  # a MemoryError has no message
    failure = CellFailure(error=type(error).__name__, message=message)
    make_folder(place)
    failure.save(place / FAILURE_FILE)
    return message


def write_spent(folder: Path, cell: Cell, seconds: float) -> None:
    """Write the seconds that all calls spent on an unfinished cell."""
    place = folder / cell.place
    make_folder(place)
    CellTime(seconds=seconds).save(place / SPENT_FILE)


def read_spent(folder: Path, cell: Cell) -> float:
    """Return the seconds that earlier calls spent on an unfinished cell; 0 if none."""
    path = folder / cell.place / SPENT_FILE
    return _read(path, CellTime, NO_CELL).seconds if path.exists() else 0.0


def read_result(folder: Path, cell: Cell) -> CellResult | None:
    """Read the result of a cell; None if it isn't finished."""
    path = folder / cell.place / RESULT_FILE
    return _read(path, CellResult, NO_CELL) if path.exists() else None


def read_failure(folder: Path, cell: Cell) -> CellFailure | None:
    """Read the failure of a cell; None if it didn't fail."""
    path = folder / cell.place / FAILURE_FILE
    return _read(path, CellFailure, NO_CELL) if path.exists() else None


def list_tried(folder: Path) -> set[Cell]:
    """Return all finished or failed cells, regardless of the arms and seeds requested now."""
    records = [
        path
        for name in (RESULT_FILE, FAILURE_FILE)
        for path in folder.glob(f"{CELLS_FOLDER}/*/*/{name}")
    ]
    return {
        Cell(path.parent.parent.name, int(found[1]))
        for path in records
        if (found := SEED_FOLDER.fullmatch(path.parent.name))
    }


def _read(path: Path, kind: type[Kind], loss: str) -> Kind:
    """Read a record; `loss` is the consequence of a missing file, for the message."""
    try:
        return kind.load(path)
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}; {loss}") from None
