"""What a study leaves on the disk: how it was begun, and what came of each cell."""

import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from bertkit.base.checksummed_json import read_checksummed_json, write_checksummed_json
from bertkit.base.errors import DamagedFileError, ResumeError, storage_errors
from bertkit.base.files import make_folder, remove_folder
from bertkit.base.output import list_names
from bertkit.base.settings import describe_validation
from bertkit.studies.settings import MAY_CHANGE
from bertkit.studies.study import CELLS_FOLDER, Cell, Decision, Figure, Study

STUDY_FILE, RESULT_FILE, FAILURE_FILE = "study.json", "result.json", "failure.json"
SPENT_FILE = "spent.json"
WEIGHTS = "*.safetensors"
SEED_FOLDER = re.compile(r"seed(0|[1-9][0-9]{0,8})")
# Of the versions: figures of runs that differ in one of these don't belong side by side.
MACHINE = ("device", "gpu", "precision")
NO_STUDY = "without it the study can't be taken up; restore it, or choose another --output"
NO_CELL = "without it the same command makes the cell again"

Kind = TypeVar("Kind", bound=BaseModel)


class StudyRecord(BaseModel):
    """What a study was begun with.

    Attributes:
        study: its name.
        settings: those that decide figures.
        data: what tells its data from any other.
        values: what was decided once.
        seconds: that a cell of each arm was guessed to take.
        versions: of the programs that matter, and the machine.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format_version: Literal[1] = 1
    study: str
    settings: dict[str, Any]
    data: str
    values: dict[str, int | float | str] = {}
    seconds: dict[str, float] = {}
    versions: dict[str, str] = {}

    @property
    def decision(self) -> Decision:
        """What was decided when it was begun."""
        return Decision(self.values, self.seconds)


class SavedFigure(BaseModel):
    """A number of a cell; null where it isn't defined."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    measure: str
    value: float | None
    at: float | None = None


class CellResult(BaseModel):
    """What came of a cell; once this is written, it is done.

    Attributes:
        arm: of the cell.
        seed: of the cell.
        seconds: that it took, in all calls together, but for those that were killed.
        figures: what was measured.
        versions: of the programs that matter, and the machine, when it was done.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format_version: Literal[1] = 1
    arm: str
    seed: int
    seconds: float
    figures: tuple[SavedFigure, ...]
    versions: dict[str, str] = {}

    def list_figures(self) -> list[Figure]:
        """The numbers."""
        return [
            Figure(each.measure, math.nan if each.value is None else each.value, each.at)
            for each in self.figures
        ]


class CellFailure(BaseModel):
    """Why a cell failed the last time that it was tried."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format_version: Literal[1] = 1
    error: str
    message: str


class CellTime(BaseModel):
    """The seconds that were spent on a cell that isn't done."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format_version: Literal[1] = 1
    seconds: float


def describe_study(study: Study[Any]) -> StudyRecord:
    """What decides a study's figures, as far as it is known before it begins."""
    settings = study.settings
    free = MAY_CHANGE | settings.places
    return StudyRecord(
        study=study.name,
        settings=settings.model_dump(mode="json", exclude=set(free)),
        data=study.identify_data(),
    )


def read_same(wanted: StudyRecord, folder: Path) -> StudyRecord | None:
    """How the study in a folder was begun; None where the folder is new or empty.

    Args:
        wanted: what it must have been begun with.
        folder: the study's.
    """
    found = _read_study(folder)
    if found is not None:
        _check_same(found, wanted)
    return found


def _read_study(folder: Path) -> StudyRecord | None:
    """The record in a folder, whatever it says."""
    with storage_errors(folder, "read"):
        if folder.exists() and not folder.is_dir():
            raise ResumeError(f"{folder} is a file; name a folder for the study by --output")
    names = list_names(folder)
    if STUDY_FILE in names:
        return _read(folder / STUDY_FILE, StudyRecord, NO_STUDY)
    if CELLS_FOLDER in names:
        raise ResumeError(
            f"{folder} holds runs of a study, but no {STUDY_FILE}, which says what they were begun"
            f" with; {NO_STUDY}"
        )
    if names:
        raise ResumeError(
            f"{folder} holds something that `bertkit study` didn't begin; choose another --output"
        )
    return None


