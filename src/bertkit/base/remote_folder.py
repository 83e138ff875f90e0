"""Remote folders as copies on this disk, for what is locked, renamed and mapped.

A copy lies in the user's cache, beside a record of the version of each remote file that it has.
What a command writes is published as soon as it is whole. The files that mark others as complete
go last, and are removed first, so that a reader never takes a half for the whole. Object stores
have no locks: one machine at a time may write a folder.
"""

import hashlib
import os
import re
import shutil
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass, replace
from functools import wraps
from inspect import signature
from itertools import filterfalse
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal, ParamSpec, TypeVar, cast

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, NonNegativeInt

from bertkit.base.addresses import is_remote, to_url
from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.errors import (
    BertkitError,
    MissingFileError,
    RemoteError,
    StorageError,
    UnsafeFileError,
    locking_errors,
    storage_errors,
)
from bertkit.base.files import (
    REPLACED_SUFFIX,
    TEMPORARY_SUFFIX,
    durable_file,
    make_folder,
    remove_folder,
)
from bertkit.base.members import check_name
from bertkit.base.output import LOCK_FILE
from bertkit.base.progress import announce
from bertkit.base.remote import (
    PIECE_BYTES,
    RemoteFile,
    find_info,
    list_folder,
    make_file,
    match_pattern,
    open_filesystem,
    remote_errors,
)

SEALS = ("manifest.json", "metrics.json")  # each marks what lies beside and below it as complete
STEP_FOLDER = re.compile(r"(.*/)?step-[0-9]+(?=/)")  # written as a whole; sealed by a manifest
GROWING = re.compile(r"(.*/)?(log\.jsonl|tensorboard/.*)")  # goes along when others are published
UNFINISHED = (TEMPORARY_SUFFIX, REPLACED_SUFFIX, LOCK_FILE, ".unfinished", ".unfinished.json")
NUM_CONNECTIONS = 8
INTERVAL_SECONDS = 5.0  # between looks for what is new
MAX_FILES = 1_000_000

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Choose = Callable[[Collection[str]], Collection[str]]


