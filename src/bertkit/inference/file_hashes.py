"""The files of a model, with sizes and hashes."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bertkit.base.errors import storage_errors
from bertkit.base.files import check_is_file
from bertkit.base.members import find_member, has_member
from bertkit.base.progress import ProgressBar, show_progress
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.file_names import DESCRIPTIONS, WEIGHTS
from bertkit.checkpoints.sentence_transformers.folder import list_module_folders

PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class FileDescription:
    """A file of a checkpoint.

    Attributes:
        name: relative to the model's folder.
        size_bytes: its length.
        sha256: SHA-256 of its content; None if it wasn't computed.
    """

    name: str
    size_bytes: int
    sha256: str | None


def list_model_files(path: Path, checkpoint: Checkpoint) -> tuple[Path, tuple[Path, ...]]:
    """List the files of a model, weights and metadata, with the folder that holds them.

    Args:
        path: path that the checkpoint was opened from.
        checkpoint: the opened checkpoint.
    """
    home, prefixes = checkpoint.folder, [""]
    if checkpoint.format == "sentence_transformers":
        home, prefixes = path, ["", *list_module_folders(path)]
    others = [
        find_member(home, prefix + name)
        for prefix in prefixes
        for name in (*DESCRIPTIONS, *WEIGHTS)
        if has_member(home, prefix + name)
        and (name in DESCRIPTIONS or prefix or not checkpoint.tensors)
    ]
    return home, tuple(dict.fromkeys((*checkpoint.files, *others)))


def hash_model(path: Path, checkpoint: Checkpoint) -> str:
    """Compute the SHA-256 of a model's file names and contents, independent of its location."""
    home, paths = list_model_files(path, checkpoint)
    files = sorted((file.name, file.sha256) for file in describe_files(home, paths, hashes=True))
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()


def describe_files(
    folder: Path, paths: Iterable[Path], *, hashes: bool
) -> tuple[FileDescription, ...]:
    """Return the size of each file, and with `hashes` its SHA-256."""
    sizes = {}
    for path in dict.fromkeys(paths):
        check_is_file(path)
        with storage_errors(path, "read"):
            sizes[path] = path.stat().st_size
    with show_progress("Hashing", sum(sizes.values()), is_bytes=True) as progress:
        return tuple(
            FileDescription(
                path.relative_to(folder).as_posix(),
                size,
                _hash(path, progress) if hashes else None,
            )
            for path, size in sizes.items()
        )


def _hash(path: Path, progress: ProgressBar) -> str:
    digest = hashlib.sha256()
    with storage_errors(path, "read"), path.open("rb") as stream:
        while data := stream.read(PIECE_BYTES):
            digest.update(data)
            progress.advance(len(data))
    return digest.hexdigest()
