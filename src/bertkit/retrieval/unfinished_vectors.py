"""The rows of an unfinished file of vectors, and the record from which the job resumes.

The record is checksummed JSON beside the file. An interrupted job resumes after the rows that it
counts.
"""

import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from pydantic import Field, NonNegativeInt

from bertkit.base import storage
from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.errors import (
    DamagedFileError,
    InputError,
    NonFiniteError,
    ResumeError,
    StorageError,
    pluralize,
    storage_errors,
)
from bertkit.base.files import remove_folder, write_all
from bertkit.base.progress import ProgressBar, announce
from bertkit.data.writers import format_header
from bertkit.retrieval.vector_file import LIMIT_BYTES, Counts, Vectors, VectorsFingerprint

ROWS_SUFFIX, RECORD_SUFFIX = ".unfinished", ".unfinished.json"
SAVE_SECONDS = 5.0
BLOCK_BYTES = 4 << 20
FLOAT = np.dtype("<f4")


class ResumeState(ChecksummedModel):
    """The state from which an unfinished job resumes."""

    description: ClassVar[str] = "a progress record"
    limit_bytes: ClassVar[int] = LIMIT_BYTES

    beginning: VectorsFingerprint  # the fingerprint of the vectors
    num_rows: NonNegativeInt = 0  # so far; those on disk once the record is written
    num_bytes: NonNegativeInt = 0  # input bytes that these rows consumed
    rows_crc32: NonNegativeInt = 0
    counts: Counts = Field(default_factory=dict)  # of their texts


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


def read_record(output: Path) -> ResumeState | None:
    """Read the progress record of an output; None if there is none."""
    path = record_path(output)
    if not path.exists():
        return None
    try:
        return ResumeState.load(path)
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}; start over with --restart") from None


def find_resume_state(output: Path, fingerprint: VectorsFingerprint) -> ResumeState | None:
    """Return the progress of a job with the same fingerprint; None if there are no rows."""
    state = read_record(output)
    if state is None or not state.num_rows:
        return None
    if changes := state.beginning.list_changes(fingerprint):
        raise ResumeError(
            f"{rows_path(output)} was started with other input or settings ({'; '.join(changes)});"
            " use those again, name another --output, or start over with --restart"
        )
    if not rows_path(output).is_file():
        raise DamagedFileError(f"{rows_path(output)} is missing; start over with --restart")
    return state


