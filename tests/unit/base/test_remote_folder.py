"""Copies of remote folders, of a file system in memory."""

import threading
from collections import Counter
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from bertkit.base import remote_folder
from bertkit.base.errors import BertkitError, InputError, MissingFileError, UnsafeFileError
from bertkit.base.files import write_file
from bertkit.base.remote_folder import RemoteCopy, fetch, published

URL = "memory://bucket/run"


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Files by their names in the folder of `URL`; the cache is new, and no thread publishes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(remote_folder, "INTERVAL_SECONDS", 1e6)
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


def write(folder: Path, **files: bytes) -> None:
    """Write files; __ in a name is a slash, and _ a dot."""
    for name, data in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, data)


def machine(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on as another machine, which has a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))


def test_what_is_written_and_removed_here_is_so_there(store):
    with published(URL) as folder:
        write(folder, a=b"1", b__c=b"2", d_partial=b"no", _lock=b"")
    assert store.content() == {"a": b"1", "b/c": b"2"}
    with published(URL) as folder:
        write(folder, a=b"3")
        (folder / "b" / "c").unlink()
    assert store.content() == {"a": b"3"}


def test_what_others_wrote_beside_stays(store):
    with published(URL) as folder:
        write(folder, mine=b"1")
        store["theirs"] = b"2"
    assert store.content() == {"mine": b"1", "theirs": b"2"}


def test_seals_come_last_and_go_first(store, monkeypatch):
    events = record_events(monkeypatch)
    with published(URL) as folder:
        write(folder, metrics_json=b"", manifest_json=b"", z=b"", s__manifest_json=b"", s__z=b"")
    assert {*events[:2]} == {"put z", "put s/z"}
    assert events[2] == "put s/manifest.json"
    assert {*events[3:]} == {"put manifest.json", "put metrics.json"}
    events.clear()
    with published(URL) as folder:
        for name in ("manifest.json", "s/manifest.json", "s/z"):
            (folder / name).unlink()
        write(folder, z=b"new", metrics_json=b"new")
    assert {*events[:2]} == {"rm manifest.json", "rm metrics.json"}
    assert events[2:] == ["rm s/manifest.json", "put z", "put metrics.json", "rm s/z"]


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


def test_a_log_alone_is_no_reason_to_publish_before_the_end(store):
    copy = RemoteCopy(URL, "writing")
    write(copy.path, log_jsonl=b"1\n", tensorboard__events=b"1")
    copy.push()
    assert store.content() == {}
    write(copy.path, other=b"")
    copy.push()
    assert store.content().keys() == {"log.jsonl", "tensorboard/events", "other"}
    write(copy.path, log_jsonl=b"1\n2\n")
    copy.push()
    assert store.content()["log.jsonl"] == b"1\n"
    copy.push(is_last=True)
    assert store.content()["log.jsonl"] == b"1\n2\n"


def test_a_machine_that_comes_back_takes_what_another_has_published(store, tmp_path, monkeypatch):
    with published(URL) as folder:
        write(folder, old=b"1", log_jsonl=b"1")
    write(folder, mine=b"")  # not published, as where the connection was lost
    write(folder, checkpoints__step_3=b"", log_jsonl=b"1 2 3")
    (folder / "checkpoints" / "step.3").rename(folder / "checkpoints" / "x")
    write(folder / "checkpoints" / "step-3", manifest_json=b"", model=b"")
    machine("another", tmp_path, monkeypatch)
    with published(URL) as other:
        assert content(other) == {"old": b"1", "log.jsonl": b"1"}
        write(other, log_jsonl=b"1 2", new=b"")
        (other / "old").unlink()
    machine("cache", tmp_path, monkeypatch)
    RemoteCopy(URL, "writing").pull()
    assert content(folder) == {"log.jsonl": b"1 2", "new": b"", "mine": b"", "checkpoints/x": b""}
    assert not (folder / "checkpoints" / "step-3").exists()


def test_work_that_was_not_published_goes_on_where_nobody_else_did(store):
    with published(URL) as folder:
        write(folder, log_jsonl=b"1")
    write(folder, log_jsonl=b"1 2 3", mine=b"")
    write(folder / "checkpoints" / "step-3", manifest_json=b"", model=b"")
    here = content(folder)
    with published(URL) as again:
        assert content(again) == here
    assert store.content() == here


