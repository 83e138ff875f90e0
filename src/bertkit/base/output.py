"""The one door to what a command writes: where it lies, what it may replace, and who holds it.

A folder that a command works in is held by `.lock` in it, which stays. What appears whole at the
end is held by `NAME.lock` beside it, which goes when the command ends. Either is an empty file that
the system unlocks however the process ends, so one that is left behind stops nobody.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path

from filelock import FileLock, Timeout

from bertkit.base import storage
from bertkit.base.errors import ResumeError, SettingsError, storage_errors
from bertkit.base.files import TEMPORARY_SUFFIX, make_folder

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
    flag: str = "--output",
) -> Iterator[Path]:
    """Hold the file or folder that a command writes, for this process alone.

    Args:
        output: as the user named it.
        activity: what a process that holds it is doing, for the message.
        inputs: files, folders and patterns that the command reads; names of other things are
            passed over.
        check: refuses an output by raising; called before anything is made, and again once no
            other process can change it.
        is_workplace: whether it is a folder that is worked in from the start, instead of a file or
            folder that appears whole at the end.
        flag: the option that names another output.

    Yields:
        Where to write: `output`, or what it leads to where it is a link.

    Raises:
        SettingsError: it is a link to nothing, a pipe or a device, or would mix with an input.
        ResumeError: another process holds it.
        StorageError: the lock can't be made.
    """
    place = find_place(output, flag)
    for source in inputs:
        refuse_input(place, source, flag)
    if check is not None:
        check(place)
    with _hold(place, activity, flag, is_workplace=is_workplace):
        if check is not None:
            check(place)
        yield place


def find_place(output: Path, flag: str = "--output") -> Path:
    """Where an output is written: a link stays, and what it leads to is written.

    Raises:
        SettingsError: it is a link to nothing, in such a link, or a pipe or a device.
        StorageError: the system can't tell.
    """
    with storage_errors(output, "written"):
        for path in (output, *output.parents):
            if path.is_symlink() and not path.exists():
                raise SettingsError(
                    f"{path} is a link to {path.readlink()}, which doesn't exist; make that"
                    f" first, or name another {flag}"
                )
        if output.exists() and not (output.is_file() or output.is_dir()):
            raise SettingsError(
                f"{output} is a pipe or a device, where nothing can appear whole; name a file or"
                f" folder by {flag}"
            )
        return Path(os.path.realpath(output)) if output.is_symlink() else output


def refuse_input(place: Path, source: str | Path, flag: str = "--output") -> None:
    """See that what is written and what is read don't mix.

    Raises:
        SettingsError: they are one file or folder, one lies in the other, or the input is a pattern
            that matches the output.
        StorageError: the system can't tell.
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
                f"{place} is the input, and would be written over; name another {flag}"
            )
        if read.is_dir() and written.is_relative_to(read):
            raise SettingsError(f"{place} lies in the input {source}; name another {flag}")
        if read.is_relative_to(written):
            raise SettingsError(f"{place} holds the input {source}; name another {flag}")


def list_names(folder: Path) -> set[str]:
    """The names in a folder but those of its lock and of unfinished files; none if there is none.

    Raises:
        StorageError: it can't be listed.
    """
    with storage_errors(folder, "read"):
        if not folder.is_dir():
            return set()
        names = {path.name for path in folder.iterdir()}
    return {name for name in names if name != LOCK_FILE and not name.endswith(TEMPORARY_SUFFIX)}


@contextmanager
def _hold(place: Path, activity: str, flag: str, *, is_workplace: bool) -> Iterator[None]:
    real = Path(os.path.realpath(place))  # its name may be "." or ".."
    path = real / LOCK_FILE if is_workplace else real.with_name(real.name + LOCK_FILE)
    made = make_folder(path.parent)
    lock = FileLock(path)
    try:
        with storage_errors(path, "written"):
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise ResumeError(
                    f"another process is {activity} {place}; wait for it, or name another {flag}"
                ) from None
        try:
            yield
        finally:
            with suppress(OSError):
                if not is_workplace or set(real.iterdir()) == {path}:
                    # Before it is unlocked: who has opened it by now finds it without a name.
                    storage.remove(path)
            lock.release()
    finally:
        _remove_empty(made)


def _remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders in which nothing came to be, the innermost first."""
    for folder in folders:
        with suppress(OSError):
            if any(folder.iterdir()):
                return
            storage.remove_empty_folder(folder)
