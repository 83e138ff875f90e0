"""Resolve a local path or Hub model id to a local folder.

Only the needed files are fetched, all from one commit, and each file's hash is verified against
the Hub's list before the file gets its name in the cache.
"""

import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

from bertkit.base.errors import (
    HubError,
    MissingFileError,
    SettingsError,
    StorageError,
    UnsafeFileError,
)
from bertkit.base.members import check_name
from bertkit.base.progress import show_progress
from bertkit.checkpoints.file_names import CONFIG_FILE, MODULES_FILE
from bertkit.checkpoints.hub.cache import ModelCache
from bertkit.checkpoints.hub.client import file_url, load_constants
from bertkit.checkpoints.hub.file_choice import (
    choose_descriptions,
    choose_weights,
    list_modules,
)
from bertkit.checkpoints.hub.listing import COMMIT_PATTERN, HubFile, Listing, fetch_listing
from bertkit.checkpoints.run_folder import find_checkpoint, find_run

DEFAULT_REVISION = "main"
TENSORFLOW_SUFFIX = ".index"
ID_PART = r"\w(?:[\w.-]{0,94}\w)?"
MAX_MODEL_BYTES = 100 * 10**9  # a hundred times the largest BERT with its optimizer state
MAX_DESCRIPTION_BYTES = 32 << 20  # the limit for a vocabulary file


def resolve_model(
    text: str | Path, *, revision: str | None = None, for_weights: bool = True
) -> Path:
    """Return the local folder or file of that name, or else fetch the Hub model of that id.

    Args:
        text: a path or the id of a model; an existing path takes precedence. Of a folder that
            has a run beside other results, it is the run.
        revision: a branch, tag or commit of a Hub model.
        for_weights: False is for the tokenizer alone: doesn't download the weights, and finds the
            checkpoint of a run, which has its files.

    Raises:
        MissingFileError: `text` is neither an existing path nor a valid id.
        SettingsError: `revision` is given for a path, or is invalid; or `text` is neither a string
            nor a path.
        StorageError: permission is denied; or as in `fetch_model`.
        HubError, UnsafeFileError: as in `fetch_model`.
    """
    if not isinstance(text, str | os.PathLike):
        raise SettingsError(
            f"a model is a folder or the id of a model of the Hub, and not {type(text).__name__}"
        )
    # A TensorFlow checkpoint is given by the prefix of its files; no file has just that name.
    names = (text, f"{text}{TENSORFLOW_SUFFIX}")
    if any(map(is_on_disk, names)):
        if revision is not None:
            raise SettingsError(
                f"revision ({revision}) chooses a version of a model of the Hub, and {text} is on"
                " this disk; leave it out"
            )
        path = find_run(Path(text))
        return path if for_weights else find_checkpoint(path, reading=())
    if not is_hub_id(str(text)):
        raise MissingFileError(
            f"{text} doesn't exist, and isn't the id of a model of the Hub (owner/name) either"
        )
    try:
        return fetch_model(str(text), revision=revision, for_weights=for_weights)
    except HubError as error:  # a misspelled folder name ends up here too
        raise HubError(
            f"there is no {text} on this disk, and the Hub gives none: {error}"
        ) from None


def is_on_disk(name: str | Path) -> bool:
    """Whether a file or folder of that name exists."""
    try:
        Path(name).stat()
    except PermissionError as error:
        raise StorageError(f"{name} can't be read: {error.strerror}") from error
    except (OSError, ValueError):  # it doesn't exist, the name is too long or contains NUL
        return False
    return True


def is_hub_id(text: str) -> bool:
    """Whether a text has the form of a model id: `owner/name`, or just `name` for old models.

    Source: `validate_repo_id` of huggingface_hub 2.4, which takes 0.2 s to import.
    """
    has_form = re.fullmatch(rf"(?:{ID_PART}/)?{ID_PART}", text, re.ASCII)
    return bool(has_form) and not ("--" in text or ".." in text or text.endswith(".git"))


def fetch_model(model_id: str, *, revision: str | None = None, for_weights: bool = True) -> Path:
    """Fetch the needed files of a model that aren't cached yet, and return its folder.

    With HF_HUB_OFFLINE=1 no request is made and only the cache is used.

    Args:
        model_id: `owner/name`, or just `name` for old models.
        revision: a branch, a tag or a commit; `main` by default.
        for_weights: False doesn't download the weights.
    """
    if not is_hub_id(model_id):
        raise SettingsError(f"{model_id!r} isn't the id of a model of the Hub, owner/name")
    revision = _checked_revision(revision)
    cache = ModelCache(model_id)
    if load_constants().HF_HUB_OFFLINE:
        return _find_cached(cache, revision, for_weights=for_weights)
    listing = fetch_listing(model_id, revision)
    cache.check_snapshot(listing.commit)
    snapshot = cache.snapshot(listing.commit)
    download = _Download(cache, listing)
    source = _Source(f"{model_id} on the Hub", snapshot, download.files, download.fetch)
    _fetch_needed(source, for_weights=for_weights)
    cache.write_ref(revision, listing.commit)
    return snapshot


