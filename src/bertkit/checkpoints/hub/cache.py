"""Hub files in the cache shared with huggingface_hub and everything built on it.

A model's folder there holds `blobs/`, files named by hash; `snapshots/<commit>/`, links to the
blobs by file name; and `refs/`, the commit of each branch. The download code of huggingface_hub
isn't used because, over HTTP, it verifies a file's size but not its hash, writes whatever a server
sends until the connection ends, uses the server's ETag as a path, and from 2.0 on restarts an
interrupted file from the beginning.
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
# Consecutive attempts that each receive fewer than PROGRESS_BYTES; others don't count.
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
        """Return the folder of a commit's files."""
        return self.folder / "snapshots" / commit

    def read_ref(self, revision: str) -> str | None:
        """Return the commit that a branch or tag pointed to when last fetched.

        Return None if the file doesn't contain a commit hash (a path, for example).
        """
        path = self.folder / "refs" / revision
        commit = read_text(path, limit_bytes=100).strip() if path.is_file() else ""
        return commit if re.fullmatch(COMMIT_PATTERN, commit) else None

    def check_snapshot(self, commit: str) -> None:
        """Check that a snapshot is a real folder in the cache and not a link."""
        snapshot = self.snapshot(commit)
        if snapshot.is_symlink() or snapshot.parent.is_symlink():
            raise UnsafeFileError(
                f"{snapshot} is a link, and must be a folder of the cache; remove it"
            )

    def write_ref(self, revision: str, commit: str) -> None:
        """Record the commit that a branch or tag points to."""
        path = self.folder / "refs" / revision
        if revision == commit:
            return
        with self._hold(commit):
            if self.read_ref(revision) != commit:
                make_folder(path.parent)
                write_file(path, commit.encode())

    def has(self, commit: str, file: HubFile) -> bool:
        """Whether the snapshot has the file in full; its hash was verified on download."""
        return _size(self.snapshot(commit) / file.name) == file.size_bytes

    def bytes_left(self, file: HubFile) -> int:
        """Return how many bytes are still to be fetched; another commit may have some already."""
        there = max(_size(self._blob(file)) or 0, _size(self._partial(file)) or 0)
        return max(0, file.size_bytes - there)

    def place(self, commit: str, file: HubFile, url: str, bar: ProgressBar) -> None:
        """Link a file to its blob in a snapshot, downloading the blob first if necessary."""
        pointer, blob = self.snapshot(commit) / file.name, self._blob(file)
        with self._hold(file.digest):
            if self.has(commit, file):  # another process was faster
                return
            # A blob that another program left is hashed too: its name alone proves nothing.
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
        """Lock a blob or ref against other processes; huggingface_hub takes the same lock."""
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
        """Download the partial file to its full size, resuming an earlier attempt."""
        partial = self._partial(file)
        num_failures = 0
        while _size(partial) != file.size_bytes:
            before = _size(partial) or 0
            if before > file.size_bytes:  # it can't be a prefix of this file
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
        """Append the received bytes to the partial file, exactly as many as were announced."""
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
        """Check the hash of the partial file and rename it to its blob."""
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
    """Return a file's size, following links; None if it doesn't exist."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def _find_digest(path: Path, file: HubFile) -> str:
    """Return the hash of a file's content, of the kind that the Hub lists for it."""
    # git's hash of a file: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
    start = hashlib.sha1(b"blob %d\0" % file.size_bytes, usedforsecurity=False)
    with storage_errors(path, "read"), path.open("rb") as stream:
        return hashlib.file_digest(
            stream, hashlib.sha256 if file.large else lambda: start
        ).hexdigest()


def _link(pointer: Path, blob: Path) -> None:
    """Link `pointer` to a blob; if the system doesn't support links, move the blob there."""
    if os.path.lexists(pointer):
        storage.remove(pointer)
    try:
        storage.link(pointer, os.path.relpath(blob, pointer.parent))
    except OSError:
        storage.rename(blob, pointer)
    storage.sync_folder(pointer.parent)
