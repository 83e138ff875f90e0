"""The primitive disk operations that durable files are built on, one function each.

Nothing else in the library creates, writes, syncs, renames or removes a file. Callers use them
through this module, `storage.rename(…)`, so that a test can replace any of them: record the call,
make it fail, write only part, or end the process there. They raise plain `OSError`s; callers turn
them into bertkit errors, because they know which path the user named.
"""

import os
from pathlib import Path

_BINARY = getattr(os, "O_BINARY", 0)  # otherwise Windows would convert line ends
_MODE = 0o666  # reduced by the user's umask


def open_new(path: Path) -> int:
    """Open a file for writing, created if missing and truncated if it exists."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, _MODE)


def open_end(path: Path) -> int:
    """Open a file for appending, created if missing."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _BINARY, _MODE)


def open_within(path: Path) -> int:
    """Open a file for writing at any position, created if missing; existing content stays."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | _BINARY, _MODE)


def seek(descriptor: int, position_bytes: int) -> None:
    """Set the position of the next write, which may be past the end of the file."""
    os.lseek(descriptor, position_bytes, os.SEEK_SET)


def write(descriptor: int, data: bytes | memoryview) -> int:
    """Write bytes and return how many were written, which may be fewer.

    After a signal whose handler returns, Python itself retries (PEP 475).
    """
    return os.write(descriptor, data)


def sync(descriptor: int) -> None:
    """Wait until the content of an open file is on the disk."""
    os.fsync(descriptor)


def close(descriptor: int) -> None:
    """Close a file; this doesn't ensure that its content is on disk."""
    os.close(descriptor)


def rename(old: Path, new: Path) -> None:
    """Rename a file or folder atomically; an existing file of the new name is replaced."""
    old.replace(new)


def remove(path: Path) -> None:
    """Remove a file or a link."""
    path.unlink()


def link(path: Path, target: str) -> None:
    """Create a symbolic link."""
    path.symlink_to(target)


def make_folder(path: Path) -> None:
    """Create a folder; its parent must exist."""
    path.mkdir()


def remove_empty_folder(path: Path) -> None:
    """Remove an empty folder."""
    path.rmdir()


def sync_folder(path: Path) -> None:
    """Wait until a folder's directory entries are on the disk (does nothing on Windows)."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