def test_a_process_that_is_killed_while_publishing_knows_its_own_files(store, monkeypatch):
    copy = RemoteCopy(URL, "writing")
    write(copy.path / "step-3", manifest_json=b"", model=b"12")
    here = content(copy.path)
    save, saved = RemoteCopy._save, Counter()

    def die(self):  # at the second saving of the record, after the first files were sent
        saved.update(["save"])
        if saved["save"] > 1:
            raise KeyboardInterrupt
        save(self)

    with monkeypatch.context() as patch:
        patch.setattr(RemoteCopy, "_save", die)
        patch.setattr(RemoteCopy, "_is_seal", lambda *_: False)
        with pytest.raises(KeyboardInterrupt):
            copy.push()
    assert store.content()
    with published(URL) as folder:
        assert content(folder) == here
    assert store.content() == here


def test_a_step_without_its_seal_is_not_fetched_and_made_again(store, tmp_path, monkeypatch):
    store["checkpoints/step-1/model"] = store["checkpoints/step-2/model"] = b"1"
    store["checkpoints/step-1/manifest.json"] = b"{}"
    with published(URL) as folder:
        assert {path.name for path in folder.glob("checkpoints/*")} == {"step-1"}
        write(folder / "checkpoints" / "step-2", manifest_json=b"", model=b"2")
    assert store.content()["checkpoints/step-2/model"] == b"2"


def test_a_copy_that_was_removed_by_hand_removes_nothing_there(store):
    with published(URL) as folder:
        write(folder, a=b"1", b=b"2")
        copy = RemoteCopy(URL, "writing")
        copy.push()
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    assert store.content() == {"a": b"1", "b": b"2"}
    with published(URL) as folder:
        assert content(folder) == {"a": b"1", "b": b"2"}


def test_what_is_read_follows_what_is_there(store):
    store["a"], store["b"] = b"1", b"2"
    folder = fetch(URL)
    assert content(folder) == store.content()
    store["a"] = b"3"
    del store["b"]
    assert fetch(f"{URL}/") == folder
    assert content(folder) == {"a": b"3"}
    assert fetch(folder) == folder
    with pytest.raises(MissingFileError, match=r"memory://bucket/none doesn't exist"):
        fetch("memory://bucket/none")


def test_a_file_is_fetched_with_those_that_begin_with_its_name(store):
    store["v.npy"], store["v.npy.json"], store["v.npyx"] = b"1", b"2", b"3"
    path = fetch(f"{URL}/v.npy")
    assert content(path.parent) == {"v.npy": b"1", "v.npy.json": b"2"}


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
    store["a"] = b"12345"
    usage = type("Usage", (), {"free": 4})
    monkeypatch.setattr(remote_folder.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(BertkitError, match=r"takes 0\.0 GB.*set XDG_CACHE_HOME"):
        fetch(URL)


def test_a_file_that_changes_while_it_is_fetched_is_not_kept(store, monkeypatch):
    store["a"] = b"12345"
    listed = remote_folder.list_folder(URL)
    monkeypatch.setattr(remote_folder, "list_folder", lambda _: shrink(listed))
    with pytest.raises(BertkitError, match=r"run/a changed while it was read"):
        fetch(URL)


def shrink(listed):
    return {name: remote_folder.RemoteFile(file.url, 4, "1") for name, file in listed.items()}


def test_a_failure_is_announced_once_and_ends_only_the_end(store, monkeypatch, capsys):
    tried = threading.Semaphore(0)

    def refuse(*_: object, **__: object) -> None:
        tried.release()
        raise ConnectionResetError("broken by a test, http://me:hush@proxy/?X-Amz-Signature=hush")

    monkeypatch.setattr(remote_folder, "INTERVAL_SECONDS", 0.001)

    def write_and_wait() -> None:
        with published(URL) as folder:
            write(folder, a=b"1")
            for _ in range(3):
                assert tried.acquire(timeout=60)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "put_file", refuse)
        with pytest.raises(BertkitError, match="broken by a test"):
            write_and_wait()
    error = capsys.readouterr().err
    assert error.count("not published yet: memory://bucket/run/a can't be written: broken") == 1
    assert "hush" not in error
    with published(URL):
        pass
    assert store.content() == {"a": b"1"}


def test_an_error_names_the_url_and_what_is_whole_is_published(store):
    def fail() -> None:
        with published(URL) as folder:
            write(folder, a=b"1")
            raise InputError(f"{folder}/a is empty")

    with pytest.raises(InputError, match=f"^{URL}/a is empty$"):
        fail()
    assert store.content() == {"a": b"1"}
