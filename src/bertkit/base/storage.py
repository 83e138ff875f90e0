"""The operations by which anything durable reaches the disk, one function each.

Nothing else in the library creates, writes, syncs, renames or removes a file. Callers name them
through this module, `storage.rename(…)`, so that a test can stand in for any of them: record it,
refuse it, cut it short, or end the process there. None of them turns errors into the library's own;
the callers know which path their user named.
"""

import os
from pathlib import Path

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would turn line ends otherwise
_MODE = 0o666  # the user's umask takes away from it


def open_new(path: Path) -> int:
    """Open an empty file for writing; what was under the name is emptied."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, _MODE)


def open_end(path: Path) -> int:
    """Open a file for writing behind what it holds; without one, an empty file."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _BINARY, _MODE)


def open_within(path: Path) -> int:
    """Open a file for writing anywhere in it; what it holds stays, and without one it is empty."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | _BINARY, _MODE)


def seek(descriptor: int, position_bytes: int) -> None:
    """Let the next bytes be written from a place of the file on, which may lie behind its end."""
    os.lseek(descriptor, position_bytes, os.SEEK_SET)


def write(descriptor: int, data: bytes | memoryview) -> int:
    """Hand over bytes; how many of them were taken, which may be fewer.

    After a signal whose handler returns, Python itself tries again (PEP 475).
    """
    return os.write(descriptor, data)


def sync(descriptor: int) -> None:
    """Wait until the content of an open file is on the disk."""
    os.fsync(descriptor)


def close(descriptor: int) -> None:
    """Let go of an open file; says nothing about the disk."""
    os.close(descriptor)


def rename(old: Path, new: Path) -> None:
    """Give a file or folder another name at once; a file under that name is replaced."""
    old.replace(new)


def remove(path: Path) -> None:
    """Remove a file or a link."""
    path.unlink()


def link(path: Path, target: str) -> None:
    """Make a name that leads to another file."""
    path.symlink_to(target)


def make_folder(path: Path) -> None:
    """Make one folder in an existing one."""
    path.mkdir()


def remove_empty_folder(path: Path) -> None:
    """Remove a folder that holds nothing."""
    path.rmdir()


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk (Windows has no such notion)."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
