"""A model of a disk that a power cut may stop: what is safe, and all that may be found afterwards.

What a file holds is safe once the file was synced, and a name (one that is new, another or gone)
once its folder was. Of the rest any may have reached the disk: names of one folder in their order,
those of different folders in any, and of content nothing, all, or some of its pages.
"""

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bertkit.base import storage
from bertkit.base.errors import BertkitError
from bertkit.base.files import DurableFile

PAGE_BYTES = 4096
OPENING_OPERATIONS = ("open_new", "open_end", "open_within")
OPERATIONS = (
    *OPENING_OPERATIONS,
    "seek",
    "write",
    "sync",
    "close",
    "rename",
    "remove",
    "make_folder",
    "remove_empty_folder",
    "sync_folder",
)

SYNCING_OPERATIONS = ("sync", "sync_folder")

Tree = dict[str, "bytes | Tree"]


def stand_in(put: Callable[[ModuleType, str, Any], None], operate: Callable[..., Any]) -> None:
    """Replace the functions of `storage`, which has no hooks for tests.

    Args:
        put: replaces a function of a module.
        operate: is called in place of each, with its name, the original and the arguments.
    """
    for name in OPERATIONS:
        put(storage, name, partial(operate, name, getattr(storage, name)))


@dataclass(frozen=True)
class Operation:
    """One call of a function of `storage`, which went well.

    Attributes:
        name: of the function.
        arguments: paths, an open file's descriptor, or the bytes that were taken.
        descriptor: of a file that was opened.
    """

    name: str
    arguments: tuple[Any, ...]
    descriptor: int | None = None


class KilledError(BaseException):
    """The process is gone: nothing of it runs any more."""


class Recorder:
    """Stands in for `storage`, does what it does but for waiting, and keeps a list.

    Attributes:
        operations: all that was done.
        kill_after: the operation, and how its last path ends, after which the process is gone.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.operations: list[Operation] = []
        self.kill_after: tuple[str, str] | None = None
        self._is_dead = False
        self._opened: set[int] = set()
        stand_in(monkeypatch.setattr, self._operate)

    def _operate(self, name: str, original: Callable[..., Any], *arguments: Any) -> Any:
        if self._is_dead:
            raise KilledError
        result = None
        if name not in SYNCING_OPERATIONS:  # what isn't lost needn't be waited for
            result = original(*arguments)
        if name == "write":
            arguments = (arguments[0], bytes(arguments[1][:result]))
        descriptor = result if name in OPENING_OPERATIONS else None
        self._opened |= {descriptor} - {None}
        self._opened -= {arguments[0]} if name == "close" else set()
        self.operations.append(Operation(name, arguments, descriptor))
        if self.kill_after is not None and self.kill_after[0] == name:
            self._is_dead = str(arguments[-1]).endswith(self.kill_after[1])
        if self._is_dead:
            raise KilledError
        return result

    def restart(self) -> None:
        """A new process: files that the killed one had opened are closed."""
        self.kill_after, self._is_dead = None, False
        for descriptor in self._opened:
            os.close(descriptor)
        self._opened.clear()


@dataclass(eq=False)
class File:
    """A file's content on the disk, and as programs see it."""

    safe: bytes = b""
    seen: bytes = b""
    is_patched: bool = False

    def outcomes(self) -> list[bytes]:
        """Content that a power cut may leave: lost, torn in the middle, with holes, or all."""
        if self.safe == self.seen:
            return [self.safe] * 4
        if self.is_patched:
            return self._patched_outcomes()
        kept = len(self.safe) if self.seen.startswith(self.safe) else 0
        middle = (kept + len(self.seen)) // 2 // PAGE_BYTES * PAGE_BYTES
        holes = bytearray(self.seen)
        for start in range(0, len(holes), 2 * PAGE_BYTES):
            stop = min(start + PAGE_BYTES, len(holes))
            start = min(max(start, kept), stop)
            holes[start:stop] = bytes(stop - start)
        return [self.safe, self.seen[: max(kept, middle)], bytes(holes), self.seen]

    def _patched_outcomes(self) -> list[bytes]:
        """The same where safe bytes were written over: a page is the old one or the new one."""
        middle = len(self.seen) // 2 // PAGE_BYTES * PAGE_BYTES
        holes = bytearray(self.seen)
        for start in range(0, len(holes), 2 * PAGE_BYTES):
            size = min(PAGE_BYTES, len(holes) - start)
            holes[start : start + size] = self.safe[start : start + size].ljust(size, b"\0")
        torn = self.seen[:middle] + self.safe[middle:]
        return [self.safe, torn, bytes(holes), self.seen]


