"""The SQLite file of an index: states, transactions, read-only folders, and errors."""

import errno
import os
import resource
import shutil
import sqlite3
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from bertkit.base.errors import BusyError, DamagedFileError, MissingFileError, StorageError
from bertkit.retrieval import index_file
from bertkit.retrieval.index_file import IndexFile

NOBODY = 65534


@contextmanager
def opened(path, **options):
    file = IndexFile.open(path, **options)
    try:
        yield file
    finally:
        file.close()


def add_source(file, name):
    with file.writing() as connection:
        connection.execute("INSERT INTO sources VALUES (NULL, ?, '', '')", (name,))


def add_and_stop(file):
    with file.writing() as connection:
        file.write_fact(connection, "dimension", 3)
        connection.execute("INSERT INTO sources VALUES (NULL, 'second', '', '')")
        raise KeyboardInterrupt


def list_sources(file):
    with file.reading() as connection:
        return [name for (name,) in connection.execute("SELECT name FROM sources ORDER BY number")]


@pytest.fixture
def path(tmp_path):
    """An index with one source, closed."""
    path = tmp_path / "a%20b?.bertkit"
    with opened(path, creates=True) as file:
        add_source(file, "first")
    return path


def test_a_closed_index_is_one_file_that_needs_no_log(path):
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert path.read_bytes()[18:20] == b"\1\1"  # version 2 would be that of a log
    with opened(path) as file:
        assert list_sources(file) == ["first"]


@pytest.mark.parametrize("is_in_memory", [True, False])
def test_what_fails_is_rolled_back_and_does_not_change_the_state(path, is_in_memory):
    with opened(None if is_in_memory else path) as file:
        before = list_sources(file)
        with pytest.raises(KeyboardInterrupt):
            add_and_stop(file)
        assert list_sources(file) == before
        state = file.state()
        assert file.read_fact("dimension") is None
        with file.writing() as connection:
            file.write_fact(connection, "dimension", {"is": [1, None, "ü"]})
        assert file.read_fact("dimension") == {"is": [1, None, "ü"]}
        assert file.state() != state


def test_a_reader_sees_one_state_until_it_reads_again(path):
    with opened(path) as writer, opened(path) as reader:
        add_source(writer, "second")  # switches to the log, which waits for readers
        state = reader.state()
        with reader.reading() as connection:
            assert reader.state() == state
            add_source(writer, "third")
            assert reader.state() == state
            assert connection.execute("SELECT count(*) FROM sources").fetchone() == (2,)
        assert reader.state() != state
        assert list_sources(reader) == ["first", "second", "third"]


def test_another_writer_is_waited_for(path, monkeypatch):
    monkeypatch.setattr(index_file, "BUSY_SECONDS", 0)
    with opened(path) as first, opened(path) as second, first.writing():
        with pytest.raises(BusyError, match="another process has been writing it for 0 seconds"):
            add_source(second, "second")
        assert list_sources(second) == ["first"]


def test_a_file_system_without_locks_is_named(path, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(index_file, "BUSY_SECONDS", 0)
    with opened(path) as first, opened(path) as second, first.writing():
        monkeypatch.setattr("fcntl.flock", refuse)
        with pytest.raises(StorageError, match=r"has no locks .*; write to a local disk, and copy"):
            add_source(second, "second")
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def fill(file, num_pages):
    with file.writing() as connection:
        connection.execute(f"PRAGMA max_page_count = {num_pages}")
        connection.execute("INSERT INTO vectors VALUES (1, 1, 1, x'', zeroblob(1000000))")


def test_a_full_disk_changes_nothing(path):
    with opened(path) as file:
        with pytest.raises(StorageError, match="the disk is full; free some space"):
            fill(file, 100)
        assert list_sources(file) == ["first"]
        fill(file, 1000)


def test_a_disk_that_refuses_changes_nothing(path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with opened(path) as file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
        try:
            with pytest.raises(StorageError, match="can't be written: disk I/O error"):
                fill(file, 1000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert list_sources(file) == ["first"]
        fill(file, 1000)
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_space_of_what_was_deleted_is_given_back(path):
    with opened(path) as file, file.writing() as connection:
        connection.executemany(
            "INSERT INTO vectors VALUES (?, 0, 0, x'', zeroblob(100000))",
            ((number,) for number in range(20)),
        )
    size = path.stat().st_size
    with opened(path) as file, file.writing() as connection:
        connection.execute("DELETE FROM vectors WHERE block % 10")
    assert path.stat().st_size < size / 5


def test_a_process_may_be_killed_while_it_makes_the_file(tmp_path):
    path, copied = tmp_path / "x.bertkit", tmp_path / "copied.bertkit"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")  # so that pages are written before the end
    connection.execute("BEGIN IMMEDIATE")
    for number in range(20):
        connection.execute(f"CREATE TABLE t{number} AS SELECT zeroblob(5000)")
    for suffix in ("", "-journal"):
        shutil.copy(f"{path}{suffix}", f"{copied}{suffix}")
    connection.close()
    assert copied.stat().st_size
    with pytest.raises(MissingFileError, match="is empty; make it with"):
        IndexFile.open(copied)
    with opened(copied, creates=True) as file:
        assert list_sources(file) == []


def test_an_empty_file_of_a_killed_process_is_a_missing_index(tmp_path):
    path = tmp_path / "new.bertkit"
    path.touch()
    for _ in range(2):
        with pytest.raises(MissingFileError, match="make it with `bertkit index add`"):
            IndexFile.open(path)
        path.unlink(missing_ok=True)
    with opened(tmp_path / "folder" / "new.bertkit", creates=True) as file:
        assert list_sources(file) == []


def change(path, statement):
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("PRAGMA application_id = 7", "isn.t an index; name another file"),
        ("PRAGMA user_version = 2", "is an index of version 2, and this bertkit reads version 1"),
        ("DROP TABLE fields", "has other tables than an index"),
        (
            "CREATE TRIGGER words_ AFTER INSERT ON facts BEGIN DELETE FROM facts; END",
            "has other tables than an index",
        ),
    ],
)
def test_other_files_of_sqlite_are_refused(path, statement, message):
    change(path, statement)
    with pytest.raises(DamagedFileError, match=message), opened(path, creates=True) as file:
        file.state()


@pytest.mark.parametrize("content", [b"a text " * 1000, b"SQLite format 3\0" + b"\7" * 4096])
def test_other_files_are_refused_and_stay(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"notes\.txt can't be read: it is damaged, or no"):
        IndexFile.open(path, creates=True)
    with pytest.raises(DamagedFileError, match="isn't a file, as an index is"):
        IndexFile.open(tmp_path, creates=True)
    assert path.read_bytes() == content


def test_an_older_sqlite_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 39, 5))
    with pytest.raises(StorageError, match=r"an index needs SQLite 3\.40, and this Python has"):
        IndexFile.open(tmp_path / "new.bertkit", creates=True)


