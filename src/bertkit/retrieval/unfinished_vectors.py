"""The rows of an unfinished file of vectors, how a job resumes, and what they become.

The record of a job is checksummed JSON beside the file. An interrupted job resumes after the rows
that it counts.
"""

import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain, islice, starmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, ClassVar, Self

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
from bertkit.base.files import DurableFile, remove_folder, write_all
from bertkit.base.progress import ProgressBar, announce
from bertkit.data.tables.texts import TextRow
from bertkit.data.writers import build_schema, format_header, write_tables
from bertkit.retrieval.vector_file import LIMIT_BYTES, Counts, Identity, Vectors, VectorsFingerprint

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_SUFFIX, RECORD_SUFFIX = ".unfinished", ".unfinished.json"
SAVE_SECONDS = 5.0
BLOCK_BYTES = 4 << 20
FLOAT = np.dtype("<f4")
CLOSED = -1  # in place of a file descriptor
Ids = Sequence[str] | None
Block = tuple[int, Vectors, Ids]  # the number of its first row, from 0
Writer = Callable[[DurableFile, Iterable[Block], int, Identity], None]


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
        raise DamagedFileError(f"{error}; start over with --overwrite") from None


def find_resume_state(
    output: Path, fingerprint: VectorsFingerprint, dimension: int
) -> ResumeState | None:
    """Return the progress of a job with the same fingerprint; None if there are no rows.

    Raises:
        ResumeError: the fingerprint is another one.
        DamagedFileError: the rows or the record were altered.
    """
    state, path = read_record(output), rows_path(output)
    if state is None or not state.num_rows:
        return None
    if changes := state.beginning.list_changes(fingerprint):
        raise ResumeError(
            f"{path} was started with other input or settings ({'; '.join(changes)}); use those"
            " again, name another --output, or start over with --overwrite"
        )
    if not path.is_file():
        raise DamagedFileError(f"{path} is missing; start over with --overwrite")
    crc32 = 0
    start = len(format_header(FLOAT, (state.num_rows, dimension)))
    for rows in read_rows(path, start, state.num_rows, dimension):
        crc32 = zlib.crc32(rows.data, crc32)
    if crc32 != state.rows_crc32:
        raise DamagedFileError(f"{path} was altered; start over with --overwrite")
    return state


