"""All checkpoint formats, in the order in which they are tried, and `open_checkpoint`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bertkit.base.checksums import record_file
from bertkit.base.errors import MissingFileError
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.hub import PACKAGE
from bertkit.checkpoints.huggingface import is_huggingface, open_huggingface
from bertkit.checkpoints.run_folder import RUN_FOLDER, is_run, open_run
from bertkit.checkpoints.sentence_transformers import (
    is_sentence_transformers,
    open_sentence_transformers,
)
from bertkit.checkpoints.tensorflow import is_tensorflow, open_tensorflow


class Format(NamedTuple):
    """The functions that detect and open a format."""

    is_here: Callable[[Path], bool]
    open: Callable[[Path], Checkpoint]


FORMATS = {
    "run_folder": Format(is_run, open_run),
    "sentence_transformers": Format(is_sentence_transformers, open_sentence_transformers),
    "huggingface": Format(is_huggingface, open_huggingface),
    "tensorflow": Format(is_tensorflow, open_tensorflow),
}


def open_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint's config and the headers of its weights, in any known format.

    The path is a folder, or for TensorFlow the common prefix of the checkpoint's files.
    """
    for format_ in FORMATS.values():
        if format_.is_here(path):
            return format_.open(path)
    what = "is a file; name its folder" if path.is_file() else "doesn't exist"
    if path.is_dir():
        what = "is no model folder"
    raise MissingFileError(
        f"{path} {what}; expected a run of `bertkit pretrain`, a folder with config.json and"
        " model.safetensors or pytorch_model.bin, or a TensorFlow checkpoint with bert_config.json"
    )


SNAPSHOTS = "snapshots"  # name of the folder in the Hub's cache that contains the commits' folders


def name_model(path: str | Path) -> str:
    """Return a model's name for titles, messages and records: without parent folders.

    That is the name of its folder, of `name/run` both parts, of a folder in the Hub's cache the
    model's id, and of a set of bundled weights the package with the set: bertkit-minilm-vectors.
    """
    *_, owner, parent, name = ("", "", *str(path).rstrip("/").split("/"))
    if parent == PACKAGE:
        return f"{PACKAGE}-{name}".replace("_", "-")
    if parent == SNAPSHOTS and owner.startswith("models--"):
        return owner.removeprefix("models--").replace("--", "/")
    return f"{parent}/{name}" if parent and name == RUN_FOLDER else name


def identify_checkpoint(
    checkpoint: Checkpoint, path: Path, revision: str | None = None
) -> dict[str, Any]:
    """Return revision, commit, and the SHA-256 of each file.

    The path is that of `resolve_model`.
    """
    return {
        "revision": revision,
        "commit": path.name if path.parent.name == SNAPSHOTS else None,
        "sha256": hash_files(checkpoint),
    }


def hash_files(checkpoint: Checkpoint) -> dict[str, str]:
    """Return the SHA-256 of each file by name; errors as in `identify_checkpoint`."""
    return {file.name: record_file(file).sha256 for file in checkpoint.files}


def is_same_model(name: str, sha256: dict[str, str]) -> bool:
    """Whether a local path is a checkpoint whose files have these names and hashes."""
    if not os.path.exists(name):  # noqa: PTH110 - Path.exists raises if a name is too long
        return False
    return hash_files(open_checkpoint(Path(name))) == sha256
