"""The progress of an unfinished job: a checksummed record beside its rows."""

from pathlib import Path
from typing import ClassVar

from pydantic import Field, NonNegativeInt

from bertkit.base.checksummed_model import ChecksummedModel
from bertkit.base.errors import DamagedFileError, ResumeError
from bertkit.base.files import remove_folder
from bertkit.batch_jobs.embed.manifest import LIMIT_BYTES, Counts, VectorsFingerprint

ROWS_SUFFIX, RECORD_SUFFIX = ".unfinished", ".unfinished.json"


class ResumeState(ChecksummedModel):
    """The state from which an unfinished job resumes.

    Attributes:
        beginning: the fingerprint of the vectors.
        num_rows: rows computed so far; those on disk once the record is written.
        num_bytes: input bytes that these rows consumed.
        rows_crc32: CRC-32 of these rows.
        counts: statistics of their texts.
    """

    description: ClassVar[str] = "the record of unfinished work"
    limit_bytes: ClassVar[int] = LIMIT_BYTES

    beginning: VectorsFingerprint
    num_rows: NonNegativeInt = 0
    num_bytes: NonNegativeInt = 0
    rows_crc32: NonNegativeInt = 0
    counts: Counts = Field(default_factory=dict)


def rows_path(output: Path) -> Path:
    """Return the path of the rows of an unfinished output."""
    return output.with_name(output.name + ROWS_SUFFIX)


def record_path(output: Path) -> Path:
    """Return the path of the progress record of an unfinished output."""
    return output.with_name(output.name + RECORD_SUFFIX)


def remove_unfinished(output: Path) -> None:
    """Remove the files of an unfinished job, the record first: rows count only with a record."""
    remove_folder(record_path(output))
    remove_folder(rows_path(output))


def write_record(output: Path, reached: ResumeState) -> None:
    """Write the progress record of an output; its rows must already be synced to disk."""
    reached.save(record_path(output))


def read_record(output: Path) -> ResumeState | None:
    """Read the progress record of an output; None if there is none."""
    path = record_path(output)
    if not path.exists():
        return None
    try:
        return ResumeState.load(path)
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}; start again with --restart") from None


def read_reached(output: Path, beginning: VectorsFingerprint) -> ResumeState | None:
    """Return the progress of a job with the same fingerprint; None if there are no rows."""
    reached = read_record(output)
    if reached is None or not reached.num_rows:
        return None
    if changes := reached.beginning.list_changes(beginning):
        raise ResumeError(
            f"{rows_path(output)} was started with something else ({'; '.join(changes)}); use that"
            " again, name another --output, or start again with --restart"
        )
    if not rows_path(output).is_file():
        raise DamagedFileError(f"{rows_path(output)} is missing; start again with --restart")
    return reached
