"""Files of the Hub in the cache that huggingface_hub and all that use it share.

A model's folder there holds `blobs/`, files under their hashes; `snapshots/<commit>/`, links to
them under their names; and `refs/`, the commit of each branch. huggingface_hub itself can't be
asked to fill it: it verifies the size of what it gets by HTTP and not the hash, writes whatever a
server sends until the connection ends, uses a server's ETag as a path, and from 2.0 on begins an
interrupted file again.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from bertkit.base import storage
from bertkit.base.errors import HubError, UnsafeFileError, storage_errors
from bertkit.base.files import make_folder, read_text, write_all, write_file
from bertkit.base.progress import ProgressBar
from bertkit.checkpoints.hub.client import UnreachableError, load_constants, open_stream
from bertkit.checkpoints.hub.listing import COMMIT_PATTERN, HubFile

PARTIAL_SUFFIX = ".incomplete"
# Attempts in a row that bring less than this; those that bring more don't count.
NUM_ATTEMPTS = 3
PROGRESS_BYTES = 1 << 20
WAIT_SECONDS = 1.0


class ModelCache:
    """One model's folder in the cache."""

    def __init__(self, model_id: str) -> None:
        root = Path(load_constants().HF_HUB_CACHE)
        name = "--".join(["models", *model_id.split("/")])
        self.model_id = model_id
        self.folder = root / name
        self._locks = root / ".locks" / name

    def snapshot(self, commit: str) -> Path:
        """Where the files of a commit are."""
        return self.folder / "snapshots" / commit

    def read_ref(self, revision: str) -> str | None:
        """The commit that a branch or tag stood for when it was last asked for.

        What isn't the name of a commit, such as a path, is none.
        """
        path = self.folder / "refs" / revision
        commit = read_text(path, limit_bytes=100).strip() if path.is_file() else ""
        return commit if re.fullmatch(COMMIT_PATTERN, commit) else None

    def check_snapshot(self, commit: str) -> None:
        """See that a snapshot is a folder of the cache."""
        snapshot = self.snapshot(commit)
        if snapshot.is_symlink() or snapshot.parent.is_symlink():
            raise UnsafeFileError(
                f"{snapshot} is a link, and must be a folder of the cache; remove it"
            )

    def write_ref(self, revision: str, commit: str) -> None:
        """Remember what a branch or tag stands for."""
        path = self.folder / "refs" / revision
        if revision == commit:
            return
        with self._hold(commit):
            if self.read_ref(revision) != commit:
                make_folder(path.parent)
                write_file(path, commit.encode())

    def has(self, commit: str, file: HubFile) -> bool:
        """Whether a file is in its snapshot, whole; its hash was looked at when it came."""
        return _size(self.snapshot(commit) / file.name) == file.size_bytes

    def bytes_left(self, file: HubFile) -> int:
        """How much of a file has still to be fetched; another commit may have it already."""
        there = max(_size(self._blob(file)) or 0, _size(self._partial(file)) or 0)
        return max(0, file.size_bytes - there)

    def place(self, commit: str, file: HubFile, url: str, bar: ProgressBar) -> None:
        """Link a file to its blob, and fetch that first if need be."""
        pointer, blob = self.snapshot(commit) / file.name, self._blob(file)
        with self._hold(file.digest):
            if self.has(commit, file):  # another process was quicker
                return
            # One that another program left is looked at, too: its name alone says nothing.
            if _size(blob) != file.size_bytes or _find_digest(blob, file) != file.digest:
                make_folder(blob.parent)
                self._download(file, url, bar)
                self._verify(file)
            make_folder(pointer.parent)
            with storage_errors(pointer, "written"):
                _link(pointer, blob)

    def _blob(self, file: HubFile) -> Path:
        return self.folder / "blobs" / file.digest

    def _partial(self, file: HubFile) -> Path:
        return self._blob(file).with_name(file.digest + PARTIAL_SUFFIX)

    @contextmanager
    def _hold(self, name: str) -> Iterator[None]:
        """Keep other processes from fetching the same; huggingface_hub takes the same lock."""
        make_folder(self._locks)
        path = self._locks / f"{name}.lock"
        lock = FileLock(path)
        with storage_errors(path, "written"):
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _download(self, file: HubFile, url: str, bar: ProgressBar) -> None:
        """Bring the partial file to its full size, from where an earlier attempt left it."""
        partial = self._partial(file)
        num_failures = 0
        while _size(partial) != file.size_bytes:
            before = _size(partial) or 0
            if before > file.size_bytes:  # whose ever it is, it isn't a beginning of this file
                before = 0
            try:
                with open_stream(url, self.model_id, start_byte=before) as (first_byte, pieces):
                    self._receive(file, first_byte, pieces, bar)
            except UnreachableError:
                has_progress = (_size(partial) or 0) >= before + PROGRESS_BYTES
                num_failures = 1 if has_progress else num_failures + 1
                if num_failures == NUM_ATTEMPTS:
                    raise
                time.sleep(WAIT_SECONDS * num_failures)

    def _receive(
        self, file: HubFile, first_byte: int, pieces: Iterator[bytes], bar: ProgressBar
    ) -> None:
        """Write what comes behind what is there, all that was announced and never more."""
        partial = self._partial(file)
        num_bytes = first_byte
        with storage_errors(partial, "written"):
            descriptor = (storage.open_end if first_byte else storage.open_new)(partial)
            try:
                for piece in pieces:
                    num_bytes += len(piece)
                    if num_bytes > file.size_bytes:
                        storage.remove(partial)
                        raise HubError(
                            f"{file.name} of {self.model_id} is longer than the {file.size_bytes:,}"
                            " bytes that the Hub announced; it was thrown away: report it there"
                        )
                    write_all(descriptor, memoryview(piece))
                    bar.advance(len(piece))
                storage.sync(descriptor)
            finally:
                storage.close(descriptor)
        if num_bytes < file.size_bytes:
            raise UnreachableError(
                f"{file.name} of {self.model_id} ended after {num_bytes:,} of {file.size_bytes:,}"
                " bytes; run the command again to go on there"
            )

    def _verify(self, file: HubFile) -> None:
        """Give a file the name of its hash, if that is what it has."""
        partial, blob = self._partial(file), self._blob(file)
        found = _find_digest(partial, file)
        with storage_errors(blob, "written"):
            if found != file.digest:
                storage.remove(partial)
                raise HubError(
                    f"{file.name} of {self.model_id} isn't what the Hub announced: expected the"
                    f" hash {file.digest}, got {found}; it was thrown away: try again, or report it"
                )
            storage.rename(partial, blob)
            storage.sync_folder(blob.parent)


def _size(path: Path) -> int | None:
    """The size of a file, through links; None where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def _find_digest(path: Path, file: HubFile) -> str:
    """The hash of what lies under a path, of the kind that the Hub lists for the file."""
    # git's hash of a file: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
    start = hashlib.sha1(b"blob %d\0" % file.size_bytes, usedforsecurity=False)
    with storage_errors(path, "read"), path.open("rb") as stream:
        return hashlib.file_digest(
            stream, hashlib.sha256 if file.large else lambda: start
        ).hexdigest()


def _link(pointer: Path, blob: Path) -> None:
    """Let a name lead to a blob; where the system has no links, it takes the blob's place."""
    if os.path.lexists(pointer):
        storage.remove(pointer)
    try:
        storage.link(pointer, os.path.relpath(blob, pointer.parent))
    except OSError:
        storage.rename(blob, pointer)
    storage.sync_folder(pointer.parent)
