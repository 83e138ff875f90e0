"""Files and folders by URL, such as s3://bucket/corpus: names, errors, listings and streams.

fsspec speaks with the services, retries, and finds the credentials where each service keeps them. A
URL that holds some is refused, since names of inputs are shown, logged and recorded.
"""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from bertkit.base.addresses import hide_secrets, is_remote, to_url
from bertkit.base.errors import BertkitError, MissingExtraError, MissingFileError, RemoteError
from bertkit.base.extras import describe_install

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

BUFFER_BYTES = 1 << 14
PIECE_BYTES = 8 << 20  # fetched at a time
# What file systems call the version of a file, the most reliable first.
VERSIONS = (
    "ETag",
    "etag",
    "md5Hash",
    "xet_hash",
    "blob_id",
    "sha256",
    "LastModified",
    "mtime",
    "created",
)
EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}


@contextmanager
def remote_errors(url: str, participle: str) -> Iterator[None]:
    """Turn any error of a file system into a bertkit error that names the URL and the cause.

    Raises:
        MissingFileError: there is no such file, folder or bucket.
        MissingExtraError: the package for the URL's scheme isn't installed.
        RemoteError: it can't be read, written … as `participle` says.
    """
    try:
        yield
    except (BertkitError, MemoryError):
        raise
    except FileNotFoundError:
        raise MissingFileError(f"{url} doesn't exist, or its bucket doesn't") from None
    except ImportError as error:
        extra = EXTRAS.get(url.partition(":")[0])
        advice = describe_install(extra) if extra else f"fsspec says: {error}"
        raise MissingExtraError(f"{url} needs a package that isn't installed; {advice}") from None
    except Exception as error:  # noqa: BLE001 - each file system has exceptions of its own
        cause = hide_secrets(str(error)) or type(error).__name__
        raise RemoteError(
            f"{url} can't be {participle}: {cause}; correct that, and run the command again"
        ) from None


def open_filesystem(url: str) -> "tuple[AbstractFileSystem, str]":
    """Return the file system of a URL, and the path of the URL in it."""
    import fsspec

    with remote_errors(url, "opened"):
        filesystem, path = fsspec.url_to_fs(url)
    return filesystem, path.rstrip("/")


@dataclass(frozen=True)
class RemoteFile:
    """A file of a remote folder, as far as readers need a path."""

    url: str
    size_bytes: int | None  # None if the service doesn't say
    version: str  # another one means another content

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return PurePosixPath(self.url).name

    @property
    def suffix(self) -> str:
        """The last extension, as in `pathlib`."""
        return PurePosixPath(self.url).suffix

    @property
    def suffixes(self) -> list[str]:
        """All extensions, as in `pathlib`."""
        return PurePosixPath(self.url).suffixes

    def __str__(self) -> str:
        return self.url

    def open(self, mode: str = "rb", buffering: int = 0) -> BinaryIO:
        """Open for reading, in pieces that are fetched when they are read."""
        filesystem, path = open_filesystem(self.url)
        with remote_errors(self.url, "read"):
            stream = filesystem.open(path, mode, block_size=PIECE_BYTES)
        return io.BufferedReader(_RemoteStream(stream, self.url), max(buffering, BUFFER_BYTES))


class _RemoteStream(io.RawIOBase):
    """A stream whose errors are bertkit's."""

    def __init__(self, stream: BinaryIO, url: str) -> None:
        self._stream, self._url = stream, url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._stream.seekable()

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        with remote_errors(self._url, "read"):
            content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        with remote_errors(self._url, "read"):
            return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def locate(name: str | Path) -> Path | RemoteFile:
    """Return a path, or the file of a URL with its size and version.

    Raises:
        MissingFileError: there is no file of that URL.
    """
    if not is_remote(name):
        return Path(name)
    url = to_url(name)
    info = find_info(url)
    if info is None or info["type"] == "directory":
        raise MissingFileError(f"{url} isn't a file")
    return make_file(url, info)


def find_info(url: str) -> Mapping[str, Any] | None:
    """Return what the file system tells about a file or folder; None if there is neither."""
    filesystem, path = open_filesystem(url)
    filesystem.invalidate_cache()
    try:
        with remote_errors(url, "read"):
            found: Mapping[str, Any] = filesystem.info(path)
    except MissingFileError:
        return None
    return found


def list_folder(url: str) -> dict[str, RemoteFile]:
    """List the files below a folder by their names in it, sorted; empty if there are none.

    Names are untrusted.
    """
    filesystem, path = open_filesystem(url)
    filesystem.invalidate_cache()
    with remote_errors(url, "listed"):
        found = filesystem.find(path, detail=True)
    return {
        key.removeprefix(f"{path}/"): make_file(filesystem.unstrip_protocol(key), info)
        for key, info in sorted(found.items())
        if info["type"] == "file" and key.startswith(f"{path}/") and not key.endswith("/")
    }


def match_pattern(url: str) -> dict[str, Mapping[str, Any]]:
    """Return the URLs of files and folders that a glob matches, with what `find_info` returns."""
    filesystem, path = open_filesystem(url)
    filesystem.invalidate_cache()
    with remote_errors(url, "listed"):
        found = filesystem.glob(path, detail=True)
    return {filesystem.unstrip_protocol(key): info for key, info in sorted(found.items())}


def make_file(url: str, info: Mapping[str, Any]) -> RemoteFile:
    """Return a file as the file system describes it."""
    size_bytes = info.get("size")
    version: Any = next((info[key] for key in VERSIONS if info.get(key) is not None), size_bytes)
    if hasattr(version, "timestamp"):  # a listing has another time zone, or a number
        version = version.timestamp()
    return RemoteFile(url, size_bytes, str(version))
