"""Atomic, crash-safe writing of files and folders, and bounded reading of untrusted ones.

A file is written under a temporary name, synced, and renamed to its final name; then its folder is
synced. A reader sees either the old content or the new, never a mixture. For a new folder, its
parent is synced; a folder is renamed before its content is removed. A crash leaves files that end
in `.partial`, which the next start removes. `.replaced` marks the complete old folder that a new
one was about to replace.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.base import storage
from bertkit.base.checksums import Checksums, FileRecord, view_bytes
from bertkit.base.errors import DamagedFileError, SettingsError, StorageError, storage_errors

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

TEMPORARY_SUFFIX = ".partial"
REPLACED_SUFFIX = ".replaced"
BUFFER_BYTES = 1 << 17
BYTE_ORDER_MARK = "\ufeff"


class DurableFile:
    """A file being written; `path` keeps its old content until all new content is on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
        self._descriptor: int | None = None
        self._buffer = bytearray()
        self._checksums = Checksums()

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes; small pieces are buffered, large ones written at once."""
        view = view_bytes(data)
        self._checksums.update(view)
        if len(self._buffer) + len(view) < BUFFER_BYTES:
            self._buffer += view
            return
        with storage_errors(self.path, "written"):
            self._flush()
            write_all(self._opened(), view)

    def record(self) -> FileRecord:
        """Return the size and checksums of the bytes written so far."""
        return self._checksums.record()

    def open(self) -> None:
        """Create the temporary file."""
        self._descriptor = storage.open_new(self._temporary)

    def finish(self) -> None:
        """Sync the content, rename the file to its final name, and sync the folder."""
        self._flush()
        storage.sync(self._opened())
        self._close()
        storage.rename(self._temporary, self.path)
        storage.sync_folder(self.path.parent)

    def discard(self) -> None:
        """Remove the temporary file; if that fails, the next start removes it."""
        with suppress(OSError):
            self._close()
        with suppress(OSError):
            storage.remove(self._temporary)

    def _flush(self) -> None:
        write_all(self._opened(), memoryview(bytes(self._buffer)))
        self._buffer.clear()

    def _opened(self) -> int:
        assert self._descriptor is not None
        return self._descriptor

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None  # never close a descriptor twice
        if descriptor is not None:
            storage.close(descriptor)


def write_all(descriptor: int, view: memoryview) -> None:
    """Write all bytes, repeating after partial writes."""
    while view:
        view = view[storage.write(descriptor, view) :]


@contextmanager
def durable_file(path: Path) -> Iterator[DurableFile]:
    """Open `path` for writing so that it is replaced atomically and durably, or not at all.

    If only the final sync fails, it is a `StorageError`, although the new file is complete; a power
    cut may bring back the old one. After any other the old file is untouched.
    """
    file = DurableFile(path)
    try:
        with storage_errors(path, "written"):
            file.open()
        yield file
        with storage_errors(path, "written"):
            file.finish()
    except BaseException:
        file.discard()
        raise


def write_file(path: Path, data: bytes | memoryview) -> FileRecord:
    """Write one file atomically and return its size and checksums."""
    with durable_file(path) as file:
        file.write(data)
    return file.record()


@contextmanager
def durable_folder(path: Path) -> Iterator[Path]:
    """Yield a new empty folder that becomes `path` when the block ends without an error.

    The files in it must be written through this module. An existing `path` is replaced with two
    renames: a crash between them leaves the old folder under `.replaced`, and the next call
    restores it. If `path` is a link, the folder that it points to is replaced. A file, a mount
    point or the current folder can't be: then `path` is untouched.
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
    make_folder(path.parent)
    try:
        with storage_errors(path, "written"):
            storage.make_folder(temporary)
        yield temporary
        with storage_errors(path, "written"):
            storage.sync_folder(temporary)
            if path.exists():
                remove_folder(replaced)
                storage.rename(path, replaced)
            storage.rename(temporary, path)
            storage.sync_folder(path.parent)
    except BaseException:
        with suppress(OSError):  # report the first error; the next call cleans up
            _put_back(replaced, path)
            remove_folder(temporary)
        raise
    remove_folder(replaced)


def _put_back(replaced: Path, path: Path) -> None:
    """Undo the first of the two renames that replace a folder, if the second didn't happen."""
    if replaced.exists() and not path.exists():
        storage.rename(replaced, path)