@pytest.fixture
def read_only_folder():
    """A folder, and a function that makes it and its files read-only, for root too."""
    with tempfile.TemporaryDirectory() as name:
        folder, is_root = Path(name), os.geteuid() == 0

        def forbid():
            for each in (*folder.iterdir(), folder):
                each.chmod(0o555)
            if is_root:
                os.setresuid(NOBODY, NOBODY, 0)

        try:
            yield folder, forbid
        finally:
            if is_root:
                os.setresuid(0, 0, 0)
            folder.chmod(0o755)


@pytest.mark.parametrize("has_log", [False, True])
def test_an_index_in_a_read_only_folder_can_be_read(path, read_only_folder, has_log):
    folder, forbid = read_only_folder
    if has_log:
        change(path, "PRAGMA journal_mode = WAL")
    copied = path.rename(folder / path.name)
    forbid()
    with opened(copied) as file:
        assert (file.is_read_only, list_sources(file)) == (True, ["first"])
        with pytest.raises(StorageError, match="can't be written: it or its folder is read-only"):
            add_source(file, "second")
    with pytest.raises(StorageError, match="new can't be read: unable to open database file"):
        IndexFile.open(folder / "new", creates=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to write where the reader can't")
def test_a_reader_of_a_read_only_folder_sees_changes(path, read_only_folder):
    folder, forbid = read_only_folder
    change(path, "PRAGMA journal_mode = WAL")  # which such a reader can't use
    copied = path.rename(folder / path.name)
    forbid()
    with opened(copied) as file:
        before = file.state()
        os.setresuid(0, 0, 0)
        change(copied, "INSERT INTO sources VALUES (NULL, 'second', '', '')")
        os.setresuid(NOBODY, NOBODY, 0)
        assert list_sources(file) == ["first", "second"]
        assert file.state() != before


def test_on_another_machine_the_rollback_journal_is_used(path, monkeypatch):
    change(path, "PRAGMA journal_mode = WAL")
    mounts = path.with_name("mounts")
    mounts.write_text(f"disk / ext4 rw 0 0\nhost:/home {path.parent.parent} nfs4 rw 0 0\n")
    monkeypatch.setattr(index_file, "MOUNTS", mounts)
    with opened(path) as file:
        with file.writing() as connection:
            connection.execute("INSERT INTO sources VALUES (NULL, 'second', '', '')")
            names = {each.name for each in path.parent.iterdir()}
            assert names == {"mounts", path.name, f"{path.name}-journal"}
        assert list_sources(file) == ["first", "second"]


def test_a_file_that_was_removed_or_replaced_takes_no_writes(tmp_path):
    path = tmp_path / "notes.bertkit"
    with opened(path, creates=True) as file:
        path.unlink()
        with pytest.raises(StorageError, match="was removed or replaced meanwhile"), file.writing():
            pass
        IndexFile.open(path, creates=True).close()
        with pytest.raises(StorageError, match="was removed or replaced meanwhile"), file.reading():
            pass


@pytest.mark.parametrize(
    ("name", "value"),
    [("dimension", '"64"'), ("dimension", "-1"), ("similarity", '"near"'), ("settings", '"x"')],
)
def test_facts_that_no_index_has_are_refused(tmp_path, name, value):
    path = tmp_path / "notes.bertkit"
    with opened(path, creates=True) as file, file.writing() as connection:
        connection.execute("INSERT INTO facts VALUES (?, ?)", (name, value))
    with pytest.raises(DamagedFileError, match=f"is damaged: .*{name}"):
        IndexFile.open(path)


def test_an_index_by_a_relative_path_stays_open_in_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with opened(Path("notes.bertkit"), creates=True) as file:
        monkeypatch.chdir("/")
        add_source(file, "first")
        assert list_sources(file) == ["first"]