@dataclass(eq=False)
class Folder:
    """A folder's names on the disk, and the changes since."""

    safe: "dict[str, File | Folder]" = field(default_factory=dict)
    changes: "list[tuple[str, File | Folder | None, str | None]]" = field(default_factory=list)

    def names(self, num_changes: int | None = None) -> "dict[str, File | Folder]":
        """The names after the first few changes, or after all."""
        names = dict(self.safe)
        for name, node, old_name in self.changes[:num_changes]:
            if old_name is not None:
                names[name] = names.pop(old_name)
            elif node is None:
                del names[name]
            else:
                names[name] = node
        return names


class Disk:
    """A disk on which everything that was there before is safe; operations are applied to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.top = Folder()
        self._opened: dict[int, File] = {}
        self._places: dict[int, int] = {}  # where the next bytes go, if not to the end

    def apply(self, operation: Operation) -> None:
        """Do what was done."""
        getattr(self, f"_{operation.name}")(*operation.arguments, operation.descriptor)

    def _folder(self, path: Path) -> Folder:
        node = self.top
        for part in path.relative_to(self.root).parts:
            found = node.names()[part]
            assert isinstance(found, Folder)
            node = found
        return node

    def _change(self, path: Path, node: File | Folder | None, old_name: str | None = None) -> None:
        self._folder(path.parent).changes.append((path.name, node, old_name))

    def _open_new(self, path: Path, descriptor: int) -> None:
        self._open_end(path, descriptor)
        self._opened[descriptor].seen = b""

    def _open_end(self, path: Path, descriptor: int) -> None:
        file = self._folder(path.parent).names().get(path.name)
        if file is None:
            file = File()
            self._change(path, file)
        assert isinstance(file, File)
        self._opened[descriptor] = file

    def _open_within(self, path: Path, descriptor: int) -> None:
        self._open_end(path, descriptor)
        self._places[descriptor] = 0

    def _seek(self, descriptor: int, place: int, _: None) -> None:
        self._places[descriptor] = place

    def _write(self, descriptor: int, data: bytes, _: None) -> None:
        file = self._opened[descriptor]
        place = self._places.get(descriptor, len(file.seen))
        file.is_patched |= place < len(file.safe)
        before = file.seen[:place].ljust(place, b"\0")
        file.seen = before + data + file.seen[place + len(data) :]
        if descriptor in self._places:
            self._places[descriptor] += len(data)

    def _sync(self, descriptor: int, _: None) -> None:
        file = self._opened[descriptor]
        file.safe = file.seen

    def _close(self, descriptor: int, _: None) -> None:
        del self._opened[descriptor]
        self._places.pop(descriptor, None)

    def _rename(self, old: Path, new: Path, _: None) -> None:
        assert old.parent == new.parent, "the model knows renames within one folder only"
        self._change(new, None, old.name)

    def _remove(self, path: Path, _: None) -> None:
        self._change(path, None)

    def _make_folder(self, path: Path, _: None) -> None:
        self._change(path, Folder())

    def _remove_empty_folder(self, path: Path, _: None) -> None:
        self._change(path, None)

    def _sync_folder(self, path: Path, _: None) -> None:
        if not path.is_relative_to(self.root):
            return
        folder = self._folder(path)
        folder.safe, folder.changes = folder.names(), []

    def outcomes(self) -> Iterator[Tree]:
        """All that may be found after a power cut now; the same more than once at times."""
        folders = [folder for folder in self._all_folders(self.top) if folder.changes]
        for counts in itertools.product(*(range(len(folder.changes) + 1) for folder in folders)):
            reached = {id(folder): count for folder, count in zip(folders, counts, strict=True)}
            for content in range(4):
                yield self._tree(self.top, reached, content)

    def _all_folders(self, folder: Folder) -> Iterator[Folder]:
        """Those that may be reached by names that are safe or may yet be."""
        yield folder
        nodes = [*folder.safe.values(), *(node for _, node, _ in folder.changes)]
        for node in dict.fromkeys(nodes):
            if isinstance(node, Folder):
                yield from self._all_folders(node)

    def _tree(self, folder: Folder, reached: dict[int, int], content: int) -> Tree:
        return {
            name: node.outcomes()[content]
            if isinstance(node, File)
            else self._tree(node, reached, content)
            for name, node in folder.names(reached.get(id(folder), 0)).items()
        }


def list_outcomes(
    operations: list[Operation], root: Path, *, promise: Callable[[int], Any]
) -> Iterator[tuple[int, Tree]]:
    """For each number of operations done, all that a power cut may then leave.

    Args:
        operations: all that was done since the folder `root` was empty.
        root: the folder.
        promise: number of operations done → what must hold then; a tree comes once for each.
    """
    disk = Disk(root)
    seen: set[Any] = set()
    for num_done in range(len(operations) + 1):
        if num_done:
            disk.apply(operations[num_done - 1])
        for tree in disk.outcomes():
            key = (promise(num_done), freeze(tree))
            if key not in seen:
                seen.add(key)
                yield num_done, tree


def check_states(
    operations: list[Operation],
    root: Path,
    check: Callable[[int, Tree, Path], Any],
    promise: Callable[[int], Any] = lambda num_done: 0,
    since: int = 0,
) -> list[Any]:
    """Check all that a power cut may leave of `root`; what each check found.

    Args:
        operations: all that was done since the folder `root` was empty.
        root: the folder.
        check: is given the number of operations done, what is left, and a folder that has it.
        promise: as `list_outcomes` has it.
        since: states after fewer operations are left out.
    """
    folder, results = root.with_name("found"), []
    for num_done, tree in list_outcomes(operations, root, promise=promise):
        if num_done < since:
            continue
        write_tree(tree, folder)
        try:
            results.append(check(num_done, tree, folder))
        except (AssertionError, BertkitError) as error:
            error.add_note(f"after {num_done} operations: {operations[:num_done][-3:]!r:.600}")
            raise
        finally:
            shutil.rmtree(folder)
    return results


def freeze(tree: Tree) -> Any:
    """A tree as something that can be compared and looked up."""
    return frozenset(
        (name, freeze(node) if isinstance(node, dict) else node) for name, node in tree.items()
    )


def write_tree(tree: Tree, folder: Path) -> None:
    """Make a tree on the real disk."""
    folder.mkdir()
    for name, node in tree.items():
        if isinstance(node, dict):
            write_tree(node, folder / name)
        else:
            (folder / name).write_bytes(node)


def read_tree(folder: Path) -> Tree:
    """A tree from the real disk."""
    return {
        path.name: read_tree(path) if path.is_dir() else path.read_bytes()
        for path in folder.iterdir()
    }


def rename_before_syncing(patches: pytest.MonkeyPatch) -> None:
    """Plant the bug that the model is there to find: a name goes to content that isn't safe."""

    def finish(file: DurableFile) -> None:
        file._flush()
        storage.rename(file._temporary, file.path)
        storage.sync(file._opened())
        file._close()
        storage.sync_folder(file.path.parent)

    patches.setattr(DurableFile, "finish", finish)
