"""Downloading files of the Hugging Face Hub into the cache that huggingface_hub shares.

Only the needed files are fetched, all of one commit, into `blobs/`, files named by hash;
`snapshots/<commit>/`, links to the blobs by file name; `refs/`, the commit of each branch. A blob
is checked against its hash in the Hub's list before a snapshot links to it. A file that is in a
snapshot already, perhaps from another program, is known by its size only.

The library gives session, token, settings and the layout of the cache. Its `snapshot_download`
isn't used because, as of 2.4, it joins the ETag that a server sends to a path: an endpoint can
write any content into any file of the user.
"""

import hashlib
import os
import re
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated
from urllib.parse import quote

from filelock import FileLock
from pydantic import BaseModel, Field, NonNegativeInt, ValidationError

from bertkit._version import __version__
from bertkit.base import storage
from bertkit.base.errors import HubError, UnsafeFileError, locking_errors, storage_errors
from bertkit.base.files import make_folder, read_text, write_all, write_file
from bertkit.base.progress import ProgressBar, show_progress

COMMIT_PATTERN = r"^[0-9a-f]{40}$"
LOG_IN = "run `hf auth login` or set HF_TOKEN"
OFFLINE_ADVICE = "unset HF_HUB_OFFLINE once to fetch it, or copy the cache from another machine"
LISTING_LIMIT_BYTES = 16 << 20  # a model card and 1,000 files take less than one MiB
MAX_FILES = 1_000  # the largest encoders have a few dozen
MAX_MODEL_BYTES = 100 * 10**9  # a hundred times the largest BERT with its optimizer state
MAX_DESCRIPTION_BYTES = 32 << 20  # the limit for a vocabulary file
MAX_MESSAGE_CHARS = 200
# Consecutive attempts that each receive fewer than PROGRESS_BYTES; others don't count.
NUM_ATTEMPTS = 3
PROGRESS_BYTES = 1 << 20
WAIT_SECONDS = 1.0


class LargeFile(BaseModel, frozen=True):
    """Size and hash of a file that is stored outside git (LFS)."""

    size: NonNegativeInt
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class HubFile(BaseModel, frozen=True):
    """One file of a model; of a large one git has only a pointer."""

    name: str = Field(alias="rfilename")
    git_sha1: Annotated[str, Field(alias="blobId", pattern=COMMIT_PATTERN)]
    git_size: Annotated[NonNegativeInt, Field(alias="size")]
    large: Annotated[LargeFile | None, Field(alias="lfs")] = None

    @property
    def size_bytes(self) -> int:
        """Size of the file in bytes."""
        return self.large.size if self.large else self.git_size

    @property
    def digest(self) -> str:
        """Hash of the content: SHA-256 for a large file, SHA-1 of the git object otherwise."""
        return self.large.sha256 if self.large else self.git_sha1


class Listing(BaseModel, frozen=True):
    """The files of a model at one commit."""

    commit: Annotated[str, Field(alias="sha", pattern=COMMIT_PATTERN)]
    files: Annotated[tuple[HubFile, ...], Field(alias="siblings")]


def fetch_listing(model_id: str, revision: str) -> Listing:
    """Request the names, sizes and hashes of a model's files at a revision."""
    endpoint, answer = load_constants().ENDPOINT, bytearray()
    url = f"{endpoint}/api/models/{model_id}/revision/{quote(revision, safe='')}?blobs=true"
    with _open_stream(url, model_id) as (_, pieces):
        for piece in pieces:
            answer += piece
            if len(answer) > LISTING_LIMIT_BYTES:
                raise HubError(
                    f"{url} answers with more than {LISTING_LIMIT_BYTES:,} bytes, and no such"
                    " answer needs as many; is HF_ENDPOINT a Hub?"
                )
    try:
        listing = Listing.model_validate_json(answer)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise HubError(
            f"the Hub's list of the files of {model_id} isn't one ({place}: {first['msg']});"
            " expected names, sizes and hashes; is HF_ENDPOINT a Hub?"
        ) from None
    return listing


