"""How far unfinished work has come: a checksummed record beside the rows that it counts."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from bertkit.base.checksummed_json import read_checksummed_json, write_checksummed_json
from bertkit.base.errors import DamagedFileError, ResumeError
from bertkit.base.files import remove_folder
from bertkit.base.settings import describe_validation
from bertkit.batch_jobs.embed.manifest import LIMIT_BYTES, Counts, VectorsFingerprint

ROWS_SUFFIX, RECORD_SUFFIX = ".unfinished", ".unfinished.json"


class ResumeState(BaseModel):
    """How far work has come.

    Attributes:
        beginning: what decides the rows.
        num_rows: rows that are safe.
        num_bytes: of the input that they took.
        rows_crc32: CRC-32 of them.
        counts: what their texts were like.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    beginning: VectorsFingerprint
    num_rows: NonNegativeInt = 0
    num_bytes: NonNegativeInt = 0
    rows_crc32: NonNegativeInt = 0
    counts: Counts = Field(default_factory=dict)


def rows_path(output: Path) -> Path:
    """Where the rows of an unfinished output are."""
    return output.with_name(output.name + ROWS_SUFFIX)


def record_path(output: Path) -> Path:
    """Where the record of an unfinished output is."""
    return output.with_name(output.name + RECORD_SUFFIX)


def remove_unfinished(output: Path) -> None:
    """Remove what is left of unfinished work, the record first: without it there are no rows."""
    remove_folder(record_path(output))
    remove_folder(rows_path(output))


def write_record(output: Path, reached: ResumeState) -> None:
    """Write how far the work for an output has come; its rows must be safe."""
    write_checksummed_json(record_path(output), reached.model_dump(mode="json"))


def read_record(output: Path) -> ResumeState | None:
    """How far unfinished work has come; None where there is none."""
    path = record_path(output)
    if not path.exists():
        return None
    try:
        return ResumeState.model_validate(read_checksummed_json(path, limit_bytes=LIMIT_BYTES))
    except (ValidationError, DamagedFileError) as error:
        problem = describe_validation(error) if isinstance(error, ValidationError) else str(error)
        raise DamagedFileError(
            f"{path} isn't the record of unfinished work ({problem}); begin anew with --restart"
        ) from None


def read_reached(output: Path, beginning: VectorsFingerprint) -> ResumeState | None:
    """How far work of this very beginning has come."""
    reached = read_record(output)
    if reached is None or not reached.num_rows:
        return None
    if changes := reached.beginning.list_changes(beginning):
        raise ResumeError(
            f"{rows_path(output)} was begun with something else ({'; '.join(changes)}); use that"
            " again, name another --output, or begin anew with --restart"
        )
    if not rows_path(output).is_file():
        raise DamagedFileError(f"{rows_path(output)} is missing; begin anew with --restart")
    return reached
