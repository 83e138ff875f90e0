"""What reaches the disk goes through `base/storage.py`, and nothing in the library goes past it."""

import ast
import os
from functools import cache
from pathlib import Path

import pytest

import bertkit
from bertkit.base import storage

SOURCE = Path(bertkit.__file__).parent
DURABLE_WRITERS = {
    *("base/files.py", "base/output.py", "checkpoints/hub_download.py", "training/log.py"),
    "retrieval/embed.py",
    "retrieval/unfinished_vectors.py",
}
# What isn't meant to last: the copy of a stream for a reader that has to go back in it, and what
# stands for a standard stream that is closed or broken. TensorBoard's and the lock's files are
# written by others.
EXCEPTIONS = {
    ("data/tables/formats/parquet.py", "tempfile.TemporaryFile"),
    ("data/tables/formats/parquet.py", "shutil.copyfileobj"),
    ("data/writers.py", "tempfile.TemporaryDirectory"),  # of XlsxWriter
    ("data/writers.py", "shutil.copyfileobj"),
    ("recipes/review/encoder.py", "tempfile.TemporaryDirectory"),
    ("recipes/review/pool.py", "tempfile.TemporaryDirectory"),
    ("api/inputs.py", "tempfile.mkdtemp"),  # a folder where no output was named
    ("cli/streams.py", "os.open"),
    ("checkpoints/checkpoint.py", "mmap.mmap"),  # a private copy: the file never changes
    ("recipes/solved_head.py", "np.memmap"),  # to be read only
    ("recipes/solved_head.py", "shutil.disk_usage"),  # asks
    ("base/transfers.py", "shutil.disk_usage"),
}
MODULES = {"shutil", "tempfile", "mmap"}
OS_FUNCTIONS = {
    *("open", "write", "pwrite", "writev", "fsync", "fdatasync", "sync", "truncate", "ftruncate"),
    *("rename", "renames", "replace", "remove", "unlink", "rmdir", "removedirs", "mkdir"),
    *("makedirs", "link", "symlink", "mkfifo", "mknod", "fdopen", "copy_file_range", "sendfile"),
}
METHODS = {
    *("unlink", "rename", "rmdir", "mkdir", "touch", "write_bytes", "write_text"),
    *("symlink_to", "hardlink_to", "tofile", "save_file", "open_memmap", "memmap"),
}
WRITING_MODE = set("wax+")


@cache
def parse_all() -> dict[Path, ast.AST]:
    """Every module of the library."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}


def list_writes(tree: ast.AST) -> list[str]:
    """The name of each call that may change what is on the disk."""
    return [
        name for node in ast.walk(tree) if isinstance(node, ast.Call) and (name := name_write(node))
    ]


def name_write(call: ast.Call) -> str | None:
    name = ast.unparse(call.func)
    module, _, function = name.rpartition(".")
    if module in {"storage", "files"}:
        return None
    modes = [
        node.value
        for node in [*call.args, *(each.value for each in call.keywords)][:2]
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    is_writing = (
        (module == "os" and function in OS_FUNCTIONS)
        or module in MODULES
        or function in METHODS
        or (
            module in {"np", "numpy"}
            and function in {"save", "savez", "savetxt"}
            and ast.unparse(call.args[0]) != "buffer"
        )
        or name == "torch.save"
        or (function == "open" and any(set(mode) & WRITING_MODE for mode in modes if len(mode) < 4))
        or (function == "replace" and len(call.args) == 1 and not call.keywords)
    )
    return name if is_writing else None


def test_nothing_else_in_the_library_writes():
    found = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path, tree in parse_all().items()
        if path != Path(storage.__file__)
        for name in list_writes(tree)
    }
    assert found == EXCEPTIONS


def test_its_functions_are_called_through_the_module_by_those_that_write_durably():
    users = {
        path.relative_to(SOURCE).as_posix()
        for path, tree in parse_all().items()
        if "storage" in imported_names(tree, "bertkit.base")
    }
    assert users == DURABLE_WRITERS
    for path, tree in parse_all().items():
        assert not imported_names(tree, "bertkit.base.storage"), path


def imported_names(tree: ast.AST, module: str) -> set[str]:
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == module
        for alias in node.names
    }


@pytest.mark.parametrize(
    "call",
    [
        "open(path, 'w')",
        "path.open('ab')",
        "path.open(mode='r+b')",
        "os.replace(old, new)",
        "old.replace(new)",
        "shutil.rmtree(path)",
        "path.write_text('')",
        "os.fsync(3)",
        "np.save(path, array)",
        "torch.save(x, path)",
        "tempfile.mkdtemp()",
    ],
)
def test_a_planted_write_is_seen(call):
    assert list_writes(ast.parse(call))


@pytest.mark.parametrize("call", ["path.open('rb')", "text.replace('a', 'b')", "source.open(r)"])
def test_reading_and_text_are_no_writes(call):
    assert not list_writes(ast.parse(call))


def test_syncing_a_folder_is_nothing_where_the_system_has_no_such_notion(monkeypatch):
    opened = []
    monkeypatch.setattr(os, "name", "nt")
    monkeypatch.setattr(os, "open", lambda *arguments: opened.append(arguments))
    storage.sync_folder("no-such-folder")
    assert opened == []
