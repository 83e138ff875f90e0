"""The files of a foreign folder, none of which may lead out of it.

A name in an index or in `modules.json` is somebody's word. Symbolic links are followed only to what
lies in the folder itself, or in the stores of blobs, the model's and the one that models share,
where the folder is a snapshot in the Hub's cache, which is made of such links.
"""

from pathlib import Path, PurePosixPath

from bertkit.base.errors import MissingFileError, UnsafeFileError, storage_errors

MAX_NAME_CHARS = 255


def check_name(source: str | Path, name: str) -> None:
    """Refuse a name that isn't plainly one of a file or folder inside another folder.

    Args:
        source: whose word the name is, for the message.
        name: with `/` between its parts.

    Raises:
        UnsafeFileError: it leads out of the folder, or would on some system.
    """
    parts = PurePosixPath(name).parts
    is_plain = 0 < len(name) <= MAX_NAME_CHARS and name.isprintable() and "\\" not in name
    if not is_plain or ".." in parts or PurePosixPath(name).is_absolute() or ":" in name:
        raise UnsafeFileError(
            f"{source} names {name[:80]!r} as one of its files; expected a name inside the folder"
        )


def find_member(folder: Path, name: str) -> Path:
    """The path of a file or folder inside a foreign folder.

    Args:
        folder: that of the model.
        name: relative to it, with `/` between its parts.

    Raises:
        UnsafeFileError: it leads out of the folder, by its name or through a link.
        MissingFileError: it isn't there.
    """
    check_name(folder, name)
    path = folder / name
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise MissingFileError(f"{path} doesn't exist; fetch the whole model again") from None
    if not any(target.is_relative_to(home) for home in _homes(folder)):
        raise UnsafeFileError(
            f"{path} is a link that leads out of its folder, to {target}; copy the file into the"
            " folder if you trust it"
        )
    return path


def has_member(folder: Path, name: str) -> bool:
    """Whether a file or a link of this name is there; where it leads is for `find_member` to say.

    Raises:
        StorageError: the system can't tell.
    """
    path = folder / name
    with storage_errors(path, "read"):
        return (
            path.is_file() or path.is_symlink()
        )  # one that leads nowhere is no reason to do without


def _homes(folder: Path) -> list[Path]:
    """Where the files of a folder may lie."""
    home = folder.resolve()
    homes = [home]
    for parent in home.parents:
        if parent.name == "snapshots" and parent.parent.name.startswith("models--"):
            homes += [parent.parent / "blobs", parent.parent.parent / "blobs"]
    return homes