class CopiedFile(BaseModel):
    """A file at the time when it was the same here and there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str | None  # of the remote file; None while it is being published
    size_bytes: NonNegativeInt
    changed_ns: int  # of the copy


class CopyRecord(ChecksummedModel):
    """The files of a copy, by their names in the folder."""

    description: ClassVar[str] = "the record of a copy of a remote folder"
    limit_bytes: ClassVar[int] = 1 << 30

    url: str
    files: dict[str, CopiedFile]


class RemoteCopy:
    """The copy of a remote folder, or of a file and those beside it that begin with its name.

    Attributes:
        path: the folder or file on this disk.
    """

    def __init__(
        self, url: str, use: Literal["reading", "writing"], *, is_file: bool = False
    ) -> None:
        self.url, self._is_file = url.rstrip("/"), is_file
        above, _, name = self.url.rpartition("/")
        check_name("the URL", name)
        digest = hashlib.sha256(self.url.encode()).hexdigest()[:12]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self._home = cache / "bertkit" / use / f"{name}-{digest}"
        self.path = self._home / "files" / name
        self._root, self._base = (self.path.parent, above) if is_file else (self.path, self.url)
        self._filesystem, self._key = open_filesystem(self._base)
        self._files: dict[str, CopiedFile] = {}

    def pull(self, choose: Choose | None = None) -> None:
        """Fetch what is missing; what another machine has published since replaces ours.

        Args:
            choose: returns the names to fetch, of all names; by default all are.
        """
        with self._held():
            listed = self._list()
            here = self._scan().keys()
            changed = {name for name in listed.keys() & here if self._is_other(name, listed[name])}
            others = here - listed.keys()
            gone = {name for name in others if (known := self._files.get(name)) and known.version}
            if changed or gone:  # by another machine, whose steps count
                self._remove_outdated(gone | set(filter(STEP_FOLDER.match, others)))
            wanted = {
                name: listed[name]
                for name in (listed if choose is None else choose(listed))
                if name in changed or not (self._root / name).exists()
            }
            self._check_room(sum(file.size_bytes or 0 for file in wanted.values()))
            try:
                self._in_parallel(lambda name: self._fetch(name, wanted[name]), wanted)
            finally:
                self._save()

    def push(self, *, is_last: bool = False) -> None:
        """Publish what is new and whole, and remove there what was removed here."""
        with self._held():
            if not self._root.exists():  # removed by hand: there everything stays
                return
            found = self._scan()
            new = {name for name, file in found.items() if not self._is_published(name, file)}
            gone = self._files.keys() - found.keys()
            if not gone and not (new if is_last else set(filterfalse(GROWING.fullmatch, new))):
                return
            seals = sorted(filter(self._is_seal, new), key=_depth, reverse=True)
            outdated = set(filter(self._is_seal, self._files.keys() & (new | gone)))
            self._remove(sorted(outdated, key=_depth))
            self._files |= {name: found[name] for name in new}
            self._save()  # if this process is killed, these may be there or not
            try:
                is_whole = all(self._in_parallel(self._send, new.difference(seals)))
                if is_whole and all(map(self._send, seals)):
                    self._remove(gone - outdated)
                    for seal in seals:
                        announce(f"published {self._base}/{seal}".removesuffix(f"/{SEALS[0]}"))
            finally:
                self._save()

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Keep other processes of this machine from pulling and pushing, and read the record."""
        make_folder(self._home)
        record = self._home / "record.json"
        lock = FileLock(self._home / LOCK_FILE, fallback_to_soft=False)
        with locking_errors(self._home), lock:
            self._files = CopyRecord.load(record).files if record.exists() else {}
            yield

    def _save(self) -> None:
        CopyRecord(url=self.url, files=self._files).save(self._home / "record.json")

    def _list(self) -> dict[str, RemoteFile]:
        """List the remote files of the copy by name, without folders of steps that aren't whole."""
        try:
            if self._is_file:
                matches = match_pattern(f"{self.url}*").items()
                named = {PurePosixPath(url).name: make_file(url, info) for url, info in matches}
                beside = f"{self.path.name}."
                found = {name: named[name] for name in named if f"{name}.".startswith(beside)}
            else:
                found = list_folder(self.url)
        except MissingFileError:
            if find_info(self.url.rpartition("/")[0]) is None:
                raise
            found = {}
        if len(found) > MAX_FILES:
            raise UnsafeFileError(f"{self.url} has over {MAX_FILES:,} files; name a smaller folder")
        for name in found:
            check_name(self.url, name)
            if str(PurePosixPath(name)) != name:  # two names of one file
                raise UnsafeFileError(f"{self.url} has a file named {name[:80]!r}; rename it")
        return {
            name: file
            for name, file in found.items()
            if not _is_unfinished(name)
            and ((step := STEP_FOLDER.match(name)) is None or f"{step[0]}/{SEALS[0]}" in found)
        }

    def _scan(self) -> dict[str, CopiedFile]:
        """Find the files of this disk that are whole."""
        found = {}
        for folder, folders, names in os.walk(self._root):
            folders[:] = [name for name in folders if not _is_unfinished(name)]
            for name in filterfalse(_is_unfinished, names):
                path = Path(folder, name)
                with suppress(FileNotFoundError):
                    found[path.relative_to(self._root).as_posix()] = _measure(path, None)
        return found

    def _is_seal(self, name: str) -> bool:
        """Whether a file marks others as complete."""
        beside = f"{self.path.name}.json" if self._is_file else ""
        return PurePosixPath(name).name in (*SEALS, beside)

    def _is_published(self, name: str, found: CopiedFile) -> bool:
        """Whether a file is the one that was published or fetched."""
        known = self._files.get(name)
        if known is None or known.version is None:
            return False
        return known.model_copy(update={"version": None}) == found

    def _is_other(self, name: str, file: RemoteFile) -> bool:
        """Whether another machine has published a file since this one knew it."""
        known = self._files.get(name)
        return known is None or known.version not in {None, file.version}

    def _remove_outdated(self, names: Iterable[str]) -> None:
        """Remove files of the copy; of a step, its folder."""
        for name in names:
            step = STEP_FOLDER.match(name)
            remove_folder(self._root / (name if step is None else step[0]))
            self._files.pop(name, None)

    def _check_room(self, num_bytes: int) -> None:
        with storage_errors(self._home, "read"):
            free = shutil.disk_usage(self._home).free
        if num_bytes > free:
            raise StorageError(
                f"{self.url} takes {num_bytes / 1e9:,.1f} GB, and {self._home} has"
                f" {free / 1e9:,.1f} GB free; set XDG_CACHE_HOME to a folder on a larger disk"
            )

    def _in_parallel(self, function: Callable[[str], Result], names: Iterable[str]) -> list[Result]:
        """Call a function for each name, several at a time."""
        with ThreadPoolExecutor(NUM_CONNECTIONS) as threads:
            return list(threads.map(function, names))

    def _fetch(self, name: str, file: RemoteFile) -> None:
        """Fetch a file, whole or not at all."""
        path = self._root / name
        make_folder(path.parent)
        with (
            remote_errors(file.url, "read"),
            self._filesystem.open(f"{self._key}/{name}", block_size=PIECE_BYTES) as stream,
            durable_file(path) as copy,
        ):
            while piece := stream.read(PIECE_BYTES):
                copy.write(piece)
            if file.size_bytes not in {None, copy.record().size_bytes}:
                raise RemoteError(f"{file.url} changed while it was read; run the command again")
        self._files[name] = _measure(path, file.version)

    def _send(self, name: str) -> bool:
        """Publish a file; False if it was removed meanwhile."""
        path, url, key = self._root / name, f"{self._base}/{name}", f"{self._key}/{name}"
        try:
            measured = _measure(path, None)
            with remote_errors(url, "written"):
                self._filesystem.put_file(str(path), key)
                version = make_file(url, self._filesystem.info(key)).version
        except FileNotFoundError:  # `MissingFileError` is one, too
            if path.exists():
                raise
            return False
        self._files[name] = measured.model_copy(update={"version": version})
        return True

    def _remove(self, names: Iterable[str]) -> None:
        """Remove remote files, if they exist."""
        for name in names:
            with suppress(MissingFileError), remote_errors(f"{self._base}/{name}", "removed"):
                self._filesystem.rm_file(f"{self._key}/{name}")
            self._files.pop(name, None)