def _check_sizes(model_id: str, files: list[HubFile]) -> None:
    """Reject implausible numbers and sizes; what remains fits the readers' limits."""
    if len(files) > MAX_FILES:
        raise UnsafeFileError(
            f"{model_id} would have {len(files):,} files, and at most {MAX_FILES:,} are fetched;"
            " fetch them by hand, and name their folder"
        )
    for file in files:
        if file.name.endswith((".json", ".txt")) and file.size_bytes > MAX_DESCRIPTION_BYTES:
            raise UnsafeFileError(
                f"{file.name} of {model_id} would have {file.size_bytes:,} bytes, and none"
                f" needs more than {MAX_DESCRIPTION_BYTES:,}"
            )
    total_bytes = sum(file.size_bytes for file in files)
    if total_bytes > MAX_MODEL_BYTES:
        raise UnsafeFileError(
            f"{model_id} would have {total_bytes / 1e9:,.0f} GB, and at most"
            f" {MAX_MODEL_BYTES / 1e9:,.0f} GB are fetched; fetch it by hand if you want it"
        )


class ModelCache:
    """One model's folder in the cache."""

    def __init__(self, model_id: str) -> None:
        root = Path(load_constants().HF_HUB_CACHE)
        name = "--".join(["models", *model_id.split("/")])
        self._model_id = model_id
        self._folder = root / name
        self._locks = root / ".locks" / name

    def snapshot(self, commit: str) -> Path:
        """Return the folder of a commit's files."""
        return self._folder / "snapshots" / commit

    def find_snapshot(self, revision: str) -> Path:
        """Return the folder of the newest commit of a revision that was fetched."""
        commit = revision if re.fullmatch(COMMIT_PATTERN, revision) else self._read_ref(revision)
        if commit is None or not (snapshot := self.snapshot(commit)).is_dir():
            raise HubError(
                f"{self._model_id} at {revision} isn't in the cache ({self._folder}), and"
                f" HF_HUB_OFFLINE forbids to ask the Hub; {OFFLINE_ADVICE}"
            )
        return snapshot

    def write_ref(self, revision: str, commit: str) -> None:
        """Record the commit that a branch or tag points to."""
        if commit in (revision, self._read_ref(revision)):
            return
        path = self._folder / "refs" / revision
        with self._hold("refs--" + revision.replace("/", "--")):
            make_folder(path.parent)
            write_file(path, commit.encode())

    def fetch(self, commit: str, files: list[HubFile]) -> None:
        """Download the files that the snapshot lacks; one of the right size there is trusted."""
        _check_sizes(self._model_id, files)
        snapshot, endpoint = self.snapshot(commit), load_constants().ENDPOINT
        missing = [file for file in files if _size(snapshot / file.name) != file.size_bytes]
        if not missing:
            return
        num_bytes = sum(map(self._count_bytes_left, missing))
        with show_progress(f"fetching {self._model_id}", num_bytes, is_bytes=True) as bar:
            for file in missing:
                url = f"{endpoint}/{self._model_id}/resolve/{commit}/{quote(file.name)}"
                self._place(file, snapshot / file.name, url, bar)

    def _read_ref(self, revision: str) -> str | None:
        """Return the commit of a branch or tag; None if the file has none (a path, perhaps)."""
        path = self._folder / "refs" / revision
        commit = read_text(path, limit_bytes=100).strip() if path.is_file() else ""
        return commit if re.fullmatch(COMMIT_PATTERN, commit) else None

    @contextmanager
    def _hold(self, name: str) -> Iterator[None]:
        """Lock a blob, as huggingface_hub does, or a ref, against other processes."""
        make_folder(self._locks)
        path = self._locks / f"{name}.lock"
        with locking_errors(path), FileLock(path, fallback_to_soft=False):
            yield

    def _count_bytes_left(self, file: HubFile) -> int:
        """Return how many bytes are still to be fetched; another commit may have some already."""
        blob = self._folder / "blobs" / file.digest
        there = max(_size(blob) or 0, _size(_partial(blob)) or 0)
        return max(0, file.size_bytes - there)

    def _place(self, file: HubFile, pointer: Path, url: str, bar: ProgressBar) -> None:
        """Link a snapshot's file to its blob, and download the blob first if necessary."""
        blob = self._folder / "blobs" / file.digest
        with self._hold(file.digest):
            if _size(pointer) == file.size_bytes:  # another process was faster
                return
            # A blob that another program left is hashed too: its name alone proves nothing.
            if _size(blob) != file.size_bytes or _find_digest(blob, file) != file.digest:
                make_folder(blob.parent)
                self._download(file, blob, url, bar)
            make_folder(pointer.parent)
            with storage_errors(pointer, "written"):
                if os.path.lexists(pointer):
                    storage.remove(pointer)
                try:
                    storage.link(pointer, os.path.relpath(blob, pointer.parent))
                except OSError:  # the system has no links
                    storage.rename(blob, pointer)
                storage.sync_folder(pointer.parent)

    def _download(self, file: HubFile, blob: Path, url: str, bar: ProgressBar) -> None:
        """Download a blob, resuming an earlier attempt, and check its hash."""
        partial = _partial(blob)
        num_failures = 0
        while (size := _size(partial)) != file.size_bytes:
            # A longer one is no part of this file.
            start = size if size and size < file.size_bytes else 0
            try:
                with _open_stream(url, self._model_id, start) as (first_byte, pieces):
                    self._receive(file, partial, first_byte, pieces, bar)
            except _UnreachableError:
                has_progress = (_size(partial) or 0) >= start + PROGRESS_BYTES
                num_failures = 1 if has_progress else num_failures + 1
                if num_failures == NUM_ATTEMPTS:
                    raise
                time.sleep(WAIT_SECONDS * num_failures)
        digest = _find_digest(partial, file)
        with storage_errors(blob, "written"):
            if digest != file.digest:
                storage.remove(partial)
                raise HubError(
                    f"{file.name} of {self._model_id} isn't what the Hub announced: expected the"
                    f" hash {file.digest}, got {digest}; it was thrown away: try again, or report"
                    " it"
                )
            storage.rename(partial, blob)
            storage.sync_folder(blob.parent)

    def _receive(
        self, file: HubFile, path: Path, first_byte: int, pieces: Iterator[bytes], bar: ProgressBar
    ) -> None:
        """Append the received bytes to a file, at most as many as were announced."""
        num_bytes = first_byte
        with storage_errors(path, "written"):
            descriptor = (storage.open_end if first_byte else storage.open_new)(path)
            try:
                for piece in pieces:
                    num_bytes += len(piece)
                    if num_bytes > file.size_bytes:
                        storage.remove(path)
                        raise HubError(
                            f"{file.name} of {self._model_id} is longer than the"
                            f" {file.size_bytes:,} bytes that the Hub announced; it was thrown"
                            " away: report it there"
                        )
                    write_all(descriptor, memoryview(piece))
                    bar.advance(len(piece))
                storage.sync(descriptor)
            finally:
                storage.close(descriptor)
        if num_bytes < file.size_bytes:
            raise _UnreachableError(
                f"{file.name} of {self._model_id} ended after {num_bytes:,} of"
                f" {file.size_bytes:,} bytes; run the command again to go on there"
            )


