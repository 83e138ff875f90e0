"""A file of vectors: its manifest, and the rows and the record of an unfinished one.

Manifest and record are checksummed JSON beside the file. An interrupted job resumes after the rows
that the record counts.
"""

import json
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt

from bertkit.base import storage
from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.checksums import HEAD_BYTES
from bertkit.base.errors import (
    DamagedFileError,
    InputError,
    NonFiniteError,
    ResumeError,
    SettingsError,
    StorageError,
    pluralize,
    storage_errors,
)
from bertkit.base.files import remove_folder, write_all
from bertkit.base.progress import ProgressBar, announce
from bertkit.data.writers import format_header
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.settings import Precision
from bertkit.inference.stream import TextCounts
from bertkit.reports.text import shorten

MANIFEST_SUFFIX, ROWS_SUFFIX, RECORD_SUFFIX = ".json", ".unfinished", ".unfinished.json"
LIMIT_BYTES = 1 << 20
MAX_SHOWN_CHANGES, MAX_SHOWN_CHARS = 3, 60
SAVE_SECONDS = 5.0
BLOCK_BYTES = 4 << 20
FLOAT = np.dtype("<f4")

Vectors = npt.NDArray[np.float32]
AnySettings = TypeVar("AnySettings", bound=EmbedderSettings)


def _check_names(counts: dict[str, int]) -> dict[str, int]:
    unknown = counts.keys() - {field.name for field in fields(TextCounts)}
    if unknown:
        raise ValueError(f"unknown counts: {_show(sorted(unknown))}")
    return counts


Counts = Annotated[dict[str, NonNegativeInt], AfterValidator(_check_names)]


class VectorsFingerprint(BaseModel):
    """Everything that determines the vectors of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    embedding: dict[str, Any]  # everything of the embedder that matters
    input: dict[str, Any] | None  # to notice changes; None if it can't be read again

    def list_changes(self, now: "VectorsFingerprint") -> list[str]:
        """Describe the differences to another one; a model's name only if its files differ.

        The engine, which older versions recorded, makes no difference.
        """
        changes = []
        for name in ("embedding", "input"):
            old, new = (json.loads(json.dumps(getattr(each, name))) or {} for each in (self, now))
            if old.get("model_sha256") == new.get("model_sha256"):
                old.pop("model", None)
                new.pop("model", None)
            if name == "embedding":
                old.pop("engine", None)
                new.pop("engine", None)
            changes += [
                f"{key}: {_show(old.get(key))} → {_show(new.get(key))}"
                for key in sorted(old.keys() | new.keys())
                if old.get(key) != new.get(key)
            ]
        more = len(changes) - MAX_SHOWN_CHANGES
        return changes[:MAX_SHOWN_CHANGES] + ([f"{more} more"] if more > 0 else [])


class VectorsManifest(ChecksummedModel):
    """The manifest of a finished file of vectors."""

    description: ClassVar[str] = "the manifest of a file of vectors"
    limit_bytes: ClassVar[int] = LIMIT_BYTES

    beginning: VectorsFingerprint  # the fingerprint of the vectors
    num_rows: NonNegativeInt  # one per text
    dimension: PositiveInt
    counts: Counts  # by the names of `TextCounts`
    rows_crc32: NonNegativeInt  # of all vectors as little-endian float32, row by row
    size_bytes: NonNegativeInt
    head_crc32: NonNegativeInt  # of the first 4 KiB

    def describes(self, output: Path) -> bool:
        """Whether a file matches the manifest, judged by its size and first 4 KiB."""
        return measure_file(output) == (self.size_bytes, self.head_crc32)


def manifest_path(output: Path) -> Path:
    """Return the path of the manifest of a vectors file."""
    return output.with_name(output.name + MANIFEST_SUFFIX)


def read_manifest(output: Path) -> VectorsManifest | None:
    """Read the manifest of a vectors file; None if there is none."""
    path = manifest_path(output)
    return VectorsManifest.load(path) if path.exists() else None


def find_finished(
    output: Path, fingerprint: VectorsFingerprint, *, restart: bool, overwrite: bool
) -> VectorsManifest | None:
    """Return the manifest of an output that is up to date; None if it must be computed."""
    manifest = None
    with suppress(DamagedFileError) if overwrite else nullcontext():
        manifest = read_manifest(output)
    with storage_errors(output, "read"):
        if not output.exists():
            return None
        if not output.is_file():
            raise SettingsError(f"{output} isn't a file; name another --output")
    if manifest is None or not manifest.describes(output):
        changes = ["it has no matching manifest"]
    else:
        changes = manifest.beginning.list_changes(fingerprint)
        if fingerprint.input is None:
            changes.append("input: standard input or a pipe can't be read again")
    if not changes:
        return None if restart else manifest
    if not overwrite:
        raise SettingsError(
            f"{output} exists and differs from what would be written"
            f" ({'; '.join(changes)}); name another --output, or add --overwrite to replace it"
        )
    return None


def keep_precision(settings: AnySettings, embedding: dict[str, Any]) -> AnySettings:
    """Return the settings with the precision of existing vectors, unless one is asked for."""
    found = embedding.get("precision")
    if found not in get_args(Precision) or settings.precision != "auto":
        return settings
    return settings.model_copy(update={"precision": found})


def measure_file(path: Path) -> tuple[int, int]:
    """Return the size of a file and the CRC-32 of its first 4 KiB."""
    with storage_errors(path, "read"), path.open("rb") as stream:
        return os.fstat(stream.fileno()).st_size, zlib.crc32(stream.read(HEAD_BYTES))


def _show(value: object) -> str:
    """Format a value for a message, truncated if it is long."""
    return shorten(json.dumps(value, ensure_ascii=False), MAX_SHOWN_CHARS)


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
