"""Durable files: the old content or the new, never a mixture, never litter."""

import errno
import hashlib
import os
import resource
import zlib
from array import array
from pathlib import Path

import numpy as np
import pytest

from bertkit.base import storage
from bertkit.base.checksums import CHUNK_BYTES, HEAD_BYTES, Checksums, FileRecord, verify_file
from bertkit.base.errors import DamagedFileError, MissingFileError, SettingsError, StorageError
from bertkit.base.files import (
    DurableStream,
    check_new_file,
    durable_file,
    durable_folder,
    make_folder,
    read_text,
    remove_folder,
    remove_litter,
    write_file,
)


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "state.bin"
    path.write_bytes(b"old")
    return path


def test_a_file_is_replaced_when_the_block_ends(old):
    with durable_file(old) as file:
        file.write(b"ne")
        file.write(memoryview(b"w"))
        assert old.read_bytes() == b"old"
    assert old.read_bytes() == b"new"
    assert list_names(old.parent) == ["state.bin"]


@pytest.mark.parametrize("error", [RuntimeError("bug"), KeyboardInterrupt()])
def test_an_exception_leaves_the_old_file_and_no_litter(old, error):
    with pytest.raises(type(error)), durable_file(old) as file:  # noqa: PT012 - fails midway
        file.write(b"half")
        raise error
    assert old.read_bytes() == b"old"
    assert list_names(old.parent) == ["state.bin"]


@pytest.mark.parametrize("call", ["open_new", "write", "sync", "close", "rename"])
def test_a_full_disk_leaves_the_old_file_and_says_so(old, monkeypatch, call):
    monkeypatch.setattr(storage, call, refuse)
    with pytest.raises(StorageError, match=r"state.bin can't be written: No space left"):
        write_file(old, b"new")
    monkeypatch.undo()
    assert old.read_bytes() == b"old"
    assert list_names(old.parent) == ["state.bin"]


