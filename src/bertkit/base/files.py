"""Durable files: everything that must survive a crash is written through this module.

A file is written under a temporary name, flushed, synced, renamed over its final name, and the
folder is synced, so that a reader sees the old content or the new and never a mixture. While it is
written its checksums are taken: SHA-256 of the whole for identity, and a CRC-32 for each mebibyte,
so that a mapped file can be checked piece by piece as it is first touched.
"""

import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from bertkit.base.errors import BertkitError, DamagedFileError, MissingFileError, StorageError

CHUNK_BYTES = 1 << 20
TEMPORARY_SUFFIX = ".partial"
REPLACED_SUFFIX = ".replaced"


class FileRecord(BaseModel):
    """What a file was when it was written: enough to know it again.

    Attributes:
        size_bytes: its length.
        sha256: SHA-256 of the whole, in hexadecimal.
        chunk_crc32: CRC-32 of each mebibyte, the last one possibly shorter.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    size_bytes: NonNegativeInt
    sha256: str
    chunk_crc32: list[NonNegativeInt]


class Checksums:
    """Running checksums of bytes that are handed over piece by piece."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._chunk_crc32: list[int] = []
        self._crc32 = 0
        self._size_bytes = 0

    def update(self, data: bytes | memoryview) -> None:
        """Take the next bytes into account."""
        view = memoryview(data)
        view = view.cast("B") if view.nbytes else view[:0]  # an empty one may have no cast
        self._sha256.update(view)
        while view:
            filled = self._size_bytes % CHUNK_BYTES
            part = view[: CHUNK_BYTES - filled]
            self._crc32 = zlib.crc32(part, self._crc32)
            self._size_bytes += len(part)
            view = view[len(part) :]
            if self._size_bytes % CHUNK_BYTES == 0:
                self._chunk_crc32.append(self._crc32)
                self._crc32 = 0

    def record(self) -> FileRecord:
        """The record of all bytes seen so far."""
        unfinished = [self._crc32] if self._size_bytes % CHUNK_BYTES else []
        return FileRecord(
            size_bytes=self._size_bytes,
            sha256=self._sha256.hexdigest(),
            chunk_crc32=self._chunk_crc32 + unfinished,
        )


class DurableFile:
    """A file being written; its final name holds the old content until all of the new is safe."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self.path = path
        self._stream = stream
        self._checksums = Checksums()

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes.

        Raises:
            StorageError: the disk refused.
        """
        with storage_errors(self.path, "written"):
            self._stream.write(data)
        self._checksums.update(data)

    def record(self) -> FileRecord:
        """The record of what has been written so far."""
        return self._checksums.record()


@contextmanager
def durable_file(path: Path) -> Iterator[DurableFile]:
    """Open `path` for writing so that it changes at once and for good, or not at all.

    Raises:
        StorageError: the disk refused; the old file, if any, is untouched.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    with storage_errors(path, "written"):
        stream = temporary.open("wb")
    try:
        yield DurableFile(path, stream)
        with storage_errors(path, "written"):
            stream.flush()
            os.fsync(stream.fileno())
            stream.close()
            temporary.replace(path)
            sync_folder(path.parent)
    except BaseException:
        with suppress(OSError):  # bytes that the disk refused are still in the buffer
            stream.close()
        temporary.unlink(missing_ok=True)
        raise


def write_file(path: Path, data: bytes | memoryview) -> FileRecord:
    """Write one file whole.

    Raises:
        StorageError: the disk refused; the old file, if any, is untouched.
    """
    with durable_file(path) as file:
        file.write(data)
    return file.record()


def write_json(path: Path, content: Any) -> FileRecord:
    """Write JSON as people read it: indented, UTF-8, keys in the order given."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    # The name of a file may hold bytes that aren't UTF-8; as \udcXX they stay valid JSON.
    return write_file(path, (text + "\n").encode(errors="backslashreplace"))


@contextmanager
def durable_folder(path: Path) -> Iterator[Path]:
    """Yield a new empty folder that becomes `path`, whole, when the block ends well.

    The files in it must be written through this module; an older `path` is replaced. Two renames
    do that: a machine that stops between them leaves the old folder under `.replaced`, and the
    next call puts it back. Where `path` is a link, the folder that it leads to is replaced.

    Raises:
        StorageError: the disk refused, or `path` can't be replaced, being a file, a mount point or
            the current folder; an older `path` is untouched.
    """
    path = Path(os.path.realpath(path))
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    replaced = path.with_name(path.name + REPLACED_SUFFIX)
    with storage_errors(path, "written"):
        if path.exists() and not path.is_dir():
            raise StorageError(f"{path} is a file where a folder is to be written; name another")
        if path.is_mount() or path == Path.cwd():
            raise StorageError(f"{path} is the current folder or a mount; name a folder in it")
        _put_back(replaced, path)
        remove_folder(temporary)
        temporary.mkdir(parents=True)
    try:
        yield temporary
        with storage_errors(path, "written"):
            sync_folder(temporary)
            if path.exists():
                remove_folder(replaced)
                path.rename(replaced)
            temporary.rename(path)
            sync_folder(path.parent)
    except BaseException:
        _put_back(replaced, path)
        remove_folder(temporary)
        raise
    with storage_errors(replaced, "removed"):
        remove_folder(replaced)


