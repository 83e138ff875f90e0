"""Downloads and uploads of folders, of a file system in memory."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from bertkit.base import transfers
from bertkit.base.errors import (
    BertkitError,
    InputError,
    MissingFileError,
    ResumeError,
    StoppedError,
    UnsafeFileError,
)
from bertkit.base.files import write_file
from bertkit.base.remote import RemoteFile, list_folder
from bertkit.base.transfers import fetch, uploads_output

URL = "memory://bucket/run"


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Files by their names in the folder of `URL`; the cache is new."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])
    return Store()


class Store:
    def __setitem__(self, name: str, content: bytes) -> None:
        MemoryFileSystem().pipe_file(f"/bucket/run/{name}", content)

    def __delitem__(self, name: str) -> None:
        MemoryFileSystem().rm_file(f"/bucket/run/{name}")

    def content(self) -> dict[str, bytes]:
        found = MemoryFileSystem().find("/bucket/run")
        return {key.removeprefix("/bucket/run/"): MemoryFileSystem().cat(key) for key in found}


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@dataclass(frozen=True)
class Written:
    output: Path


@uploads_output()
def write(output: Path, files: dict[str, bytes], error: Exception | None = None) -> Written:
    for name, data in files.items():
        path = output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, data)
    if error is not None:
        error.args = (f"{output}/a: {error}",)
        raise error
    return Written(output)


def test_a_finished_folder_is_uploaded_and_named_by_its_url(store, capsys):
    files = {"a": b"1", "b/c": b"2", "d.partial": b"no", ".lock": b""}
    assert write(Path(URL), files).output == Path(URL)
    assert store.content() == {"a": b"1", "b/c": b"2"}
    error = capsys.readouterr().err
    assert f"{URL} is uploaded once it is finished; until then it is " in error
    assert error.endswith(f"uploaded {URL}\n")
    store["theirs"] = b"3"
    write(URL, {"a": b"4"})
    assert store.content() == {"a": b"4", "b/c": b"2", "theirs": b"3"}


def test_what_marks_others_as_complete_comes_last_and_goes_first(store, monkeypatch):
    events = record_events(monkeypatch)
    files = dict.fromkeys(("metrics.json", "manifest.json", "z", "s/manifest.json", "s/z"), b"")
    write(URL, files)
    assert {*events[:2]} == {"put z", "put s/z"}
    assert events[2] == "put s/manifest.json"
    assert {*events[3:]} == {"put manifest.json", "put metrics.json"}
    events.clear()
    write(URL, {"z": b"new"})
    assert {*events[:2]} == {"rm manifest.json", "rm metrics.json"}
    assert events[2] == "rm s/manifest.json"


def record_events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    events: list[str] = []
    put, remove = MemoryFileSystem.put_file, MemoryFileSystem.rm_file

    def put_file(self, source, path, **options):
        put(self, source, path, **options)
        events.append(f"put {path.removeprefix('/bucket/run/')}")

    def rm_file(self, path):
        remove(self, path)
        events.append(f"rm {path.removeprefix('/bucket/run/')}")

    monkeypatch.setattr(MemoryFileSystem, "put_file", put_file)
    monkeypatch.setattr(MemoryFileSystem, "rm_file", rm_file)
    return events


def test_an_error_names_the_url_and_what_was_written_is_resumed_here(store):
    with pytest.raises(InputError, match=f"^{URL}/a: empty$"):
        write(URL, {"a": b"1"}, InputError("empty"))
    assert store.content() == {}
    write(URL, {"b": b"2"})
    assert store.content() == {"a": b"1", "b": b"2"}


def test_what_is_read_follows_what_is_there(store):
    store["a"], store["b"] = b"1", b"2"
    folder = fetch(URL)
    assert content(folder) == store.content()
    assert fetch(f"{URL}/") == folder
    store["a"] = b"3"
    del store["b"]
    assert content(fetch(URL)) == {"a": b"3"}
    assert content(folder) == {"a": b"1", "b": b"2"}  # which a process may have mapped
    assert fetch(folder) == folder
    with pytest.raises(MissingFileError, match=r"memory://bucket/none doesn't exist"):
        fetch("memory://bucket/none")


def test_a_broken_download_continues(store, monkeypatch):
    store["a"], store["b"] = b"12345", b"6"
    listed = list_folder(URL)
    with monkeypatch.context() as patch:
        patch.setattr(transfers, "list_folder", lambda _: listed)
        store["a"] = b"123"
        with pytest.raises(BertkitError, match=r"run/a changed while it was read"):
            fetch(URL)
        store["a"] = b"12345"
        folder = fetch(URL)
    assert content(folder) == store.content()


@pytest.mark.parametrize(
    "name", ["../evil", "/evil", "a/../../evil", "a//b", "a\0b", "a\nb", "a\\b", "c:d", "x" * 300]
)
def test_a_hostile_name_is_refused_before_anything_is_fetched(store, tmp_path, name):
    store["good"] = b""
    MemoryFileSystem.store[f"/bucket/run/{name}"] = MemoryFileSystem.store["/bucket/run/good"]
    with pytest.raises(UnsafeFileError) as caught:
        fetch(URL)
    assert len(str(caught.value)) < 250
    assert not [path for path in tmp_path.rglob("*") if path.name in {"evil", "good", "b"}]


def test_more_than_the_disk_holds_is_refused(store, monkeypatch):
    size = 1 << 60
    listed = {"a": RemoteFile(f"{URL}/a", size, "1")}
    store["a"] = b"1"
    monkeypatch.setattr(transfers, "list_folder", lambda _: listed)
    with pytest.raises(BertkitError, match=r"takes 1,152,921,504\.6 GB.*set XDG_CACHE_HOME"):
        fetch(URL)


def test_the_same_result_is_not_uploaded_again(store, monkeypatch):
    files = {"z": b"1", "manifest.json": b"{}", ".made/a.json": b"{}"}
    write(URL, files)
    events = record_events(monkeypatch)
    write(URL, files)
    assert events == []
    write(URL, files | {".made/a.json": b"[]"})
    assert {*events[:2]} == {"rm manifest.json", "rm .made/a.json"}
    del store["z"]
    write(URL, files | {".made/a.json": b"[]"})
    assert store.content()["z"] == b"1"


def test_unfinished_folders_are_not_uploaded(store):
    write(URL, {"a": b"1", "step.partial/half": b"no"})
    assert store.content() == {"a": b"1"}


def test_files_that_are_finished_are_uploaded_though_another_failed(store):
    error = InputError("one of many is empty")
    error.has_finished_parts = True
    with pytest.raises(InputError, match=f"^{URL}/a: one of many"):
        write(URL, {"a": b"1", ".made/a.json": b"{}"}, error)
    assert store.content() == {"a": b"1", ".made/a.json": b"{}"}


def test_what_is_stopped_names_the_copy_on_this_disk(store, tmp_path):
    with pytest.raises(StoppedError, match=f"^{tmp_path}/cache/.*/run/a: stopped$"):
        write(URL, {"a": b"1"}, StoppedError("stopped"))


@dataclass(frozen=True)
class Chosen:
    overwrite: bool = False
    shard: str | None = None


@uploads_output()
def write_many(output: Path, settings: Chosen) -> None:
    write(output, {"a": b"2", ".made/a.json": b"[]"})


@pytest.mark.parametrize("settings", [Chosen(), Chosen(overwrite=True), Chosen(shard="0/2")])
def test_another_machine_replaces_many_files_only_if_it_is_told_to(store, settings):
    store["a"], store[".made/a.json"] = b"1", b"{}"
    if settings == Chosen():
        with pytest.raises(ResumeError, match=f"{URL} has a result"):
            write_many(URL, settings)
        assert store.content()["a"] == b"1"
    else:
        write_many(URL, settings)
        assert store.content()["a"] == b"2"


def test_a_file_that_is_removed_meanwhile_is_named(store, monkeypatch):
    put = MemoryFileSystem.put_file

    def remove_and_put(self, source, path, **options):
        Path(source).unlink()
        put(self, source, path, **options)

    monkeypatch.setattr(MemoryFileSystem, "put_file", remove_and_put)
    with pytest.raises(MissingFileError, match="run/a was removed while it was uploaded"):
        write(URL, {"a": b"1"})
