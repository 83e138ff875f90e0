"""Finding input files: what files, folders, globs and URLs of these name, and what each is."""

import glob
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from bertkit.base.addresses import is_remote, to_url
from bertkit.base.errors import MissingFileError, StorageError, storage_errors
from bertkit.base.output import WILDCARDS
from bertkit.base.remote import RemoteFile, find_info, list_folder, make_file, match_pattern
from bertkit.data.compression import COMPRESSIONS
from bertkit.reports.text import shorten

STANDARD_INPUT = "-"
STANDARD_INPUT_NAME = "standard input"
HUB_SCHEME = "hub:"  # of datasets
MAX_SHOWN_CHARS = 60
INDEX_SUFFIX = ".bertkit"  # of a search index, beside which SQLite may have further files
INDEX_SUFFIXES = tuple(f"{INDEX_SUFFIX}{more}" for more in ("", "-wal", "-shm", "-journal"))
UNPACK, CONVERT, SAVE = "unpack it first", "make text of it first", "save it as CSV first"
MARKUP = f"{CONVERT}; --format text reads its marks as words"
NOT_TEXT = {
    **dict.fromkeys((".7z", ".lzma", ".rar", ".tar", ".tgz", ".xz", ".z", ".zip"), UNPACK),
    **dict.fromkeys((".doc", ".docx", ".epub", ".gif", ".jpeg", ".jpg", ".pdf", ".png"), CONVERT),
    **dict.fromkeys((".numbers", ".ods", ".xls", ".xlsb", ".xlsm", ".xlsx"), SAVE),
    **dict.fromkeys((".htm", ".html", ".xhtml", ".rtf"), MARKUP),
    ".json": "--format jsonl reads it if each line is an object",
}


FileId = tuple[int, int] | str  # device and inode, or a URL


class FileState(NamedTuple):
    """What is known of a file without reading it.

    Its stamp stands for its content wherever a command asks whether a file changed: what has the
    same size and time of change is taken to be the same. A SHA-256 is for what outlives a file.
    """

    size_bytes: int | None  # None of a pipe or a device
    changed: int | str | None  # time of change in nanoseconds, or version of a remote file
    file_id: FileId  # the same under all names of the file
    is_folder: bool = False

    @property
    def stamp(self) -> dict[str, int | str | None]:
        """Size, and time of change or version."""
        name = "changed_ns" if isinstance(self.changed, int) else "version"
        return {"size_bytes": self.size_bytes, name: self.changed}


def look_at(path: Path | RemoteFile) -> FileState:
    """Return the state of a file; reading errors are those of `storage_errors`."""
    if isinstance(path, RemoteFile):
        return FileState(path.size_bytes, path.version, path.url)
    with storage_errors(path, "read"):
        status = path.stat()
    size_bytes = status.st_size if stat.S_ISREG(status.st_mode) else None
    file_id = status.st_dev, status.st_ino
    return FileState(size_bytes, status.st_mtime_ns, file_id, stat.S_ISDIR(status.st_mode))


def distinguish(name: str, taken: set[str]) -> str:
    """Return a name that no file of another folder of the same name has, and take it."""
    new, repeat = name, 1
    while new in taken:
        repeat += 1
        new = f"{name} ({repeat})"
    taken.add(new)
    return new


def find_files(argument: str) -> Iterator[tuple[Path | RemoteFile, str]]:
    """Yield the files that one input names, each with its name in messages and groups."""
    if is_remote(argument):
        for file, root in _find_remote(to_url(argument)):
            name = file.url.removeprefix(root.rstrip("/"))
            yield file, _escape(PurePosixPath(root).name + name)
        return
    with storage_errors(Path(argument), "read"):
        for path, above in _find_local(argument):
            folder = above.absolute()
            folder = folder if folder.name not in {"", ".."} else folder.resolve()
            yield path, _escape((Path(folder.name) / path.relative_to(above)).as_posix())


