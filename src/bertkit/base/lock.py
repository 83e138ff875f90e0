"""A folder that one process holds alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from bertkit.base.errors import ResumeError, storage_errors
from bertkit.base.files import make_folder

LOCK_FILE = ".lock"


@contextmanager
def hold_folder(folder: Path, activity: str) -> Iterator[None]:
    """Hold a folder, made if need be; the system lets go when the process ends, however it does.

    Args:
        folder: what to hold.
        activity: what a process that holds it is doing, for the message.

    Raises:
        ResumeError: another process holds it.
        StorageError: the disk refused.
    """
    make_folder(folder)
    path = folder / LOCK_FILE
    lock = FileLock(path)
    with storage_errors(path, "written"):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise ResumeError(
                f"another process is {activity} {folder}; wait for it, or name another --output"
            ) from None
    try:
        yield
    finally:
        lock.release()
