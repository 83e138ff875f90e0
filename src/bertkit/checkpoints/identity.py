"""What a checkpoint is, in words that go into the record of what is made of it."""

import os
from pathlib import Path
from typing import Any

from bertkit.base.checksums import record_file
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.formats import open_checkpoint

SNAPSHOTS = "snapshots"  # in the Hub's cache, the folder of a commit lies in one of this name


def identify_checkpoint(
    checkpoint: Checkpoint, path: Path, revision: str | None = None
) -> dict[str, Any]:
    """Revision, commit, and the SHA-256 of each file.

    Args:
        checkpoint: opened from `path`.
        path: what `resolve_model` gave.
        revision: that was asked for.
    """
    return {
        "revision": revision,
        "commit": path.name if path.parent.name == SNAPSHOTS else None,
        "sha256": hash_files(checkpoint),
    }


def hash_files(checkpoint: Checkpoint) -> dict[str, str]:
    """The SHA-256 of each file, by its name; errors as in `identify_checkpoint`."""
    return {file.name: record_file(file).sha256 for file in checkpoint.files}


def is_same_model(name: str, sha256: dict[str, str]) -> bool:
    """Whether a path of this disk is a checkpoint of files with these hashes, by their names."""
    if not os.path.exists(name):  # noqa: PTH110 - Path.exists raises where a name is too long
        return False
    return hash_files(open_checkpoint(Path(name))) == sha256