def make_folder(path: Path) -> list[Path]:
    """Create a folder and its missing parents, and sync the folder that holds each.

    Return those that this call created, innermost first.
    """
    made: list[Path] = []
    with storage_errors(path, "made"):
        missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
        above = missing[-1].parent if missing else path
        with suppress(PermissionError):  # users often may not open /home
            # A process may have been killed after it created `above` and before it synced it.
            storage.sync_folder(above.resolve().parent)
        for folder in reversed(missing):
            try:
                storage.make_folder(folder)
                made.insert(0, folder)
            except FileExistsError:  # another process created it first, or it is a file
                if not folder.is_dir():
                    raise StorageError(
                        f"{folder} is a file where a folder is to be made; name another"
                    ) from None
            storage.sync_folder(folder.parent)
    return made


def remove_folder(path: Path) -> None:
    """Remove a folder with everything in it, or a file or link, if it exists.

    It is renamed before anything in it is removed, so `path` is either complete or gone.
    """
    with storage_errors(path, "removed"):
        aside = path
        if path.suffix != TEMPORARY_SUFFIX:
            aside = path.with_name(path.name + TEMPORARY_SUFFIX)
            _remove_tree(aside)
            if os.path.lexists(path):
                storage.rename(path, aside)
                storage.sync_folder(path.parent)
        _remove_tree(aside)


def _remove_tree(path: Path) -> None:
    """Remove a file, link or folder that readers no longer use, if it exists."""
    if path.is_dir() and not path.is_symlink():
        for entry in sorted(path.iterdir()):
            _remove_tree(entry)
        storage.remove_empty_folder(path)
    elif os.path.lexists(path):
        storage.remove(path)


def remove_litter(folder: Path) -> None:
    """Remove what a crash left in a folder that only this module writes to.

    Unfinished files are removed. A folder that was about to be replaced is restored, or removed if
    its replacement exists.
    """
    replaced = sorted(folder.glob(f"*{REPLACED_SUFFIX}"))
    with storage_errors(folder, "cleaned"):
        for path in replaced:
            _put_back(path, path.with_suffix(""))
        litter = sorted(folder.glob(f"*{TEMPORARY_SUFFIX}"))
        if litter:  # a process may have been killed after a rename and before it synced it
            storage.sync_folder(folder)
    for path in [*litter, *replaced]:
        remove_folder(path)


def check_is_file(path: Path) -> None:
    """Reject an existing path that isn't a file, such as a named pipe, which could block forever.

    Raises:
        DamagedFileError: it exists and isn't a file.
    """
    with storage_errors(path, "read"):
        is_something_else = path.exists() and not path.is_file()
    if is_something_else:
        raise DamagedFileError(f"{path} must be a file, and is a folder, a pipe or a device")


def check_new_file(path: Path, *, overwrite: bool) -> None:
    """Reject an output file that must not be written, before any work is done for it.

    Raises:
        SettingsError: it is a folder, or it exists and `overwrite` is False.
    """
    with storage_errors(path, "read"):
        if path.is_dir():
            raise SettingsError(f"{path} is a folder; name a file")
        if path.exists() and not overwrite:
            raise SettingsError(f"{path} exists; name another file, or replace it by --overwrite")


def read_text(path: Path, *, limit_bytes: int = 64 << 20) -> str:
    """Read an untrusted UTF-8 text file of up to `limit_bytes`, without its byte order mark.

    Raises:
        MissingFileError: there is no such file.
        DamagedFileError: it isn't a file, is larger than `limit_bytes`, or not UTF-8.
    """
    check_is_file(path)
    try:
        with storage_errors(path, "read"), path.open("rb") as stream:
            data = stream.read(limit_bytes + 1)
        if len(data) > limit_bytes:
            raise DamagedFileError(
                f"{path} has more than {limit_bytes:,} bytes, more than any such file needs"
            )
        return data.decode("utf-8").removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        raise DamagedFileError(f"{path} isn't UTF-8 at byte {error.start:,}") from None


class DurableStream(io.RawIOBase):
    """A writable stream over a `DurableFile`; the owner opens, finishes or discards the file."""

    def __init__(self, file: DurableFile) -> None:
        self._file = file

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: "ReadableBuffer", /) -> int:
        """Append all of the bytes and return their number."""
        view = memoryview(data)
        self._file.write(view)
        return view.nbytes
