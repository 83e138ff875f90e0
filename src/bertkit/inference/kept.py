"""The last object of each kind that was loaded, kept for the next call or the next of many files.

A call with another model or other settings, or after a change of the model's files, loads again.
"""

import os
import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from bertkit.base.errors import storage_errors

Loaded = TypeVar("Loaded")
FileState = tuple[str, int, int, int]  # path, inode, bytes, time of the last change


class Kept(NamedTuple):
    """A loaded object, with the arguments and the state of the files that it was loaded from."""

    arguments: tuple[object, ...]
    states: tuple[FileState, ...]
    loaded: object


class LastLoaded:
    """The last object that each loading function returned; threads may share it."""

    def __init__(self) -> None:
        self._kept: dict[Callable[..., object], Kept] = {}
        self.unlock()

    def unlock(self) -> None:
        """Reset the lock after a fork, where the thread that holds it is missing."""
        self._lock = threading.Lock()

    def take(
        self,
        load: Callable[..., Loaded],
        sources: Sequence[Path],
        *arguments: object,
        **options: Any,
    ) -> Loaded:
        """Return `load(*sources, *arguments, **options)`, or the same from the last time.

        It reads the files and folders `sources`.
        """
        key = (*map(Path.absolute, sources), *arguments, options)
        with self._lock:
            states = list_states(sources)
            kept = self._kept.get(load)
            if kept is not None and kept[:2] == (key, states):
                return cast("Loaded", kept.loaded)
            self._kept.pop(load, None)  # before the next one takes its memory
            loaded = load(*sources, *arguments, **options)
            self._kept[load] = Kept(key, states, loaded)
            return loaded


LAST_LOADED = LastLoaded()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LAST_LOADED.unlock)


def list_states(paths: Sequence[Path]) -> tuple[FileState, ...]:
    """Return the state of each file, and of all files in and below each folder.

    A path that doesn't exist is the common prefix of some files: it stands for its folder.
    """
    found: list[FileState] = []
    for path in paths:
        if path.is_dir():
            files = sorted(path.rglob("*"))
        else:
            files = [path] if path.is_file() else sorted(path.parent.glob("*"))
        for file in files:
            with storage_errors(file, "read"):
                try:
                    status = file.stat()
                except FileNotFoundError:  # it is gone meanwhile
                    continue
            if not stat.S_ISDIR(status.st_mode):
                found.append((str(file), status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)
