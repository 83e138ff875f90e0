"""The last model of each kind that a function loaded, kept for its next call.

A call with another model or other settings, or after a change of the model's files, loads again.
"""

import os
import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from bertkit.base.errors import SettingsError, storage_errors
from bertkit.inference.pipeline import Loadable
from bertkit.inference.settings import LoadingSettings

Loaded = TypeVar("Loaded")
FileState = tuple[str, int, int, int]  # path, inode, bytes, time of the last change


class Kept(NamedTuple):
    """A loaded object, with the arguments and the state of the files that it was loaded from."""

    arguments: tuple[Any, ...]
    states: tuple[FileState, ...]
    loaded: Any


class LastLoaded:
    """The last object that each loading function returned; threads may share it."""

    def __init__(self) -> None:
        self._kept: dict[Callable[..., Any], Kept] = {}
        self.unlock()

    def unlock(self) -> None:
        """Reset the lock after a fork, where the thread that holds it is missing."""
        self._lock = threading.Lock()

    def take(
        self,
        load: Callable[..., Loaded],
        sources: Sequence[Path],
        *arguments: Any,
        made: Sequence[Path] = (),
        **options: Any,
    ) -> Loaded:
        """Return `load(*sources, *arguments, **options)`, or the same from the last time.

        It reads the files and folders `sources`; it writes those `made`, and reads them next time.
        """
        key = (*map(Path.absolute, sources), *arguments, options)
        with self._lock:
            states = list_states(sources)
            kept = self._kept.get(load)
            if kept is not None and kept[:2] == (key, states + list_states(made)):
                return cast("Loaded", kept.loaded)
            self._kept.pop(load, None)  # before the next one takes its memory
            loaded = load(*sources, *arguments, **options)
            self._kept[load] = Kept(key, states + list_states(made), loaded)
            return loaded


LAST_LOADED = LastLoaded()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LAST_LOADED.unlock)


AnyLoadable = TypeVar("AnyLoadable", bound=Loadable)


def take_object(
    kind: type[AnyLoadable], model: str | Path | AnyLoadable | None, loading: LoadingSettings
) -> AnyLoadable:
    """Return a loaded model as it is; load another, or take that of the last call."""
    if isinstance(model, kind):
        usual = type(loading)()
        given = [name for name, value in loading if value != getattr(usual, name)]
        if given:
            raise SettingsError(
                f"a loaded {kind.__name__} has its {' and '.join(given)}; give that to"
                f" {kind.__name__}.load"
            )
        return model
    folder = kind.find(cast("str | Path | None", model), loading.revision).path
    loading = loading.model_copy(update={"revision": None})
    return LAST_LOADED.take(kind.load, [folder], loading)


def list_states(paths: Sequence[Path]) -> tuple[FileState, ...]:
    """Return the state of each file, and of all files in and below each folder.

    A path that doesn't exist is the common prefix of some files: it stands for its folder.
    """
    found: list[FileState] = []
    for path in paths:
        files = [path] if path.is_file() else path.parent.glob("*")
        if path.is_dir():
            files = path.rglob("*")
        found += filter(None, map(_read_state, sorted(files)))
    return tuple(found)


def _read_state(path: Path) -> FileState | None:
    """Return the state of a file; None for a folder, and for a file that is gone meanwhile."""
    with storage_errors(path, "read"):
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
    if stat.S_ISDIR(status.st_mode):
        return None
    return str(path), status.st_ino, status.st_size, status.st_mtime_ns
