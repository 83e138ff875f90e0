"""What a checkpoint is, in words that go into the record of what is made of it."""

from pathlib import Path
from typing import Any

from bertkit.base.checksums import record_file
from bertkit.checkpoints.checkpoint import Checkpoint

SNAPSHOTS = "snapshots"  # in the Hub's cache, the folder of a commit lies in one of this name


def identify_checkpoint(
    checkpoint: Checkpoint, path: Path, revision: str | None = None
) -> dict[str, Any]:
    """Revision, commit, and the SHA-256 of each file.

    Args:
        checkpoint: opened from `path`.
        path: what `resolve_model` gave.
        revision: that was asked for.

    Raises:
        MissingFileError: a file is gone.
        StorageError: it can't be read.
    """
    return {
        "revision": revision,
        "commit": path.name if path.parent.name == SNAPSHOTS else None,
        "sha256": {file.name: record_file(file).sha256 for file in checkpoint.files},
    }