def _put_back(replaced: Path, path: Path) -> None:
    """Undo the first of the two renames that replace a folder."""
    if replaced.exists() and not path.exists():
        replaced.rename(path)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, unless they exist.

    Raises:
        StorageError: it can't be made.
    """
    with storage_errors(path, "made"):
        path.mkdir(parents=True, exist_ok=True)


def remove_folder(path: Path) -> None:
    """Remove a folder with all that is in it, if it exists."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable (where the system has such a notion: not on Windows)."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_json(path: Path, *, limit_bytes: int = 64 << 20) -> Any:
    """Read a JSON file that may come from anyone.

    Raises:
        MissingFileError: there is no such file.
        DamagedFileError: it is larger than `limit_bytes`, not UTF-8, or not JSON.
    """
    text = read_text(path, limit_bytes=limit_bytes)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} isn't JSON ({error}); write or fetch it again") from None


def read_text(path: Path, *, limit_bytes: int = 64 << 20) -> str:
    """Read a UTF-8 text file that may come from anyone.

    Raises:
        MissingFileError: there is no such file.
        DamagedFileError: it is larger than `limit_bytes`, or not UTF-8.
        StorageError: it can't be read.
    """
    try:
        with storage_errors(path, "read"), path.open("rb") as stream:
            data = stream.read(limit_bytes + 1)  # a pipe or a device doesn't tell its size
        if len(data) > limit_bytes:
            raise DamagedFileError(
                f"{path} has more than {limit_bytes:,} bytes, and no such file needs as many"
            )
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DamagedFileError(f"{path} isn't UTF-8 at byte {error.start:,}") from None


def verify_file(path: Path, record: FileRecord) -> None:
    """Read a whole file and hold it against the record of its writing.

    Raises:
        MissingFileError: it is gone.
        DamagedFileError: its length or a mebibyte of it is not what was written.
        StorageError: it can't be read.
    """
    verify_size(path, record)
    checksums = Checksums()
    with storage_errors(path, "read"), path.open("rb") as stream:
        while data := stream.read(CHUNK_BYTES):
            checksums.update(data)
    seen = checksums.record()
    pairs = zip(record.chunk_crc32, seen.chunk_crc32, strict=False)
    for index, (expected, found) in enumerate(pairs):
        if expected != found:
            raise damaged_chunk(path, index)
    if seen.sha256 != record.sha256:
        raise DamagedFileError(f"{path} was altered: its SHA-256 isn't the recorded one")


def verify_size(path: Path, record: FileRecord) -> None:
    """Hold a file's length against its record; costs nothing.

    Raises:
        MissingFileError: it is gone.
        DamagedFileError: its length is not what was written.
    """
    with storage_errors(path, "read"):
        if not path.is_file():
            raise MissingFileError(f"{path} is missing; it had {record.size_bytes:,} bytes")
        size_bytes = path.stat().st_size
    if size_bytes != record.size_bytes:
        raise DamagedFileError(
            f"{path} has {size_bytes:,} bytes and was written with {record.size_bytes:,};"
            " make it again or restore it"
        )


def damaged_chunk(path: Path, index: int) -> DamagedFileError:
    """The error for a mebibyte whose checksum is wrong."""
    start = index * CHUNK_BYTES
    return DamagedFileError(
        f"{path} is damaged between bytes {start:,} and {start + CHUNK_BYTES:,}"
        " (checksum differs); make it again or restore it"
    )


@contextmanager
def storage_errors(path: Path, participle: str) -> Iterator[None]:
    """Turn what the system refuses into an error that names the path and the cause.

    Raises:
        MissingFileError: `participle` is "read" and there is no such file.
        StorageError: `path` can't be written, made, read … as `participle` says.
    """
    try:
        yield
    except BertkitError:
        raise
    except FileNotFoundError as error:
        if participle == "read":
            raise MissingFileError(f"{path} doesn't exist") from None
        raise StorageError(f"{path} can't be {participle}: {error.strerror}") from error
    except OSError as error:
        raise StorageError(f"{path} can't be {participle}: {error.strerror or error}") from error