class UnfinishedVectors:
    """An append-only file of rows that survives interruption of the job."""

    def __init__(self, output: Path, state: ResumeState, dimension: int) -> None:
        self.path, self.dimension, self.state = rows_path(output), dimension, state
        self._output = output
        self._descriptor: int | None = None
        self._saved = state
        self._last_save = time.monotonic()

    @classmethod
    @contextmanager
    def open(
        cls, output: Path, fingerprint: VectorsFingerprint, dimension: int, *, restart: bool
    ) -> Iterator[Self]:
        """Resume the unfinished job for this output, or start one; save the rows on any error.

        If the input is at fault the rows are dropped: a corrected input is another input.
        """
        state = None if restart else find_resume_state(output, fingerprint)
        if state is None:
            remove_unfinished(output)
            state = ResumeState(beginning=fingerprint)
        vectors = cls(output, state, dimension)
        if state.num_rows:
            vectors._verify()
            precision = fingerprint.embedding.get("precision")
            rows = pluralize(state.num_rows, "row")
            announce(f"Resuming {output} after {rows}, in {precision} as it was begun")
        vectors._open_file()
        try:
            yield vectors
        except BaseException as error:
            with suppress(StorageError):  # the last record is valid; raise the first error
                vectors.save()
                vectors.close()
                # The job can't be resumed: the input can't be read again, or must be corrected.
                is_lost = fingerprint.input is None or isinstance(error, InputError)
                if is_lost or not vectors.state.num_rows:
                    remove_unfinished(output)
            raise
        finally:
            vectors.close()

    def append(self, rows: Vectors, num_bytes: int, counts: dict[str, int]) -> None:
        """Append rows, `[num_rows, dimension]`; save every few seconds.

        `num_bytes` is the input that these rows consumed, `counts` the statistics of the texts of
        all rows so far.
        """
        before = self.state
        check_finite(rows, before.num_rows)
        data = np.ascontiguousarray(rows, FLOAT).tobytes()
        with self._advising_to_resume():
            write_all(self._opened(), memoryview(data))
        self.state = before.model_copy(  # in one step: a signal may come between any two lines
            update={
                "num_rows": before.num_rows + len(rows),
                "num_bytes": before.num_bytes + num_bytes,
                "rows_crc32": zlib.crc32(data, before.rows_crc32),
                "counts": counts,
            }
        )
        if time.monotonic() - self._last_save >= SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Sync the rows, then write the record; do nothing if the input can't be read again."""
        if self._descriptor is None or self.state.beginning.input is None:
            return
        if self.state != self._saved:
            with self._advising_to_resume():
                storage.sync(self._descriptor)
                self.state.save(record_path(self._output))
            self._saved = self.state
        self._last_save = time.monotonic()

    def finish(self) -> None:
        """Fill in the header and sync the file, which completes the `.npy` file."""
        self.save()
        with self._advising_to_resume():
            storage.seek(self._opened(), 0)
            write_all(self._opened(), memoryview(self._header()))
            storage.sync(self._opened())
        self.close()

    def become(self, output: Path) -> None:
        """Rename the finished file to the output."""
        with storage_errors(output, "written"):
            storage.rename(self.path, output)
            storage.sync_folder(output.parent)

    def blocks(self, progress: ProgressBar | None = None) -> Iterator[Vectors]:
        """Yield all rows, a few MiB at a time, advancing `progress` by row."""
        num_left, at_once = self.state.num_rows, max(1, BLOCK_BYTES // self._row_bytes)
        with storage_errors(self.path, "read"), self.path.open("rb") as stream:
            stream.seek(len(self._header()))
            while num_left:
                data = stream.read(min(num_left, at_once) * self._row_bytes)
                if not data or len(data) % self._row_bytes:
                    raise DamagedFileError(f"{self.path} ends too early; start over with --restart")
                rows = np.frombuffer(data, FLOAT).reshape(-1, self.dimension)
                yield rows
                num_left -= len(rows)
                if progress is not None:
                    progress.advance(len(rows))

    def close(self) -> None:
        """Close the file; rows that weren't saved may be lost."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):  # saved rows are already synced
                storage.close(descriptor)

    def _open_file(self) -> None:
        header = self._header()
        with self._advising_to_resume():
            self._descriptor = storage.open_within(self.path)
            write_all(self._descriptor, memoryview(header))
            storage.seek(self._descriptor, len(header) + self.state.num_rows * self._row_bytes)

    def _verify(self) -> None:
        crc32 = 0
        for rows in self.blocks():
            crc32 = zlib.crc32(rows.data, crc32)
        if crc32 != self.state.rows_crc32:
            raise DamagedFileError(f"{self.path} was altered; start over with --restart")

    def _header(self) -> bytes:
        return format_header(FLOAT, (self.state.num_rows, self.dimension))

    @contextmanager
    def _advising_to_resume(self) -> Iterator[None]:
        """Add to errors of writing how to resume the job."""
        try:
            with storage_errors(self.path, "written"):
                yield
        except StorageError as error:
            if self.state.beginning.input is None:
                raise
            raise StorageError(f"{error}; fix that, and the same command resumes") from error

    @property
    def _row_bytes(self) -> int:
        return self.dimension * FLOAT.itemsize

    def _opened(self) -> int:
        assert self._descriptor is not None
        return self._descriptor


def check_finite(rows: Vectors, num_before: int) -> None:
    """Raise NonFiniteError if a row has NaN or infinity. `num_before` rows precede, to name it."""
    is_finite = np.isfinite(rows).all(axis=1)
    if not is_finite.all():
        number = num_before + int(np.argmin(is_finite)) + 1
        raise NonFiniteError(
            f"the vector of row {number:,} has NaN or infinity; try --precision fp32, or check the"
            " model with `bertkit inspect`"
        )
