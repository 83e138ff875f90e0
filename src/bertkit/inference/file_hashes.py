"""The files of a checkpoint, with their sizes and hashes."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bertkit.base.errors import storage_errors
from bertkit.base.files import check_is_file
from bertkit.base.progress import ProgressBar, show_progress

PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class FileDescription:
    """A file of a checkpoint.

    Attributes:
        name: relative to the model's folder.
        size_bytes: its length.
        sha256: of its content; None where it wasn't asked for.
    """

    name: str
    size_bytes: int
    sha256: str | None


def describe_files(
    folder: Path, paths: Iterable[Path], *, hashes: bool
) -> tuple[FileDescription, ...]:
    """Measure files, and hash them where that is asked for.

    Raises:
        DamagedFileError: one is something else than a file.
        StorageError: one can't be read.
    """
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