def _partial(blob: Path) -> Path:
    return blob.with_name(f"{blob.name}.incomplete")


def _size(path: Path) -> int | None:
    """Return a file's size, following links; None if it doesn't exist."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def _find_digest(path: Path, file: HubFile) -> str:
    """Return the hash of a file's content, of the kind that the Hub lists for it."""
    with storage_errors(path, "read"), path.open("rb") as stream:
        if file.large:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        # git's hash of a file: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
        sha1 = hashlib.sha1(b"blob %d\0" % file.size_bytes, usedforsecurity=False)
        return hashlib.file_digest(stream, lambda: sha1).hexdigest()


class _UnreachableError(HubError):
    """No response, or an incomplete one; retrying may help."""


def load_constants() -> ModuleType:
    """Return huggingface_hub's settings, which it reads from the environment on first import.

    The import is slow, so it is delayed until a Hub id is actually used.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about unrelated variables
        from huggingface_hub import constants
    return constants


@contextmanager
def _open_stream(
    url: str, model_id: str, start_byte: int = 0
) -> Iterator[tuple[int, Iterator[bytes]]]:
    """Yield the index of the first byte that the Hub sends, and an iterator over the chunks.

    The token is sent to the Hub, but not to another host that it redirects to. A server may ignore
    `start_byte` and begin at 0.
    """
    constants = load_constants()
    from huggingface_hub import errors, get_session, get_token

    client = import_module(errors.HTTPError.__module__)  # type: ignore[attr-defined] # httpx or httpx2
    headers = {"user-agent": f"bertkit/{__version__}", "accept-encoding": "identity"}
    if not constants.HF_HUB_DISABLE_IMPLICIT_TOKEN and (token := get_token()):
        headers["authorization"] = f"Bearer {token}"
    if start_byte:
        headers["range"] = f"bytes={start_byte}-"
    timeout_seconds = constants.HF_HUB_DOWNLOAD_TIMEOUT
    try:
        with get_session().stream(
            "GET", url, headers=headers, timeout=timeout_seconds, follow_redirects=True
        ) as response:
            if response.status_code >= 400:
                raise _refusal(model_id, response.status_code, response.headers)
            yield start_byte if response.status_code == 206 else 0, response.iter_raw()
    except (client.HTTPError, client.InvalidURL) as error:
        raise _UnreachableError(
            f"{constants.ENDPOINT} can't be reached ({_describe_failure(error, timeout_seconds)});"
            f" check the network, or set HF_HUB_OFFLINE=1 to use what is in the cache,"
            f" {constants.HF_HUB_CACHE}"
        ) from None


def _describe_failure(error: Exception, timeout_seconds: float) -> str:
    """Describe why there was no response, in the words of the system."""
    kind, said = type(error).__name__, re.sub(r"^\[Errno -?\d+\] ", "", _one_line(error))
    if "Timeout" in kind:
        return f"no answer within {timeout_seconds} s; set HF_HUB_DOWNLOAD_TIMEOUT to wait longer"
    return said if said and kind == "ConnectError" else f"{kind}: {said}"


def _refusal(model_id: str, status: int, headers: Mapping[str, str]) -> HubError:
    """Return the error for a failed request, chosen by the Hub's error code or the status."""
    code = headers.get("x-error-code", "")
    said = _one_line(headers.get("x-error-message", "") or f"status {status}")
    if status >= 500 or status in (408, 429):
        return _UnreachableError(f"the Hub can't give {model_id} now ({said}); try again later")
    if said.startswith("Invalid credentials"):
        return HubError(f"the Hub doesn't know the token that is set here; {LOG_IN}, or remove it")
    if code == "GatedRepo":
        return HubError(f"{model_id} is gated: accept its terms on its page, then {LOG_IN}")
    if code == "RevisionNotFound":
        return HubError(f"{model_id} has no such revision; name a branch, a tag or a whole commit")
    if code == "RepoNotFound" or (status in (401, 404) and code != "EntryNotFound"):
        return HubError(
            f"{model_id} is no folder here and no public model on the Hub; correct the name, or"
            f" for a private model {LOG_IN}"
        )
    return HubError(f"the Hub refuses {model_id} ({said}); look at its page, or {LOG_IN}")


def _one_line(message: object) -> str:
    """Return a server's message on one line, shortened and without control characters."""
    text = " ".join(str(message).split())
    return "".join(filter(str.isprintable, text))[:MAX_MESSAGE_CHARS]
