"""The identity of a checkpoint, for provenance records: its name, revision, commit, hashes."""

import os
from pathlib import Path
from typing import Any

from bertkit.base.checksums import record_file
from bertkit.checkpoints.bundled import PACKAGE
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.run_folder import RUN_FOLDER

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

    Args:
        checkpoint: opened from `path`.
        path: as returned by `resolve_model`.
        revision: as the user gave it.
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
