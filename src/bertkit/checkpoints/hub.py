"""Models by name: the local folder of a path or of a model's id on the Hugging Face Hub.

`hub_download` fetches the files that are chosen here.
"""

import os
import re
from collections.abc import Collection
from pathlib import Path

from bertkit.base.addresses import is_remote
from bertkit.base.errors import (
    HubError,
    MissingFileError,
    SettingsError,
    StorageError,
    UnsafeFileError,
)
from bertkit.base.members import check_name
from bertkit.base.transfers import fetch
from bertkit.checkpoints.file_names import (
    ADAPTER_CONFIG_FILE,
    ADAPTERS,
    CONFIG_FILE,
    DATA_SUFFIX,
    DESCRIPTIONS,
    INDEX_SUFFIX,
    MODULES_FILE,
    ONNX_FILE,
    WEIGHTS,
)
from bertkit.checkpoints.hub_download import (
    OFFLINE_ADVICE,
    ModelCache,
    fetch_listing,
    load_constants,
)
from bertkit.checkpoints.run_folder import choose_model_files, find_checkpoint, find_run

TENSORFLOW_SUFFIX = ".index"
ID_PART = r"\w(?:[\w.-]{0,94}\w)?"
OWN_FILE = "tokenizer_manifest.json"  # without it, ONNX files are another tool's, which aren't read
MODULE_FOLDER = re.compile(r"[0-9]{1,2}_[A-Za-z0-9_]{1,64}/")  # as sentence-transformers names it


def resolve_tokenizer(text: str | Path, *, revision: str | None = None) -> Path:
    """Return a model as `resolve_model` does, but fetch no weights; of a run, its checkpoint."""
    return find_checkpoint(resolve_model(text, revision=revision, for_weights=False), reading=())


def resolve_model(
    text: str | Path | None, *, revision: str | None = None, for_weights: bool = True
) -> Path:
    """Return the local folder or file of that name, or else fetch the Hub model of that id.

    Of a folder that has a run beside other results, it is the run. `OpenModel.open` calls this.
    """
    if not isinstance(text, str | os.PathLike):
        raise SettingsError(
            f"a model is a folder or the id of a model of the Hub, and not {type(text).__name__}"
        )
    text = fetch(text, choose_model_files) if is_remote(text) else text
    # A TensorFlow checkpoint is given by the prefix of its files; no file has just that name.
    names = (text, f"{text}{TENSORFLOW_SUFFIX}")
    if any(map(is_on_disk, names)):
        if revision is not None:
            raise SettingsError(
                f"revision ({revision}) chooses a version of a model of the Hub, and {text} is on"
                " this disk; leave it out"
            )
        return find_run(Path(text))
    check_name_of_hub(text)
    try:
        return _fetch_model(str(text), "main" if revision is None else revision, for_weights)
    except HubError as error:  # a misspelled folder name ends up here too
        raise HubError(
            f"there is no {text} on this disk, and the Hub gives none: {error}"
        ) from None


def check_model(text: str | Path) -> None:
    """Raise a `MissingFileError` at once if no folder and no model of the Hub has such a name."""
    if not is_remote(text) and not any(map(is_on_disk, (text, f"{text}{TENSORFLOW_SUFFIX}"))):
        check_name_of_hub(text)


def check_name_of_hub(text: str | Path) -> None:
    """Raise a `MissingFileError` if what isn't on the disk can't be the id of a model of the Hub.

    Ids without an owner are from the Hub's first years, and those of BERTs have hyphens.
    """
    name = str(text)
    if not is_hub_id(name) or not {"/", "-"} & set(name):
        raise MissingFileError(
            f"{name} doesn't exist, and isn't the id of a model of the Hub either, which is"
            " owner/name, such as google-bert/bert-base-uncased"
        )


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


def _fetch_model(model_id: str, revision: str, for_weights: bool) -> Path:
    """Fetch the needed files of a model that aren't cached yet, and return its folder."""
    try:
        check_name("revision", revision)  # it becomes a file name in the cache
    except UnsafeFileError:
        raise SettingsError(
            f"revision ({revision!r}) must be a branch, a tag or a commit, such as main"
        ) from None
    cache = ModelCache(model_id)
    if load_constants().HF_HUB_OFFLINE:
        snapshot = cache.find_snapshot(revision)
        paths = (path for path in snapshot.rglob("*") if path.is_file())
        # Only what bertkit chose was fetched for it, without this file.
        names = {OWN_FILE, *(path.relative_to(snapshot).as_posix() for path in paths)}
        try:
            _choose_files(f"{snapshot}, in the cache,", names, for_weights)
        except HubError as error:
            raise HubError(f"{error}; {OFFLINE_ADVICE}") from None
        return snapshot
    listing = fetch_listing(model_id, revision)
    files = {file.name: file for file in listing.files}
    chosen = _choose_files(f"{model_id} on the Hub", files, for_weights)
    cache.fetch(listing.commit, [files[name] for name in chosen])
    cache.write_ref(revision, listing.commit)
    return cache.snapshot(listing.commit)


def _choose_files(title: str, names: Collection[str], for_weights: bool) -> list[str]:
    """Return the needed files: small ones first, so that weights present means complete."""
    if {CONFIG_FILE, MODULES_FILE, ADAPTER_CONFIG_FILE}.isdisjoint(names):
        raise HubError(f"{title} has no {CONFIG_FILE}; expected a model for transformers")
    folders = [""]
    if MODULES_FILE in names:
        folders = [*sorted({match[0] for match in map(MODULE_FOLDER.match, names) if match}), ""]
    small = [folder + name for folder in folders for name in DESCRIPTIONS]
    weights = [name for folder in folders for name in _choose_weights(names, folder)]
    if for_weights and not weights:
        raise HubError(
            f"{title} has no weights as safetensors or for PyTorch; expected"
            " model.safetensors or pytorch_model.bin, whole or in parts with an index"
        )
    return [name for name in small if name in names] + (weights if for_weights else [])


def _choose_weights(names: Collection[str], folder: str) -> list[str]:
    """Return a folder's weights in the first of their forms, with their parts; empty if none.

    An adapter is before those of a model, which it may have beside it.
    """
    adapters = [folder + name for name in ADAPTERS if folder + name in names][:1]
    forms = WEIGHTS if folder + OWN_FILE in names else WEIGHTS[: WEIGHTS.index(ONNX_FILE)]
    form = next((name for name in forms if folder + name in names), "")
    stem, dot, suffix = form.removesuffix(INDEX_SUFFIX).partition(".")
    parts = []
    if form.endswith(INDEX_SUFFIX):
        part = re.compile(re.escape(folder + stem) + r"-\d{5}-of-\d{5}" + re.escape(dot + suffix))
        parts = sorted(filter(part.fullmatch, names))
    elif form and folder + form + DATA_SUFFIX in names:
        parts = [folder + form + DATA_SUFFIX]
    return [*adapters, folder + form, *parts] if form else adapters
