"""Finding and opening corpus inputs: files, folders, globs, URLs of these, standard input."""

import glob
import io
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from bertkit.base.errors import (
    BertkitError,
    InputError,
    MissingFileError,
    StorageError,
    storage_errors,
)
from bertkit.base.output import WILDCARDS
from bertkit.base.remote import (
    RemoteFile,
    find_info,
    is_remote,
    list_folder,
    make_file,
    match_pattern,
    to_url,
)
from bertkit.data.encodings import (
    BUFFER_BYTES,
    COMPRESSIONS,
    SAMPLE_BYTES,
    DecodingCounts,
    classify,
    is_binary,
    is_foreign,
    open_text,
    refuse_encoding,
    unpack,
)
from bertkit.data.readers.document import ReaderSettings, ReadReport

STANDARD_INPUT = "-"
STANDARD_INPUT_NAME = "standard input"
INDEX_SUFFIX = ".bertkit"  # of the folder of a search index
FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".xml": "mediawiki"}
UNPACK, CONVERT, SAVE = "unpack it first", "make text of it first", "save it as CSV first"
NOT_TEXT = {
    **dict.fromkeys((".7z", ".lzma", ".rar", ".tar", ".tgz", ".xz", ".z", ".zip"), UNPACK),
    **dict.fromkeys((".doc", ".docx", ".epub", ".gif", ".jpeg", ".jpg", ".pdf", ".png"), CONVERT),
    **dict.fromkeys((".numbers", ".ods", ".xls", ".xlsb", ".xlsm", ".xlsx"), SAVE),
    ".json": "--format jsonl reads it if each line is an object",
}
TEXT_FORMATS = {"text", "jsonl"}  # the other readers detect this by themselves


@dataclass
class TextSource:
    """A file, or another source of text.

    Attributes:
        is_held_out: whether all of its documents are held out.
        refusal: why it is skipped, as a key of `OUTCOMES` and a cause; None if it is read.
    """

    name: str  # in messages and groups
    format: str  # a key of `READERS`
    path: Path | RemoteFile | None = None  # None for standard input and texts in memory
    # on disk, or characters in memory; None if unknown, as for a pipe
    size_bytes: int | None = None
    encoding: str | None = None  # None: UTF-8, or UTF-16 by its byte order mark
    texts: Sequence[str] = field(default=(), repr=False)  # of a source in memory
    sha256: str | None = None  # of these texts
    is_held_out: bool = False
    # called with the number of bytes read
    advance: Callable[[int], None] | None = field(default=None, compare=False, repr=False)
    # whether reading failed or was incomplete
    is_faulty: bool = field(default=False, init=False, compare=False)
    # how its lines decode, to recognize another encoding
    decoding: DecodingCounts = field(
        default_factory=DecodingCounts, init=False, compare=False, repr=False
    )
    refusal: tuple[str, str] | None = field(default=None, init=False, compare=False)

    @contextmanager
    def open(self, report: ReadReport) -> Iterator[io.BufferedReader]:
        """Open the decompressed content; text as UTF-8, without a byte order mark.

        A file that can't be read completely is counted, and the stream ends at the fault.
        """
        try:
            packed = sys.stdin.buffer if self.path is None else self.path.open("rb", buffering=0)
        except BertkitError:  # of a remote file: the rest of the corpus can't be reached either
            raise
        except OSError as error:
            self.count_fault(report, *classify(error))
            yield io.BufferedReader(io.BytesIO())
            return
        suffix = self.path.suffix.lower() if self.path else ""
        counted = io.BufferedReader(_CountedStream(packed, self), BUFFER_BYTES)
        try:
            stream = unpack(counted, suffix, partial(self.count_fault, report))
            yield self._open_text(stream, report)
        finally:
            if self.path is not None:
                packed.close()

    def count_fault(self, report: ReadReport, name: str, cause: str) -> None:
        """Count the fault that ends the reading of this source."""
        self.is_faulty = True
        report.add(name, f"{self.name} ({cause})")

    def refuse(self, name: str, cause: str) -> None:
        """Mark this source as skipped, with a size of 0 bytes."""
        self.refusal, self.size_bytes = (name, cause), 0

    def check_decodable(self, decoding: DecodingCounts, *, is_whole: bool) -> None:
        """Raise an error if lines seem to be in another encoding, and none was named."""
        if self.encoding is None:
            decoding.check(self.name, is_whole=is_whole)

    def _open_text(self, stream: io.BufferedReader, report: ReadReport) -> io.BufferedReader:
        """Return text as UTF-8, or an empty stream if it isn't text; other content as it is."""
        if self.format not in TEXT_FORMATS:
            return stream
        text = open_text(stream, self.encoding, partial(self._refuse_encoding, report))
        if not is_foreign(start := text.peek(SAMPLE_BYTES)[:SAMPLE_BYTES]):
            return text
        if self.encoding is None and not is_binary(start):
            refuse_encoding(self.name)
        self.count_fault(report, "not-text", "much of it is NUL or no UTF-8; convert it")
        return io.BufferedReader(io.BytesIO())

    def _refuse_encoding(self, report: ReadReport, cause: str) -> None:
        """Count the damage of a file with a byte order mark; refuse a wrong name of an encoding."""
        if self.encoding is not None:
            raise InputError(f"{self.name} {cause}; name another encoding")
        self.count_fault(report, "damaged", f"it {cause}")