def _measure(path: Path, version: str | None) -> CopiedFile:
    status = path.stat()
    return CopiedFile(version=version, size_bytes=status.st_size, changed_ns=status.st_mtime_ns)


def _is_unfinished(name: str) -> bool:
    return any(part.endswith(UNFINISHED) for part in name.split("/"))


def _depth(name: str) -> int:
    return name.count("/")


def fetch(name: str | Path, choose: Choose | None = None) -> Path:
    """Return a path on this disk: of a URL, its copy; arguments as in `RemoteCopy.pull`.

    Raises:
        MissingFileError: there is nothing at the URL.
        BertkitError: it can't be read, or has names that lead out of its folder.
    """
    if not is_remote(name):
        return Path(name)
    url = to_url(name)
    info = find_info(url)
    if info is None:
        raise MissingFileError(f"{url} doesn't exist")
    copy = RemoteCopy(url, "reading", is_file=info["type"] == "file")
    copy.pull(choose)
    return copy.path


@contextmanager
def published(url: str, *, is_file: bool = False) -> Iterator[Path]:
    """Yield the copy of a remote folder to write in, and publish what is written there.

    Errors of the block name the URL where they named the copy.
    """
    copy, is_over = RemoteCopy(url, "writing", is_file=is_file), threading.Event()
    copy.pull()
    thread = threading.Thread(target=_publish_until, args=(copy, is_over), daemon=True)
    thread.start()
    try:
        try:
            yield copy.path
        finally:
            is_over.set()
            thread.join()
    except Exception as error:
        _try_to_push(copy)
        if isinstance(error, BertkitError):
            error.args = (str(error).replace(str(copy.path), copy.url),)
        raise
    copy.push(is_last=True)


def _publish_until(copy: RemoteCopy, is_over: threading.Event) -> None:
    """Publish what is new from time to time; a failure is announced once, and tried again."""
    announced = ""
    while not is_over.wait(INTERVAL_SECONDS):
        announced = _try_to_push(copy, announced)


def _try_to_push(copy: RemoteCopy, announced: str = "") -> str:
    """Publish what is new; announce what prevents it, unless that was announced, and return it."""
    try:
        copy.push()
    except BertkitError as error:
        if str(error) != announced:
            announce(f"WARNING: not published yet: {error}")
        return str(error)
    return announced


def publishes_output(
    *, files: Collection[str] = ()
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Let the argument `output` of a function be a URL; a result's `output` then is the URL, too.

    Args:
        files: endings of outputs that are files; others are folders.
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        names = signature(function)

        @wraps(function)
        def call(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
            bound = names.bind(*arguments, **options)
            output = bound.arguments["output"]
            if not is_remote(output):
                return function(*arguments, **options)
            is_file = PurePosixPath(output).suffix.lower() in files
            with published(to_url(output), is_file=is_file) as path:
                bound.arguments["output"] = path
                result = function(*bound.args, **bound.kwargs)
            named: Any = result
            if is_dataclass(result) and getattr(result, "output", None) == path:
                named = replace(named, output=Path(output))
            return cast("Result", named)

        return call

    return decorate
