"""Safe access to the files of an untrusted folder: no path may lead out of it.

Names in an index or in `modules.json` are untrusted. Symbolic links may point only into the folder
itself or, if the folder is a snapshot in the Hub's cache (which consists of such links), into its
blob folders: the model's own and the one that models share.
"""

from pathlib import Path, PurePosixPath

from bertkit.base.errors import MissingFileError, UnsafeFileError, storage_errors

MAX_NAME_CHARS = 255


def check_name(source: str | Path, name: str) -> None:
    """Reject a name that could point outside its folder.

    Raises:
        UnsafeFileError: it points outside the folder, or would on some operating system.
    """
    parts = PurePosixPath(name).parts
    is_plain = 0 < len(name) <= MAX_NAME_CHARS and name.isprintable() and "\\" not in name
    if not is_plain or ".." in parts or PurePosixPath(name).is_absolute() or ":" in name:
        raise UnsafeFileError(
            f"{source} names {name[:80]!r} as one of its files; expected a name inside the folder"
        )


def find_member(folder: Path, name: str) -> Path:
    """Return the path of a file or folder inside an untrusted folder.

    Raises:
        UnsafeFileError: it points outside the folder, by its name or through a link.
        MissingFileError: it doesn't exist.
    """
    check_name(folder, name)
    path = folder / name
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise MissingFileError(f"{path} doesn't exist; fetch the whole model again") from None
    home = folder.resolve()
    homes = [home]
    for parent in home.parents:
        if parent.name == "snapshots" and parent.parent.name.startswith("models--"):
            homes += [parent.parent / "blobs", parent.parent.parent / "blobs"]
    if not any(target.is_relative_to(home) for home in homes):
        raise UnsafeFileError(
            f"{path} is a link that leads out of its folder, to {target}; copy the file into the"
            " folder if you trust it"
        )
    return path


def has_member(folder: Path, name: str) -> bool:
    """Whether a file or link of this name exists; `find_member` checks where a link points."""
    path = folder / name
    with storage_errors(path, "read"):
        # A broken link counts, so that `find_member` reports it.
        return path.is_file() or path.is_symlink()