class _CountedStream(io.RawIOBase):
    """A stream that reports to its source how many bytes are read."""

    def __init__(self, stream: BinaryIO | io.FileIO, source: TextSource) -> None:
        self._stream, self._source = stream, source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        content = self._stream.read(len(buffer)) or b""
        buffer[: len(content)] = content
        if self._source.advance is not None:
            self._source.advance(len(content))
        return len(content)


def find_sources(
    inputs: Sequence["str | TextSource"],
    settings: ReaderSettings,
    held_out_inputs: Sequence["str | TextSource"] = (),
) -> list[TextSource]:
    """Return all sources that the inputs name, in input order, with folders sorted.

    Held-out inputs come last, and what they name isn't read as part of the other inputs.
    """
    if not inputs:
        raise InputError("no input: name files, folders, globs or -")
    sources: list[TextSource] = []
    found: dict[object, str] = {}
    num_of_name: dict[str, int] = {}
    held_out = [(argument, list(_find(argument, settings))) for argument in held_out_inputs]
    excluded = {identity for _, pairs in held_out for _, identity in pairs}
    named = [(argument, _find(argument, settings)) for argument in inputs]
    for position, (argument, pairs) in enumerate([*named, *held_out]):
        is_held_out = position >= len(named)
        here: set[object] = set()
        for source, identity in pairs:
            if not is_held_out and identity in excluded:
                continue
            source.is_held_out = is_held_out
            if identity in here:
                source.refuse("repeated-file", f"it is {found[identity]}")
            elif identity in found:
                raise InputError(
                    f"{source.path or argument} would be read twice, as {found[identity]} and as"
                    f" {source.name}; name it once"
                )
            here.add(identity)
            found.setdefault(identity, source.name)
            repeat = num_of_name[source.name] = num_of_name.get(source.name, 0) + 1
            if repeat > 1:  # from another folder of the same name: different documents
                source.name = f"{source.name} ({repeat})"
            sources.append(source)
    return sources


def _find(
    argument: str | TextSource, settings: ReaderSettings
) -> Iterator[tuple[TextSource, object]]:
    """Yield the sources that one input names, each with its identity for finding duplicates."""
    if isinstance(argument, TextSource):
        yield argument, argument.sha256
    elif argument == STANDARD_INPUT:
        chosen = "text" if settings.format == "auto" else settings.format
        yield TextSource(STANDARD_INPUT_NAME, chosen, encoding=settings.encoding), argument
    else:
        for path, name in find_files(argument):
            yield _file_source(path, name, settings, is_named=path == Path(argument))


def find_files(argument: str) -> Iterator[tuple[Path | RemoteFile, str]]:
    """Yield the files that one input names, each with its name in messages and groups."""
    if is_remote(argument):
        for file, root in _find_remote(to_url(argument)):
            folder = PurePosixPath(root).name
            yield file, _escape(folder + file.url.removeprefix(root.rstrip("/")))
        return
    with storage_errors(Path(argument), "read"):
        for path, above in _find_local(argument):
            yield path, name_source(path, above)


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
            if PurePosixPath(match).suffix != INDEX_SUFFIX:
                yield from _find_remote(match, info)


def _is_left_out(name: str) -> bool:
    """Whether a file in a folder is hidden, or part of a search index."""
    *folders, _ = parts = name.split("/")
    is_of_index = any(folder.endswith(INDEX_SUFFIX) for folder in folders)
    return is_of_index or any(part.startswith(".") for part in parts)


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
        matches = [match for match in matches if Path(match).suffix != INDEX_SUFFIX]
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
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and not name.endswith(INDEX_SUFFIX)
        )
        yield from (Path(folder, name) for name in sorted(files) if not name.startswith("."))


def _refuse_folder(error: OSError) -> None:
    raise StorageError(f"{error.filename} can't be listed: {error.strerror}") from error


def _file_source(
    path: Path | RemoteFile, name: str, settings: ReaderSettings, *, is_named: bool
) -> tuple[TextSource, object]:
    """Return a file as a source.

    A pipe is read only if it was named explicitly; one inside a folder might never end.
    """
    is_auto = settings.format == "auto"
    source = TextSource(
        name,
        find_format(path) if is_auto else settings.format,
        path,
        size_bytes=0,
        encoding=settings.encoding,
    )
    identity: object = path
    if isinstance(path, RemoteFile):
        source.size_bytes, identity = path.size_bytes, path.url
    else:
        try:
            status = path.stat()
        except OSError:  # reading it will report and count the error
            return source, path
        source.size_bytes = status.st_size if stat.S_ISREG(status.st_mode) else None
        identity = status.st_dev, status.st_ino
    if source.size_bytes is None and not is_named:
        source.refuse("unreadable-file", "not a regular file")
    elif is_auto and (advice := NOT_TEXT.get(find_extension(path))):
        source.refuse("not-text", advice)
    return source, identity


def name_source(path: Path, root: Path) -> str:
    """Name a file by its folder and name, regardless of where the folder is."""
    folder = root.absolute()
    folder = folder if folder.name not in {"", ".."} else folder.resolve()
    return _escape((Path(folder.name) / path.relative_to(root)).as_posix())


def _escape(name: str) -> str:
    """Escape characters that can't be printed: line breaks and bytes that aren't UTF-8."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in name
    )


def find_format(path: Path | RemoteFile) -> str:
    """Return the format by a file's extension, plain text by default."""
    return FORMATS.get(find_extension(path), "text")


def find_extension(path: Path | RemoteFile) -> str:
    """Return a file's extension before that of a compression, in lower case; may be empty."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""