def _check_same(old: StudyRecord, new: StudyRecord) -> None:
    """Refuse to take up a study with another question, other settings or other data."""
    differences = [] if old.study == new.study else [f"study: {old.study} → {new.study}"]
    if not differences:
        differences = [
            f"{name}: {old.settings.get(name)!r} → {new.settings.get(name)!r}"
            for name in sorted(old.settings.keys() | new.settings.keys())
            if old.settings.get(name) != new.settings.get(name)
        ]
        if old.data != new.data:
            differences.append("data: they are not those that it was begun with")
    if differences:
        raise ResumeError(
            f"this study was begun otherwise ({'; '.join(differences)}); use the same again, or"
            " another --output"
        )


def check_machine(record: StudyRecord, versions: Mapping[str, str]) -> None:
    """Refuse to run cells of a study elsewhere than where it began."""
    differences = list_changes(record.versions, versions, MACHINE)
    if differences:
        raise ResumeError(
            f"this study was begun on another machine ({'; '.join(differences)}), and figures of"
            " both can't be held against each other; go on there, or choose another --output"
        )


def list_changes(
    old: Mapping[str, str], new: Mapping[str, str], names: Collection[str]
) -> list[str]:
    """Which versions differ, as `name: old → new`."""
    return [
        f"{name}: {old.get(name)} → {new.get(name)}"
        for name in names
        if old.get(name) != new.get(name)
    ]


def write_study(folder: Path, record: StudyRecord) -> None:
    """Note how the study begins."""
    write_checksummed_json(folder / STUDY_FILE, record.model_dump(mode="json"))


def write_result(
    folder: Path,
    cell: Cell,
    figures: list[Figure],
    seconds: float,
    versions: Mapping[str, str],
) -> None:
    """Note that a cell is done, and remove the weights in its folder, which nobody reads again.

    Args:
        folder: of the study.
        cell: which.
        figures: what was measured.
        seconds: that it took.
        versions: of the programs that matter, and the machine.
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
    write_checksummed_json(place / RESULT_FILE, result.model_dump(mode="json"))
    for name in (FAILURE_FILE, SPENT_FILE):
        remove_folder(place / name)
    for path in sorted(place.rglob(WEIGHTS)):
        remove_folder(path)


def clear_remains(folder: Path, cell: Cell) -> None:
    """Empty the folder of a cell that isn't done, where it holds no weights to go on from.

    Such is one whose result was removed: its fine-tunings are there, but not what they came to. Why
    it failed and what time was spent on it stay, until it is done.
    """
    place = folder / cell.place
    if place.is_dir() and not any(place.rglob(WEIGHTS)):
        for path in sorted(place.iterdir()):
            if path.name not in (FAILURE_FILE, SPENT_FILE):
                remove_folder(path)


def write_failure(folder: Path, cell: Cell, error: Exception) -> str:
    """Note why a cell failed, and tell it."""
    place = folder / cell.place
    message = str(error) or "there is too little memory"  # of which Python says nothing
    failure = CellFailure(error=type(error).__name__, message=message)
    make_folder(place)
    write_checksummed_json(place / FAILURE_FILE, failure.model_dump(mode="json"))
    return message


def write_spent(folder: Path, cell: Cell, seconds: float) -> None:
    """Note what time was spent on a cell that isn't done, in all calls together."""
    place = folder / cell.place
    make_folder(place)
    write_checksummed_json(place / SPENT_FILE, CellTime(seconds=seconds).model_dump(mode="json"))


def read_spent(folder: Path, cell: Cell) -> float:
    """Seconds that earlier calls spent on a cell that isn't done; 0 where there were none."""
    path = folder / cell.place / SPENT_FILE
    return _read(path, CellTime, NO_CELL).seconds if path.exists() else 0.0


def read_result(folder: Path, cell: Cell) -> CellResult | None:
    """What came of a cell; None where it isn't done."""
    path = folder / cell.place / RESULT_FILE
    return _read(path, CellResult, NO_CELL) if path.exists() else None


def read_failure(folder: Path, cell: Cell) -> CellFailure | None:
    """Why a cell failed; None where it didn't."""
    path = folder / cell.place / FAILURE_FILE
    return _read(path, CellFailure, NO_CELL) if path.exists() else None


def list_tried(folder: Path) -> set[Cell]:
    """Cells that are done or failed, whatever arms and seeds are asked for now."""
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
    """A record; `loss` says what comes of it where it isn't there."""
    try:
        return kind.model_validate(read_checksummed_json(path))
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}; {loss}") from None
    except ValidationError as error:
        problem = describe_validation(error)
        raise DamagedFileError(f"{path} isn't a record of a study: {problem}; {loss}") from None