def read_rows(path: Path, start: int, num_rows: int, dimension: int) -> Iterator[Vectors]:
    """Yield the rows of an unfinished file from a byte on, a few MiB at a time."""
    row_bytes = dimension * FLOAT.itemsize
    with storage_errors(path, "read"), path.open("rb") as stream:
        stream.seek(start)
        while num_rows:
            data = stream.read(min(num_rows, max(1, BLOCK_BYTES // row_bytes)) * row_bytes)
            if not data or len(data) % row_bytes:
                raise DamagedFileError(f"{path} ends too early; start over with --overwrite")
            rows = np.frombuffer(data, FLOAT).reshape(-1, dimension)
            yield rows
            num_rows -= len(rows)


class UnfinishedVectors:
    """An append-only file of rows that survives interruption of the job.

    Ids of rows are kept in a file without a name until the end: a job that resumes reads the rows
    again from the first.
    """

    def __init__(self, output: Path, state: ResumeState, dimension: int) -> None:
        self.path, self.dimension, self.state = rows_path(output), dimension, state
        self._output = output
        self._start = len(self._header())
        self._descriptor = CLOSED
        self._ids: IO[bytes] | None = None
        self._saved = state
        self._last_save = time.monotonic()

    @classmethod
    @contextmanager
    def open(
        cls,
        output: Path,
        fingerprint: VectorsFingerprint,
        dimension: int,
        *,
        has_ids: bool = False,
        overwrite: bool = False,
    ) -> Iterator[Self]:
        """Resume the unfinished job for this output, or start one; save the rows on any error.

        With `overwrite`, one of other input or settings, or with damaged rows, is dropped instead
        of an error. If the input is at fault the rows are dropped: a corrected input is another
        input.
        """
        state = None
        with suppress(ResumeError, DamagedFileError) if overwrite else nullcontext():
            state = find_resume_state(output, fingerprint, dimension)
        if state is None:
            remove_unfinished(output)
            state = ResumeState(beginning=fingerprint)
        else:
            rows = pluralize(state.num_rows, "row")
            precision = fingerprint.embedding.get("precision")
            announce(f"Resuming {output} after {rows}, in {precision} as it was begun")
        vectors = cls(output, state, dimension)
        try:
            with vectors._advising_to_resume():
                vectors._descriptor = storage.open_within(vectors.path)
                write_all(vectors._descriptor, memoryview(vectors._header()))
                num_bytes = state.num_rows * dimension * FLOAT.itemsize
                storage.seek(vectors._descriptor, vectors._start + num_bytes)
                if has_ids:
                    vectors._ids = TemporaryFile(dir=output.parent)  # noqa: SIM115, closed below
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
            if vectors._ids is not None:
                with suppress(OSError):
                    vectors._ids.close()

    def skip(self, rows: Iterator[TextRow]) -> int:
        """Skip the texts whose vectors are there, but for their ids; return their number."""
        num_skipped = 0
        with self._advising_to_resume():
            for row in islice(rows, self.state.num_rows):
                self._keep_ids([row])
                num_skipped += 1
        return num_skipped

    def append(self, vectors: Vectors, rows: Sequence[TextRow], counts: dict[str, int]) -> int:
        """Append vectors, `[num_rows, dimension]`, of rows; save every few seconds.

        `counts` has the statistics of the texts of all rows so far. Returns the input bytes of
        these rows.
        """
        before = self.state
        check_finite(vectors, before.num_rows)
        data = np.ascontiguousarray(vectors, FLOAT).tobytes()
        num_bytes = sum(row.num_bytes for row in rows)
        with self._advising_to_resume():
            write_all(self._descriptor, memoryview(data))
            self._keep_ids(rows)
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
        return num_bytes

    def save(self) -> None:
        """Sync the rows, then write the record; do nothing if the input can't be read again."""
        if self._descriptor == CLOSED or self.state.beginning.input is None:
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
            storage.seek(self._descriptor, 0)
            write_all(self._descriptor, memoryview(self._header()))
            storage.sync(self._descriptor)
        self.close()

    def blocks(self, progress: ProgressBar) -> Iterator[Block]:
        """Yield all rows with their ids, a few MiB at a time, advancing `progress` by row."""
        first = 0
        if self._ids is not None:
            with self._advising_to_resume():
                self._ids.seek(0)
        for rows in read_rows(self.path, self._start, self.state.num_rows, self.dimension):
            ids = None if self._ids is None else [*map(json.loads, islice(self._ids, len(rows)))]
            yield first, rows, ids
            first += len(rows)
            progress.advance(len(rows))

    def close(self) -> None:
        """Close the file; rows that weren't saved may be lost."""
        descriptor, self._descriptor = self._descriptor, CLOSED
        if descriptor != CLOSED:
            with suppress(OSError):  # saved rows are already synced
                storage.close(descriptor)

    def _keep_ids(self, rows: Iterable[TextRow]) -> None:
        if self._ids is not None:
            self._ids.writelines(f"{json.dumps(row.id)}\n".encode() for row in rows)

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


def check_finite(rows: Vectors, num_before: int) -> None:
    """Raise NonFiniteError if a row has NaN or infinity. `num_before` rows precede, to name it."""
    is_finite = np.isfinite(rows).all(axis=1)
    if not is_finite.all():
        number = num_before + int(np.argmin(is_finite)) + 1
        raise NonFiniteError(
            f"the vector of row {number:,} has NaN or infinity; try --precision fp32, or check the"
            " model with `bertkit inspect`"
        )


def write_jsonl(file: DurableFile, blocks: Iterable[Block], _: int, __: Identity) -> None:
    """Write one line per row: `{"row": 0, "embedding": [0.1, …]}`, with its id if it has one."""
    for first, rows, ids in blocks:
        for line in format_rows(rows, first, ids):
            file.write(f"{line}\n".encode())


def format_rows(rows: Vectors, first_row: int, ids: Ids = None) -> Iterator[str]:
    """Yield JSONL lines without newlines; numbers in their shortest float32 round-trip form."""
    for index, row in enumerate(rows):
        named = "" if ids is None else f', "id": {json.dumps(ids[index], ensure_ascii=False)}'
        values = ", ".join(row.astype(str).tolist())
        yield f'{{"row": {first_row + index}{named}, "embedding": [{values}]}}'


def write_parquet(
    file: DurableFile, blocks: Iterable[Block], dimension: int, metadata: Identity
) -> None:
    """Write columns `row` (int64), `embedding` (fixed_size_list<float32>) and JSON metadata.

    Rows with ids have a column `id` (string) between these.
    """
    import pyarrow as pa

    kind = pa.list_(pa.float32(), dimension)
    some = list(islice(blocks := iter(blocks), 1))
    types = {"row": pa.int64(), "id": pa.string(), "embedding": kind}
    if not some or some[0][2] is None:
        del types["id"]
    schema = build_schema(
        (pa.field(name, each, nullable=False) for name, each in types.items()), metadata
    )

    def build_table(first: int, rows: Vectors, ids: Ids) -> "pa.Table":
        columns = {
            "row": pa.array(np.arange(first, first + len(rows))),
            "id": ids,
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), type=kind),
        }
        return pa.table({name: columns[name] for name in types}, schema=schema)

    tables = starmap(build_table, chain(some, blocks))
    write_tables(file, schema, tables, compression="none", use_dictionary=False)


# None: the unfinished rows already are a .npy file, which is renamed.
VECTOR_WRITERS: dict[str, Writer | None] = {
    ".npy": None,
    ".parquet": write_parquet,
    ".jsonl": write_jsonl,
}