@dataclass(frozen=True)
class _Source:
    """Where the files of a model come from.

    Attributes:
        title: for messages.
        snapshot: the target folder.
        names: of all available files.
        fetch: makes the named files available in the folder.
    """

    title: str
    snapshot: Path
    names: Collection[str]
    fetch: Callable[[list[str]], None]


def _fetch_needed(source: _Source, *, for_weights: bool) -> None:
    """Fetch small files, then those of modules, then weights: weights present means complete."""
    names, snapshot = source.names, source.snapshot
    if CONFIG_FILE not in names and MODULES_FILE not in names:
        raise HubError(f"{source.title} has no {CONFIG_FILE}; expected a model for transformers")
    source.fetch(choose_descriptions(names, "", for_weights=for_weights))
    modules = list_modules(names, snapshot)
    source.fetch(
        [
            name
            for prefix in modules
            for name in choose_descriptions(names, prefix, for_weights=for_weights)
        ]
    )
    if not for_weights:
        return
    weights = [
        name for prefix in [*modules, ""] for name in choose_weights(names, prefix, snapshot)
    ]
    if not weights:
        raise HubError(
            f"{source.title} has no weights as safetensors or for PyTorch; expected"
            " model.safetensors or pytorch_model.bin, whole or in parts with an index"
        )
    if missing := sorted(set(weights) - set(names)):
        raise HubError(f"{source.title} lacks {missing[0]}, which its index names")
    source.fetch(weights)


class _Download:
    """Downloads files of one listing into the cache."""

    def __init__(self, cache: ModelCache, listing: Listing) -> None:
        self._cache = cache
        self._commit = listing.commit
        self.files = {file.name: file for file in listing.files}

    def fetch(self, names: list[str]) -> None:
        """Download those of the named files that aren't cached."""
        files = [self.files[name] for name in dict.fromkeys(names)]
        self._check(files)
        missing = [file for file in files if not self._cache.has(self._commit, file)]
        if not missing:
            return
        model_id = self._cache.model_id
        num_bytes = sum(map(self._cache.bytes_left, missing))
        with show_progress(f"fetching {model_id}", num_bytes, is_bytes=True) as bar:
            for file in missing:
                url = file_url(model_id, self._commit, file.name)
                self._cache.place(self._commit, file, url, bar)

    def _check(self, files: list[HubFile]) -> None:
        """Reject unsafe names, names that collide ignoring case, and implausible sizes."""
        model_id = self._cache.model_id
        seen: dict[str, str] = {}
        for file in files:
            check_name(model_id, file.name)
            other = seen.setdefault(normalize("NFC", file.name).casefold(), file.name)
            if other != file.name:
                raise UnsafeFileError(
                    f"{model_id} has {other} and {file.name}, which are one file on some disks"
                )
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


def _find_cached(cache: ModelCache, revision: str, *, for_weights: bool) -> Path:
    """Return the folder of a previously fetched model."""
    is_commit = re.fullmatch(COMMIT_PATTERN, revision)
    commit = revision if is_commit else cache.read_ref(revision)
    advice = "unset HF_HUB_OFFLINE once to fetch it, or copy the cache from another machine"
    if commit is None or not cache.snapshot(commit).is_dir():
        raise HubError(
            f"{cache.model_id} at {revision} isn't in the cache ({cache.folder}), and"
            f" HF_HUB_OFFLINE forbids to ask the Hub; {advice}"
        )
    cache.check_snapshot(commit)
    snapshot = cache.snapshot(commit)
    names = {
        path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()
    }
    source = _Source(f"{snapshot}, in the cache,", snapshot, names, lambda names: None)
    try:
        _fetch_needed(source, for_weights=for_weights)
    except HubError as error:
        raise HubError(f"{error}; {advice}") from None
    return snapshot


def _checked_revision(revision: str | None) -> str:
    """Return the validated revision, which becomes a file name in the cache."""
    if revision is None:
        return DEFAULT_REVISION
    try:
        check_name("revision", revision)
    except UnsafeFileError:
        raise SettingsError(
            f"revision ({revision!r}) must be a branch, a tag or a commit, such as main"
        ) from None
    return revision