@pytest.mark.parametrize("size_bytes", [100_000, 1000])
def test_a_write_that_the_system_cuts_short_is_an_error(old, size_bytes):
    """The limit makes the first write short and refuses the next one, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (700, hard))
    try:
        with pytest.raises(StorageError, match="can't be written: File too large"):
            write_file(old, b"x" * size_bytes)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert old.read_bytes() == b"old"
    assert list_names(old.parent) == ["state.bin"]


def test_an_error_of_the_block_is_not_blamed_on_the_file(old):
    with pytest.raises(FileNotFoundError) as caught, durable_file(old):
        Path("no-such-input").read_bytes()
    assert not isinstance(caught.value, StorageError)
    with (
        pytest.raises(FileNotFoundError) as caught,
        durable_folder(old.parent / "folder"),
    ):
        Path("no-such-input").read_bytes()
    assert not isinstance(caught.value, StorageError)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(StorageError, match=r"nowhere/a.json can't be written: No such file"):
        write_file(tmp_path / "nowhere" / "a.json", b"{}")


@pytest.mark.parametrize(
    "size_bytes", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES]
)
@pytest.mark.parametrize("piece_bytes", [HEAD_BYTES - 1, CHUNK_BYTES // 3, 5 * CHUNK_BYTES])
def test_checksums_at_the_borders_of_a_mebibyte(size_bytes, piece_bytes):
    data = np.random.default_rng(0).bytes(size_bytes)
    checksums = Checksums()
    for start in range(0, size_bytes, piece_bytes):
        checksums.update(data[start : start + piece_bytes])
    expected = [
        zlib.crc32(data[start : start + CHUNK_BYTES]) for start in range(0, size_bytes, CHUNK_BYTES)
    ]
    assert checksums.record() == FileRecord(
        size_bytes=size_bytes,
        sha256=hashlib.sha256(data).hexdigest(),
        head_crc32=zlib.crc32(data[:HEAD_BYTES]),
        chunk_crc32=expected,
    )


@pytest.fixture
def large(tmp_path):
    path = tmp_path / "tokens.bin"
    return path, write_file(path, bytes(2 * CHUNK_BYTES + 5))


def test_verifying_does_not_trust_checksums_of_pieces_alone(large):
    path, record = large
    forged = record.model_copy(update={"sha256": "0" * 64})
    with pytest.raises(DamagedFileError, match="SHA-256"):
        verify_file(path, forged)


def test_verifying_what_the_system_refuses(large):
    with pytest.raises(StorageError, match="can't be read: File name too long"):
        verify_file(large[0].with_name("a" * 300), large[1])


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("\ufeffa\ufeff".encode())
    assert read_text(path) == "a\ufeff"
    path.write_bytes("\ufeffa".encode() + b"\xff")
    with pytest.raises(DamagedFileError, match="isn't UTF-8 at byte 4"):
        read_text(path)


def test_reading_what_is_no_file(tmp_path):
    with pytest.raises(MissingFileError, match="doesn't exist"):
        read_text(tmp_path / "none")


def test_nothing_is_awaited_from_a_pipe_that_nobody_writes_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(DamagedFileError, match="must be a file, and is a folder, a pipe or"):
            read_text(path)


def test_a_folder_appears_whole(tmp_path):
    target = tmp_path / "checkpoint"
    with durable_folder(target) as folder:
        write_file(folder / "a", b"1")
        assert not target.exists()
    assert list_names(target) == ["a"]
    with durable_folder(target) as folder:
        write_file(folder / "b", b"2")
        assert list_names(target) == ["a"]
    assert list_names(target) == ["b"]
    assert list_names(tmp_path) == ["checkpoint"]


@pytest.mark.parametrize("fails_at", ["block", "sync", "second rename"])
def test_a_folder_that_fails_leaves_the_old_one(tmp_path, monkeypatch, fails_at):
    target = tmp_path / "checkpoint"
    with durable_folder(target) as folder:
        write_file(folder / "a", b"1")
    rename = storage.rename
    with (  # noqa: PT012 - fails midway
        pytest.raises((StorageError, RuntimeError)),
        durable_folder(target) as folder,
    ):
        write_file(folder / "b", b"2")
        if fails_at == "block":
            raise RuntimeError("bug")
        if fails_at == "sync":
            monkeypatch.setattr(storage, "sync_folder", refuse)
        else:
            monkeypatch.setattr(
                storage,
                "rename",
                lambda old, new: refuse() if old.suffix == ".partial" else rename(old, new),
            )
    assert list_names(target) == ["a"]
    assert list_names(tmp_path) == ["checkpoint"]


def test_cleaning_puts_back_what_no_new_folder_came_for_and_removes_the_rest(tmp_path):
    for name in ("a.partial", "a.replaced", "b", "b.replaced", "b.replaced.partial", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_bytes(b"1")
    (tmp_path / "d.partial").write_bytes(b"1")
    remove_litter(tmp_path)
    assert {path.name: list_names(path) for path in tmp_path.iterdir()} == {
        "a": ["a.replaced"],
        "b": ["b"],
        "c": ["c"],
    }
    remove_litter(tmp_path / "nowhere")


def test_a_folder_loses_its_name_before_its_content(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_bytes(b"1")
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(storage, "remove_empty_folder", refuse)
    with pytest.raises(StorageError, match=r"folder can't be removed: No space left"):
        remove_folder(folder)
    assert list_names(tmp_path) == ["folder.partial"]
    monkeypatch.undo()
    folder.write_bytes(b"a file by now")
    remove_folder(folder)
    remove_folder(folder)
    assert list_names(tmp_path) == []


def test_a_folder_is_made_with_those_above_it_and_each_is_synced(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(storage, "sync_folder", synced.append)
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    above = [tmp_path.parent, tmp_path, tmp_path / "a"]
    assert synced == [*above, tmp_path / "a"]
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StorageError, match="is a file where a folder is to be made"):
            make_folder(path)


def test_a_folder_is_made_below_one_that_may_not_be_read(tmp_path, monkeypatch):
    def refuse_above(path: Path) -> None:
        if path == tmp_path.parent:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(storage, "sync_folder", refuse_above)
    make_folder(tmp_path / "a")
    assert list_names(tmp_path) == ["a"]


def test_a_folder_that_another_process_makes_meanwhile_is_taken(tmp_path, monkeypatch):
    def make_twice(path: Path) -> None:
        path.mkdir()
        path.mkdir()

    monkeypatch.setattr(storage, "make_folder", make_twice)
    make_folder(tmp_path / "a")
    assert list_names(tmp_path) == ["a"]


def test_a_folder_that_a_link_leads_to_is_replaced_and_the_link_stays(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for content in (b"old", b"new"):
        with durable_folder(tmp_path / "link") as folder:
            write_file(folder / "a", content)
        assert (tmp_path / "real" / "a").read_bytes() == content
    assert (tmp_path / "link").is_symlink()
    assert list_names(tmp_path) == ["link", "real"]


def test_the_current_folder_and_a_mount_are_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (
        pytest.raises(StorageError, match="is the current folder or a mount"),
        durable_folder(Path()),
    ):
        pass
    monkeypatch.undo()
    monkeypatch.setattr(Path, "is_mount", lambda path: path == tmp_path)
    with (
        pytest.raises(StorageError, match="is the current folder or a mount"),
        durable_folder(tmp_path),
    ):
        pass
    assert list_names(tmp_path) == []


def test_a_folder_does_not_replace_a_file(old):
    with pytest.raises(StorageError, match="is a file where a folder"), durable_folder(old):
        pytest.fail("the block must not begin")
    assert old.read_bytes() == b"old"


def test_a_file_that_is_not_to_be_written_is_refused_beforehand(tmp_path):
    old = tmp_path / "old"
    old.write_text("old")
    with pytest.raises(SettingsError, match="old exists; name another file, or replace it by"):
        check_new_file(old, overwrite=False)
    check_new_file(old, overwrite=True)
    check_new_file(tmp_path / "new", overwrite=False)
    for overwrite in (False, True):
        with pytest.raises(SettingsError, match="is a folder; name a file"):
            check_new_file(tmp_path, overwrite=overwrite)


def test_all_bytes_arrive_whatever_they_are_handed_over_in(tmp_path):
    with durable_file(tmp_path / "file") as file:
        stream = DurableStream(file)
        assert stream.writable()
        assert stream.write(b"abc") == 3
        assert stream.write(memoryview(array("i", [1, 2]))) == 8
        stream.close()  # the file is its owner's to finish
    assert (tmp_path / "file").read_bytes() == b"abc" + array("i", [1, 2]).tobytes()
