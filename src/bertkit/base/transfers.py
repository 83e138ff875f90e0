"""One-way copies: what is read from a URL is downloaded first, finished output is uploaded.

Copies lie in the user's cache, since models and shards are mapped, and output is locked and renamed
while it is written. A download is named by the versions of its files, so it never changes and what
is there needs no record. An upload sends the files that mark others as complete last.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import is_dataclass, replace
from functools import wraps
from inspect import signature
from pathlib import Path, PurePosixPath
from typing import Any, ParamSpec, TypeVar, cast

from filelock import FileLock

from bertkit.base.addresses import is_remote, to_url
from bertkit.base.errors import (
    BertkitError,
    MissingFileError,
    RemoteError,
    ResumeError,
    StoppedError,
    StorageError,
    UnsafeFileError,
    locking_errors,
    storage_errors,
)
from bertkit.base.files import REPLACED_SUFFIX, TEMPORARY_SUFFIX, durable_file, make_folder
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
RECORDS = ".made"  # folder of records, each of which marks one output of many as complete
UNFINISHED = (TEMPORARY_SUFFIX, REPLACED_SUFFIX, LOCK_FILE, ".unfinished", ".unfinished.json")
NUM_CONNECTIONS = 8
MAX_FILES = 1_000_000

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Choose = Callable[[Collection[str]], Collection[str]]


def fetch(name: str | Path, choose: Choose = list) -> Path:
    """Return a path on this disk: of a URL, its copy in the cache, downloaded if it is new.

    Args:
        choose: returns the names of the files to download, of all names in the folder.

    Raises:
        MissingFileError: there is nothing at the URL.
        BertkitError: it can't be read, or has names that lead out of its folder.
    """
    if not is_remote(name):
        return Path(name)
    url = to_url(name).rstrip("/")
    info = find_info(url)
    if info is None:
        raise MissingFileError(f"{url} doesn't exist")
    is_file = info["type"] == "file"
    found = _list_beside(url) if is_file else list_folder(url)
    _check_names(url, found)
    files = {name: found[name] for name in sorted(choose(found))}
    versions = "\n".join(f"{name} {file.size_bytes} {file.version}" for name, file in files.items())
    home = _find_home(url, "reading") / _shorten_hash(versions)
    path = home / url.rpartition("/")[2]
    root = home if is_file else path
    with locking_errors(home), FileLock(home / LOCK_FILE, fallback_to_soft=False):
        missing = {name: file for name, file in files.items() if not (root / name).exists()}
        _check_room(url, home, sum(file.size_bytes or 0 for file in missing.values()))
        make_folder(root)
        _in_parallel(lambda name: _download(missing[name], root / name), missing)
    return path


def _find_home(url: str, use: str) -> Path:
    """Return the folder of the cache for a URL."""
    name = url.rpartition("/")[2]
    check_name("the URL", name)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "bertkit" / use / f"{name}-{_shorten_hash(url)}"


def _shorten_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _list_beside(url: str) -> dict[str, RemoteFile]:
    """List a file and those beside it whose names begin with its name and a dot."""
    matches = match_pattern(f"{url}*").items()
    named = {PurePosixPath(key).name: make_file(key, info) for key, info in matches}
    beside = f"{PurePosixPath(url).name}."
    return {name: file for name, file in named.items() if f"{name}.".startswith(beside)}


def _check_names(url: str, names: Collection[str]) -> None:
    """Raise `UnsafeFileError` where the names of a listing can't be those of a copy."""
    if len(names) > MAX_FILES:
        raise UnsafeFileError(f"{url} has over {MAX_FILES:,} files; name a smaller folder")
    for name in names:
        check_name(url, name)
        if str(PurePosixPath(name)) != name:  # two names of one file
            raise UnsafeFileError(f"{url} has a file named {name[:80]!r}; rename it")


def _check_room(url: str, home: Path, num_bytes: int) -> None:
    make_folder(home)
    with storage_errors(home, "read"):
        free = shutil.disk_usage(home).free
    if num_bytes > free:
        raise StorageError(
            f"{url} takes {num_bytes / 1e9:,.1f} GB, and {home} has {free / 1e9:,.1f} GB free; set"
            " XDG_CACHE_HOME to a folder on a larger disk"
        )


def _in_parallel(function: Callable[[str], object], names: Iterable[str]) -> None:
    """Call a function for each name, several at a time."""
    with ThreadPoolExecutor(NUM_CONNECTIONS) as threads:
        list(threads.map(function, names))


def _download(file: RemoteFile, path: Path) -> None:
    """Download a file, whole or not at all."""
    filesystem, key = open_filesystem(file.url)
    make_folder(path.parent)
    with (
        remote_errors(file.url, "read"),
        filesystem.open(key, block_size=PIECE_BYTES) as stream,
        durable_file(path) as copy,
    ):
        while piece := stream.read(PIECE_BYTES):
            copy.write(piece)
        if file.size_bytes not in {None, copy.record().size_bytes}:
            raise RemoteError(f"{file.url} changed while it was read; run the command again")


