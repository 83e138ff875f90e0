"""All checkpoint formats in the order in which they are tried; names and hashes of models."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bertkit.base.checksums import record_file
from bertkit.base.errors import MissingFileError, storage_errors
from bertkit.base.files import check_is_file
from bertkit.base.members import find_member, has_member
from bertkit.base.progress import ProgressBar, show_progress
from bertkit.checkpoints.bundled import PACKAGE, describe_name
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.file_names import (
    ADAPTER_CONFIG_FILE,
    CONFIG_FILE,
    DATA_SUFFIX,
    DESCRIPTIONS,
    WEIGHTS,
)
from bertkit.checkpoints.huggingface import open_huggingface
from bertkit.checkpoints.peft import open_adapter
from bertkit.checkpoints.run_folder import RUN_FOLDER, is_run, open_run
from bertkit.checkpoints.sentence_transformers import (
    is_sentence_transformers,
    list_module_folders,
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
    "peft": Format(lambda folder: has_member(folder, ADAPTER_CONFIG_FILE), open_adapter),
    "huggingface": Format(lambda folder: has_member(folder, CONFIG_FILE), open_huggingface),
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
    """Return a model's name for records: without parent folders.

    That is the name of its folder, of `name/run` both parts, of a folder in the Hub's cache the
    model's id, and of a set of bundled weights the package with the set: bertkit-minilm-vectors.
    """
    *_, owner, parent, name = ("", "", *str(path).rstrip("/").split("/"))
    if parent == PACKAGE:
        return f"{PACKAGE}-{name}".replace("_", "-")
    if parent == SNAPSHOTS and owner.startswith("models--"):
        return owner.removeprefix("models--").replace("--", "/")
    return f"{parent}/{name}" if parent and name == RUN_FOLDER else name


def describe_model(path: str | Path) -> str:
    """Return a model's name for a reader."""
    name = name_model(path)
    return describe_name(name) if Path(path).parent.name == PACKAGE else name


def hash_files(checkpoint: Checkpoint) -> dict[str, str]:
    """Return the SHA-256 of config and weight files, by name."""
    return {file.name: record_file(file).sha256 for file in checkpoint.files}


def is_same_model(name: str, sha256: dict[str, str]) -> bool:
    """Whether a local path is a checkpoint whose files have these names and hashes."""
    if not os.path.exists(name):  # noqa: PTH110 - Path.exists raises if a name is too long
        return False
    return hash_files(open_checkpoint(Path(name))) == sha256


PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class FileDescription:
    """A file of a checkpoint.

    Attributes:
        name: relative to the model's folder.
        size_bytes: its length.
        sha256: SHA-256 of its content.
    """

    name: str
    size_bytes: int
    sha256: str


def describe_files(path: Path, checkpoint: Checkpoint) -> tuple[FileDescription, ...]:
    """Return the size of each file of a model, weights and metadata, and its SHA-256.

    Args:
        path: path that the checkpoint was opened from.
        checkpoint: the opened checkpoint.
    """
    home, prefixes = checkpoint.folder, [""]
    if checkpoint.format == "sentence_transformers":
        home, prefixes = path, ["", *list_module_folders(path)]
    lacks_weights = len(checkpoint.files) == 1  # they couldn't be opened
    others = [
        find_member(home, prefix + name)
        for prefix in prefixes
        for name in (*DESCRIPTIONS, *WEIGHTS, *(form + DATA_SUFFIX for form in WEIGHTS))
        if has_member(home, prefix + name) and (name in DESCRIPTIONS or prefix or lacks_weights)
    ]
    sizes = {}
    for file in (*checkpoint.files, *others):
        check_is_file(file)
        with storage_errors(file, "read"):
            sizes[file] = file.stat().st_size
    with show_progress("Hashing", sum(sizes.values()), is_bytes=True) as progress:
        return tuple(
            FileDescription(_name_file(file, home), size, _hash(file, progress))
            for file, size in sizes.items()
        )


def _name_file(file: Path, home: Path) -> str:
    """Return a file's name in a model's folder; one of an adapter's base model is elsewhere."""
    return file.relative_to(home).as_posix() if file.is_relative_to(home) else f"base/{file.name}"


def _hash(path: Path, progress: ProgressBar) -> str:
    digest = hashlib.sha256()
    with storage_errors(path, "read"), path.open("rb") as stream:
        while data := stream.read(PIECE_BYTES):
            digest.update(data)
            progress.advance(len(data))
    return digest.hexdigest()
