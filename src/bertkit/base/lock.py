"""A folder that one process holds alone."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from bertkit.base import storage
from bertkit.base.errors import ResumeError, storage_errors
from bertkit.base.files import make_folder

LOCK_FILE = ".lock"


@contextmanager
def hold_folder(folder: Path, activity: str, *, flag: str = "--output") -> Iterator[None]:
    """Hold a folder, made if need be; the system lets go when the process ends, however it does.

    Args:
        folder: what to hold.
        activity: what a process that holds it is doing, for the message.
        flag: of the command, that names another folder.

    Raises:
        ResumeError: another process holds it.
        StorageError: the disk refused.
    """
    make_folder(folder)
    with _hold(folder / LOCK_FILE, folder, activity, flag):
        yield


@contextmanager
def hold_name(folder: Path, activity: str) -> Iterator[None]:
    """Hold a folder that appears at the end, by a file beside it that goes away before.

    Args:
        folder: what will be written.
        activity: what a process that holds it is doing, for the message.

    Raises:
        ResumeError: another process holds it.
        StorageError: the disk refused.
    """
    place = Path(os.path.realpath(folder))  # where its name may be "." or "..", too
    make_folder(place.parent)
    path = place.with_name(place.name + LOCK_FILE)
    with _hold(path, folder, activity):
        try:
            yield
        finally:
            with suppress(OSError):
                storage.remove(path)


@contextmanager
def _hold(path: Path, folder: Path, activity: str, flag: str = "--output") -> Iterator[None]:
    lock = FileLock(path)
    with storage_errors(path, "written"):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise ResumeError(
                f"another process is {activity} {folder}; wait for it, or name another {flag}"
            ) from None
    try:
        yield
    finally:
        lock.release()