def _find_remote(
    url: str, info: Mapping[str, Any] | None = None
) -> Iterator[tuple[RemoteFile, str]]:
    """Yield the files of a URL, each with the URL of the folder that its name is relative to."""
    info = info or find_info(url)
    if info is not None and info["type"] == "file":
        yield make_file(url, info), url.rpartition("/")[0]
    elif info is not None:
        files = [file for name, file in list_folder(url).items() if not _is_left_out(name)]
        if not files:
            raise MissingFileError(f"the folder {url} has no file (hidden ones don't count)")
        for file in files:
            yield file, url
    else:
        matches = match_pattern(url) if WILDCARDS & set(url) else {}
        if "**" in url:  # files in a matching folder match by themselves
            matches = {url: info for url, info in matches.items() if info["type"] == "file"}
        if not matches:
            raise MissingFileError(f"{url} doesn't exist, and matches no file")
        for match, info in matches.items():
            if not match.endswith(INDEX_SUFFIXES):
                yield from _find_remote(match, info)


def _is_left_out(name: str) -> bool:
    """Whether a file in a folder, or the folder, is hidden, or a search index."""
    return any(part.startswith(".") or part.endswith(INDEX_SUFFIXES) for part in name.split("/"))


def _find_local(argument: str) -> Iterator[tuple[Path, Path]]:
    """Yield the files of a path, each with the folder that its name is relative to."""
    path = Path(argument)
    if path.is_dir():
        files = list(_walk(path))
        if not files:
            raise MissingFileError(f"the folder {path} has no file (hidden ones don't count)")
        for file in files:
            yield file, path
    elif path.exists() or path.is_symlink():
        yield path, path.parent
    else:
        # `Path.glob` doesn't accept absolute patterns.
        matches = sorted(glob.glob(argument, recursive=True))  # noqa: PTH207
        matches = [match for match in matches if not match.endswith(INDEX_SUFFIXES)]
        if "**" in argument:  # files in a matching folder match by themselves
            matches = [match for match in matches if not Path(match).is_dir()]
        if not matches:
            raise MissingFileError(f"{argument} doesn't exist, and matches no file")
        for match in matches:
            yield from _find_local(match)


def _walk(root: Path) -> Iterator[Path]:
    """Yield all files below a folder, sorted, following links once.

    Hidden ones and those of search indexes are left out.
    """
    seen = set()
    for folder, folders, files in os.walk(root, onerror=_refuse_folder, followlinks=True):
        place = Path(folder).stat()
        if (place.st_dev, place.st_ino) in seen:
            folders.clear()
            continue
        seen.add((place.st_dev, place.st_ino))
        folders[:] = sorted(name for name in folders if not _is_left_out(name))
        yield from (Path(folder, name) for name in sorted(files) if not _is_left_out(name))


def _refuse_folder(error: OSError) -> None:
    raise StorageError(f"{error.filename} can't be listed: {error.strerror}") from error


def _escape(name: str) -> str:
    """Escape characters that can't be printed: line breaks and bytes that aren't UTF-8."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in name
    )


def find_extension(path: Path | RemoteFile) -> str:
    """Return a file's extension before that of a compression, in lower case; may be empty."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def find_pattern(name: str) -> str:
    """Return a glob of the files like this one; a folder and a URL stay themselves."""
    if is_remote(name) or Path(name).is_dir():
        return name
    folder, slash, file = name.rpartition("/")
    _, dot, ending = file.rpartition(".")
    return f"{folder}{slash}*.{ending}" if dot else name


def name_input(name: str | Path) -> str:
    """Return the name of a file, folder, glob or another source, if there is one."""
    if is_remote(name):
        return to_url(name)
    text = str(name)
    is_source = text == STANDARD_INPUT or text.startswith(HUB_SCHEME)
    if is_source or exists(text) or any(glob.iglob(text, recursive=True)):  # noqa: PTH207
        return text
    raise MissingFileError(
        f"there is no file {shorten(text, MAX_SHOWN_CHARS)!r}; a string is the name of a file, and"
        " a text goes into a list: [text]"
    )


def exists(name: str) -> bool:
    """Whether a file has this name; one that may not be looked at does, for its reader to tell."""
    if not name:  # `Path` takes it for the current folder
        return False
    try:
        Path(name).stat()
    except PermissionError:
        return True
    except (OSError, ValueError):  # it doesn't exist, is too long, or has a NUL
        return False
    return True