def uploads_output(
    *, files: Collection[str] = ()
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Let the argument `output` of a function be a URL, to which the finished output is uploaded.

    The function gets a folder of the cache in its place, in which the next call resumes; its errors
    name the URL, but a `StoppedError` the folder. A result's `output` is the URL, too. Where some
    of many files failed, the others are uploaded.

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
            url = to_url(output).rstrip("/")
            is_file = PurePosixPath(url).suffix.lower() in files
            # Settings may let a command write beside, or over, outputs of another machine.
            adds = any(
                getattr(value, "overwrite", False) or getattr(value, "shard", None) is not None
                for value in bound.arguments.values()
            )
            path = _begin_output(url, is_file=is_file, adds=adds)
            bound.arguments["output"] = path
            try:
                result = function(*bound.args, **bound.kwargs)
            except StoppedError:  # names what is saved on this disk
                raise
            except BertkitError as error:
                error.args = (str(error).replace(str(path), url),)
                if error.has_finished_parts:
                    upload(path, url)
                raise
            upload(path, url)
            named: Any = result
            if is_dataclass(result) and getattr(result, "output", None) == path:
                named = replace(named, output=Path(output))
            return cast("Result", named)

        return call

    return decorate


def _begin_output(url: str, *, is_file: bool, adds: bool) -> Path:
    """Return the path of the cache at which an output is written before it is uploaded."""
    path = _find_home(url, "writing") / url.rpartition("/")[2]
    marks = [url] if is_file else [f"{url}/{seal}" for seal in (*SEALS, "settings.json")]
    if not is_file and not adds and not path.exists() and find_info(f"{url}/{RECORDS}") is not None:
        raise ResumeError(
            f"{url} has a result, and this machine has no copy to resume; name another --output, or"
            " replace it by --overwrite"
        )
    if not path.exists() and any(find_info(mark) is not None for mark in marks):
        raise ResumeError(
            f"{url} has a result, and this machine has no copy to resume; remove it there, or name"
            " another --output"
        )
    make_folder(path.parent)
    announce(f"{url} is uploaded once it is finished; until then it is {path}, to resume from")
    return path


def upload(path: Path, url: str) -> None:
    """Upload a finished folder, or a file and those beside it, with what marks it complete last.

    Nothing is sent if the same is there: the marks, and files of the same sizes.

    Raises:
        RemoteError: a file can't be written; then none that is there marks others as complete.
    """
    root, base = (path.parent, url.rpartition("/")[0]) if path.is_file() else (path, url)
    files = {
        file.relative_to(root).as_posix(): file
        for file in sorted(root.rglob("*"))
        if file.is_file()
        and not any(part.endswith(UNFINISHED) for part in file.relative_to(root).parts)
    }
    marks = (*SEALS, f"{path.name}.json")
    records = [name for name in files if name.startswith(f"{RECORDS}/")]
    seals = [name for name, file in files.items() if file.name in marks and name not in records]
    marking = {*records, *seals}
    if marking and _is_uploaded(files, marking, url, base):
        announce(f"{url} has this result already; nothing is uploaded")
        return
    for name in sorted(seals, key=lambda name: name.count("/")):
        _remove(f"{base}/{name}")
    _in_parallel(lambda name: _remove(f"{base}/{name}"), records)
    for names in (files.keys() - marking, records):
        _in_parallel(lambda name: _send(files[name], f"{base}/{name}"), names)
    for name in sorted(seals, key=lambda name: name.count("/"), reverse=True):
        _send(files[name], f"{base}/{name}")
    announce(f"uploaded {url}")


def _is_uploaded(files: Mapping[str, Path], seals: Collection[str], url: str, base: str) -> bool:
    """Whether files of the same sizes are there, and seals of the same content."""
    try:
        there = list_folder(url) if url == base else _list_beside(url)
    except (MissingFileError, RemoteError):  # credentials may allow nothing but writing
        return False
    for name, file in files.items():
        with storage_errors(file, "read"):
            size_bytes = file.stat().st_size
        if name not in there or there[name].size_bytes != size_bytes:
            return False
    is_same = dict.fromkeys(seals, False)

    def compare(name: str) -> None:
        filesystem, key = open_filesystem(f"{base}/{name}")
        with suppress(MissingFileError, RemoteError), remote_errors(f"{base}/{name}", "read"):
            is_same[name] = filesystem.cat_file(key) == files[name].read_bytes()

    _in_parallel(compare, seals)
    return all(is_same.values())


def _remove(url: str) -> None:
    filesystem, key = open_filesystem(url)
    with suppress(MissingFileError), remote_errors(url, "removed"):
        filesystem.rm_file(key)


def _send(file: Path, url: str) -> None:
    filesystem, key = open_filesystem(url)
    try:
        with remote_errors(url, "written"):
            filesystem.put_file(str(file), key)
    except MissingFileError:
        if file.exists():
            raise
        raise MissingFileError(
            f"{file} was removed while it was uploaded to {url}; run the command again"
        ) from None
