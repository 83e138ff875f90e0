"""Output paths of commands: resolving links, refusing to overwrite inputs, and locking.

A folder that a command works in is locked by a `.lock` file in it, which stays. An output that is
written atomically at the end is locked by `NAME.lock` beside it, which is removed when the command
ends. Both are empty files; the system releases the lock however the process ends, so a leftover
lock file blocks nobody.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path

from filelock import FileLock, Timeout

from bertkit.base import storage
from bertkit.base.addresses import is_remote
from bertkit.base.errors import (
    ResumeError,
    SettingsError,
    StorageError,
    locking_errors,
    storage_errors,
)
from bertkit.base.files import TEMPORARY_SUFFIX, make_folder
from bertkit.base.progress import announce

LOCK_FILE = ".lock"
WILDCARDS = frozenset("*?[")


@contextmanager
def open_output(
    output: Path,
    activity: str,
    *,
    inputs: Iterable[str | Path] = (),
    check: Callable[[Path], object] | None = None,
    is_workplace: bool = False,
    waits: bool = False,
    flag: str = "--output",
) -> Iterator[Path]:
    """Lock the file or folder that a command writes, for this process alone.

    Args:
        output: the path as the user gave it.
        inputs: files, folders and glob patterns that the command reads; names that don't exist are
            ignored.
        check: raises an error to reject the output; called before anything is created, and again
            once the output is locked.
        is_workplace: whether the output is a folder that the command works in from the start,
            instead of a file or folder that is written atomically at the end.
        waits: whether to wait for another process that has locked it.
        flag: the command-line option that sets the output, for messages.

    Yields:
        Where to write: `output`, or the target if it is a link.

    Raises:
        SettingsError: it is a broken link, a pipe or a device, or overlaps with an input.
        ResumeError: another process has locked it.
        StorageError: the lock can't be created.
    """
    place = find_place(output, flag)
    for source in inputs:
        refuse_input(place, source, flag)
    if check is not None:
        check(place)
    with _hold(place, activity, flag, is_workplace=is_workplace, waits=waits):
        if check is not None:
            check(place)
        yield place


def find_place(output: Path, flag: str = "--output") -> Path:
    """Resolve an output path: for a link, return its target, so that the link itself stays.

    Raises:
        SettingsError: it or a parent is a broken link, or it is a pipe, a device or a URL.
    """
    if is_remote(output):
        raise SettingsError(f"{flag} is a URL, to which this isn't written; name a path")
    with storage_errors(output, "written"):
        for path in (output, *output.parents):
            if path.is_symlink() and not path.exists():
                raise SettingsError(
                    f"{path} is a link to {path.readlink()}, which doesn't exist; make that"
                    f" first, or name another {flag}"
                )
        if output.exists() and not (output.is_file() or output.is_dir()):
            raise SettingsError(
                f"{output} is a pipe or a device, which can't be replaced atomically; name a file"
                f" or folder with {flag}"
            )
        return Path(os.path.realpath(output)) if output.is_symlink() else output


def refuse_input(place: Path, source: str | Path, flag: str = "--output") -> None:
    """Reject an output that overlaps with an input.

    Raises:
        SettingsError: they are the same file or folder, one is inside the other, or the input is a
            pattern that matches the output.
    """
    with storage_errors(place, "written"):
        written, read = Path(os.path.realpath(place)), Path(os.path.realpath(source))
        if not read.exists():
            is_pattern = not WILDCARDS.isdisjoint(str(source))
            if is_pattern and fnmatch(str(written), str(read)):
                raise SettingsError(
                    f"{place} would be read as part of the input {source}; name another {flag}"
                )
            return
        if written == read or (written.exists() and written.samefile(read)):
            raise SettingsError(
                f"{place} is the input, and would be overwritten; name another {flag}"
            )
        if read.is_dir() and written.is_relative_to(read):
            raise SettingsError(f"{place} lies in the input {source}; name another {flag}")
        if read.is_relative_to(written):
            raise SettingsError(f"{place} holds the input {source}; name another {flag}")


def list_names(folder: Path) -> set[str]:
    """List the names in a folder, without its lock and unfinished files; empty if it is missing."""
    with storage_errors(folder, "read"):
        if not folder.is_dir():
            return set()
        names = {path.name for path in folder.iterdir()}
    return {name for name in names if name != LOCK_FILE and not name.endswith(TEMPORARY_SUFFIX)}


@contextmanager
def _hold(
    place: Path, activity: str, flag: str, *, is_workplace: bool, waits: bool
) -> Iterator[None]:
    real = Path(os.path.realpath(place))  # `place` may be "." or ".."
    path = real / LOCK_FILE if is_workplace else real.with_name(real.name + LOCK_FILE)
    made = make_folder(path.parent)
    lock = FileLock(path, fallback_to_soft=False)
    try:
        with locking_errors(path):
            try:
                lock.acquire(timeout=0)
            except Timeout:
                if not waits:
                    raise ResumeError(
                        f"another process is {activity} {place}; wait for it, or name another"
                        f" {flag}"
                    ) from None
                announce(f"waiting for another process that is {activity} {place}")
                lock.acquire()
        try:
            yield
        finally:
            with suppress(OSError):
                is_ours = path.stat().st_size == 0  # such as poetry.lock is the user's
                if is_ours and (not is_workplace or set(real.iterdir()) == {path}):
                    # Before unlocking: a process that has already opened it then finds it unlinked.
                    storage.remove(path)
            lock.release()
    finally:
        for folder in made:  # innermost first; those that are still empty
            with suppress(OSError):
                if any(folder.iterdir()):
                    break
                storage.remove_empty_folder(folder)


def check_standard_output() -> None:
    """Refuse a closed standard output before work whose result is only printed."""
    if sys.stdout is None or sys.stdout.closed:
        raise StorageError("standard output is closed; redirect it to a file")
