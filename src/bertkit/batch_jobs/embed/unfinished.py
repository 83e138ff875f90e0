"""Unfinished vectors: the rows so far, and a checksummed record of how many are on disk.

The rows are in a `.npy` file beside the output; its header is filled in at the end, so finishing a
`.npy` output copies nothing. Every few seconds the file is synced, and then the record is written;
rows after those that the record counts are computed and written again.
"""

import io
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from bertkit.base import storage
from bertkit.base.errors import (
    DamagedFileError,
    InputError,
    NonFiniteError,
    StorageError,
    storage_errors,
)
from bertkit.base.files import write_all
from bertkit.base.progress import ProgressBar, announce
from bertkit.base.wording import pluralize
from bertkit.batch_jobs.embed.manifest import VectorsFingerprint
from bertkit.batch_jobs.embed.progress_record import (
    ResumeState,
    read_reached,
    remove_unfinished,
    rows_path,
    write_record,
)

SAVE_SECONDS = 5.0
BLOCK_BYTES = 4 << 20
FLOAT = np.dtype("<f4")

Vectors = npt.NDArray[np.float32]


class UnfinishedVectors:
    """An append-only file of rows that survives interruption of the job.

    Attributes:
        path: the file of rows.
        dimension: features per row.
        reached: the progress, including rows not yet saved.
    """

    def __init__(self, output: Path, reached: ResumeState, dimension: int) -> None:
        self.path, self.dimension, self.reached = rows_path(output), dimension, reached
        self._output = output
        self._descriptor: int | None = None
        self._saved = reached
        self._last_save = time.monotonic()

    @classmethod
    @contextmanager
    def open(
        cls, output: Path, beginning: VectorsFingerprint, dimension: int, *, restart: bool
    ) -> Iterator[Self]:
        """Resume the unfinished job for this output, or start one; save the rows on any error.

        If the input is at fault the rows are dropped: a corrected input is another input.
        """
        reached = None if restart else read_reached(output, beginning)
        if reached is None:
            remove_unfinished(output)
            reached = ResumeState(beginning=beginning)
        vectors = cls(output, reached, dimension)
        if reached.num_rows:
            vectors._verify()
            announce(f"Going on with {output} after {pluralize(reached.num_rows, 'row')}")
        vectors._begin()
        try:
            yield vectors
        except BaseException as error:
            with suppress(StorageError):  # the last record is valid; raise the first error
                vectors.save()
                vectors.close()
                # The job can't be resumed: the input can't be read again, or must be corrected.
                is_lost = beginning.input is None or isinstance(error, InputError)
                if is_lost or not vectors.reached.num_rows:
                    remove_unfinished(output)
            raise
        finally:
            vectors.close()

    def append(self, rows: Vectors, num_bytes: int, counts: dict[str, int]) -> None:
        """Append rows; save every few seconds.

        Args:
            rows: `[num_rows, dimension]`.
            num_bytes: input bytes that these rows consumed.
            counts: statistics of the texts of all rows so far.
        """
        before = self.reached
        check_finite(rows, before.num_rows)
        data = np.ascontiguousarray(rows, FLOAT).tobytes()
        with self._naming_advice():
            write_all(self._opened(), memoryview(data))
        self.reached = before.model_copy(  # in one step: a signal may come between any two lines
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
        if self._descriptor is None or self.reached.beginning.input is None:
            return
        if self.reached != self._saved:
            with self._naming_advice():
                storage.sync(self._descriptor)
                write_record(self._output, self.reached)
            self._saved = self.reached
        self._last_save = time.monotonic()

    def finish(self) -> None:
        """Fill in the header and sync the file, which completes the `.npy` file."""
        self.save()
        with self._naming_advice():
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
        num_left, at_once = self.reached.num_rows, max(1, BLOCK_BYTES // self._row_bytes)
        with storage_errors(self.path, "read"), self.path.open("rb") as stream:
            stream.seek(len(self._header()))
            while num_left:
                data = stream.read(min(num_left, at_once) * self._row_bytes)
                if not data or len(data) % self._row_bytes:
                    raise DamagedFileError(
                        f"{self.path} ends too early; start again with --restart"
                    )
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

    def _begin(self) -> None:
        header = self._header()
        with self._naming_advice():
            self._descriptor = storage.open_within(self.path)
            write_all(self._descriptor, memoryview(header))
            storage.seek(self._descriptor, len(header) + self.reached.num_rows * self._row_bytes)

    def _verify(self) -> None:
        crc32 = 0
        for rows in self.blocks():
            crc32 = zlib.crc32(rows.data, crc32)
        if crc32 != self.reached.rows_crc32:
            raise DamagedFileError(f"{self.path} was altered; start again with --restart")

    def _header(self) -> bytes:
        """Return the `.npy` header, whose length is the same for any number of rows."""
        buffer = io.BytesIO()
        shape = (self.reached.num_rows, self.dimension)
        np.lib.format.write_array_header_1_0(
            buffer, {"descr": FLOAT.str, "fortran_order": False, "shape": shape}
        )
        return buffer.getvalue()

    @contextmanager
    def _naming_advice(self) -> Iterator[None]:
        """Add to errors of writing how to resume the job."""
        try:
            with storage_errors(self.path, "written"):
                yield
        except StorageError as error:
            if self.reached.beginning.input is None:
                raise
            raise StorageError(f"{error}; mend that, and the same command resumes") from error

    @property
    def _row_bytes(self) -> int:
        return self.dimension * FLOAT.itemsize

    def _opened(self) -> int:
        assert self._descriptor is not None
        return self._descriptor


def check_finite(rows: Vectors, num_before: int) -> None:
    """Raise NonFiniteError if a row has NaN or infinity.

    Args:
        rows: `[num_rows, dimension]`.
        num_before: number of preceding rows, to name the row in the message.
    """
    is_finite = np.isfinite(rows).all(axis=1)
    if not is_finite.all():
        number = num_before + int(np.argmin(is_finite)) + 1
        raise NonFiniteError(
            f"the model gives NaN or infinity for row {number:,}; try --precision fp32, or check"
            f" the model with `bertkit inspect`"
        )
