"""The SQLite file of an index: schema, connection, transactions, and errors.

A writer uses a write-ahead log, so that readers go on beside it; when the last process closes the
file, the log is merged into it, and one file remains. A file in a read-only folder can be read.

The log needs memory that processes share. On the file system of another machine, which could be
used from several, the rollback journal is used.
"""

import ctypes
import json
import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from typing import Annotated, Self

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from bertkit.base.errors import (
    BertkitError,
    BusyError,
    DamagedFileError,
    MissingFileError,
    StorageError,
    locking_errors,
    storage_errors,
)
from bertkit.base.files import make_folder
from bertkit.base.json_files import parse_json
from bertkit.base.output import LOCK_FILE
from bertkit.base.settings import describe_validation
from bertkit.inference.embeddings.settings import Similarity
from bertkit.reports.text import show
from bertkit.retrieval.vector_file import Identity

APPLICATION_ID = 0x62657274  # "bert"
VERSION = 1
LEAST_SQLITE = (3, 40)
BUSY_SECONDS = 30
MAX_LOG_BYTES = 1 << 26  # of a log whose content was merged
LOG_PAGES = 8000  # before they are merged, which takes the longer the more often it is done
CACHE_KIB = 1 << 16
MAPPED_BYTES = (1 << 31) - (1 << 16)  # the most that SQLite maps
MOUNTS = Path("/proc/self/mounts")  # of Linux
NETWORK_SYSTEMS = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "fuse")
# The short columns of `vectors` come first, since they are read without the long ones.
SCHEMA = """\
CREATE TABLE facts(name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE sources(number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, corpus TEXT NOT NULL,
    stamp TEXT NOT NULL);
CREATE TABLE documents(number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, source INTEGER,
    sha256 BLOB NOT NULL, fields TEXT NOT NULL);
CREATE INDEX documents_source ON documents(source);
CREATE TABLE fields(document INTEGER NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL, number REAL);
CREATE INDEX fields_document ON fields(document);
CREATE INDEX fields_text ON fields(name, text, document);
CREATE INDEX fields_number ON fields(name, number, document);
CREATE TABLE passages(row INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL,
    start INTEGER NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL, sha256 BLOB NOT NULL);
CREATE INDEX passages_document ON passages(document);
CREATE INDEX passages_sha256 ON passages(sha256);
CREATE TABLE vectors(block INTEGER PRIMARY KEY, first_row INTEGER NOT NULL, crc INTEGER NOT NULL,
    rows BLOB NOT NULL, content BLOB NOT NULL);
CREATE TABLE deleted(row INTEGER PRIMARY KEY);
"""
STATEMENTS = SCHEMA.removesuffix(";\n").split(";\n")
OTHER_TABLES = (
    "CREATE TABLE sqlite_sequence(",
    "CREATE VIRTUAL TABLE words USING fts5(",
    "CREATE TABLE 'words_",
)
MAKING = "make it with `bertkit index add`"
REMEDY = "make it anew from its texts, or restore a copy"


class Facts(BaseModel):
    """What an index says of itself."""

    model_config = ConfigDict(strict=True)

    embedding: Identity | None = None
    dimension: Annotated[int, Field(gt=0, lt=1 << 16)] | None = None
    similarity: Similarity | None = None
    settings: dict[str, JsonValue] | None = None
    tokenizer: str | None = None
    changed: str | None = None


class IndexFile:
    """A connection to an index, which threads may share; each process opens its own.

    Attributes:
        path: None for an index in memory.
        is_read_only: whether the file or its folder can't be written.
    """

    def __init__(self, path: Path | None, *, is_read_only: bool = False) -> None:
        self.path, self.is_read_only = path, is_read_only
        self._name = "the index in memory" if path is None else str(path)
        self._place = None if path is None else path.absolute()  # whatever the process's folder is
        self._lock = RLock()
        self._is_on_network = path is not None and _is_on_network(path)
        self._num_opened = 0
        self._connect()

    @classmethod
    def open(cls, path: Path | None, *, creates: bool = False) -> Self:
        """Open an index, or make an empty one if there is none and `creates` says so.

        Raises:
            MissingFileError: there is no such file.
            DamagedFileError: it isn't an index, or one of another version.
            StorageError: it can't be read or made, or Python's SQLite is too old.
        """
        if sqlite3.sqlite_version_info < LEAST_SQLITE:
            raise StorageError(
                f"an index needs SQLite 3.40, and this Python has {sqlite3.sqlite_version}; use a"
                " newer Python"
            )
        is_new = is_read_only = False
        if path is not None:
            with storage_errors(path, "read"):
                if path.exists() and not path.is_file():
                    raise DamagedFileError(f"{path} isn't a file, as an index is; name another")
                is_new = not path.exists()
                paths = (path, path.absolute().parent)
                is_read_only = not is_new and not all(os.access(each, os.W_OK) for each in paths)
            if is_new and not creates:
                raise MissingFileError(f"{path} doesn't exist; {MAKING}")
            if is_new:
                make_folder(path.absolute().parent)
        file = cls(path, is_read_only=is_read_only)
        try:
            if creates or path is None:
                file._create()
            file._check()
        except BaseException:
            file.close()
            raise
        return file

    @property
    def is_current(self) -> bool:
        """Whether the file is still in its place."""
        return self._is_immutable or self._find_identity() == self._identity

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, which sees one whole state of the index until the block ends."""
        with self._lock, self._errors("read"):
            if self._connection.in_transaction:  # within another block
                yield self._connection
            else:
                self._check_identity()
                with self._transaction("BEGIN"):
                    yield self._connection
                if self._is_immutable and self._find_identity() != self._identity:
                    raise StorageError(f"{self._name} was changed meanwhile; try again")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection; what is written in the block is kept whole, or not at all.

        Raises:
            BusyError: another process goes on writing.
            StorageError: the disk or its permissions refuse.
        """
        with self._lock, self._errors("written"):
            if self.is_read_only:
                raise StorageError(f"{self._name} can't be written: it or its folder is read-only")
            self._check_identity()
            mode, safety = ("DELETE", "FULL") if self._is_on_network else ("WAL", "NORMAL")
            self._connection.execute(f"PRAGMA journal_mode = {mode}")
            self._connection.execute(f"PRAGMA synchronous = {safety}")  # see `sync`
            with self._transaction("BEGIN IMMEDIATE"):
                yield self._connection

    @contextmanager
    def mapped(self) -> Iterator[None]:
        """Read large values faster in a block, from mapped memory.

        It is short, since a file that is cut off while it is mapped ends the process.
        """
        if self._is_on_network:
            yield
            return
        self._connection.execute(f"PRAGMA mmap_size = {MAPPED_BYTES}")
        try:
            yield
        finally:
            self._connection.execute("PRAGMA mmap_size = 0")

    def read_fact(self, name: str) -> JsonValue:
        """Return a fact about the index; None if it isn't known."""
        with self.reading() as connection:
            found = connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if found is None else parse_json(found[0], f"{name!r} of {self._name}")

    def write_fact(self, connection: sqlite3.Connection, name: str, value: JsonValue) -> None:
        """Set a fact about the index."""
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, text))

    def state(self) -> int:
        """Return a number that grows with each change, by whichever process."""
        with self.reading() as connection:  # changes of others, and of this connection
            return (self._num_opened << 32) + self._ask("data_version") + connection.total_changes

    def sync(self) -> None:
        """Bring what was written to the disk, so that no power cut undoes it.

        Until then it may undo the last transactions, none in part. To wait for the disk in each of
        them took longer than all else when 100,000 rows were added.
        """
        with self._lock, self._errors("written"):
            self._connection.execute("PRAGMA wal_checkpoint").fetchall()

    def close(self) -> None:
        """Close the connection; the last one merges the log, so that one file remains."""
        with self._lock:
            self._finalizer()

    def _connect(self) -> None:
        """Open a connection, which is closed with this object or with the process, too."""
        with self._errors("read"):
            self._connection, self._is_immutable = _connect(self._place, self.is_read_only)
            self._num_opened += 1
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._connection.execute(f"PRAGMA journal_size_limit = {MAX_LOG_BYTES}")
            self._connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
            self._connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            self._identity = self._find_identity()
        place, identity = self._place, self._identity[:2]
        self._finalizer = weakref.finalize(
            self, _close, self._connection, os.getpid(), place, identity
        )

    def _find_identity(self) -> tuple[int, ...]:
        """Return what tells a file from another; of an immutable one, its state and its log's."""
        if self._place is None or not self._place.exists():
            return ()
        found, log = self._place.stat(), _name_log(self._place)
        identity = found.st_dev, found.st_ino
        if not self._is_immutable:
            return identity
        return *identity, found.st_size, found.st_mtime_ns, log.exists() and log.stat().st_size

    def _check_identity(self) -> None:
        """Refuse to go on with a file that has another one, or none, in its place.

        SQLite doesn't notice changes of a file that it takes for immutable: it is opened again.
        """
        with storage_errors(self._name, "read"):
            if (found := self._find_identity()) == self._identity:
                return
        if self._is_immutable and found:
            self._finalizer()
            self._connect()
        else:
            raise StorageError(f"{self._name} was removed or replaced meanwhile; open it again")

    def _ask(self, pragma: str) -> int:
        value: int = self._connection.execute(f"PRAGMA {pragma}").fetchone()[0]
        return value

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._connection.execute(begin)
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _create(self) -> None:
        with self._errors("made"):
            if self._ask("schema_version") or self._ask("application_id"):
                return
            self._connection.execute("PRAGMA auto_vacuum = FULL")
            with self._transaction("BEGIN IMMEDIATE"):
                if not self._ask("schema_version"):  # else another process was first
                    self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    self._connection.execute(f"PRAGMA user_version = {VERSION}")
                    for statement in STATEMENTS:
                        self._connection.execute(statement)

    def _check(self) -> None:
        """Refuse other files and versions, and tables, triggers or views that aren't ours."""
        with self.reading() as connection:
            if not self._ask("schema_version"):  # the process that made it was killed
                raise MissingFileError(f"{self._name} is empty; {MAKING}")
            if self._ask("application_id") != APPLICATION_ID:
                raise DamagedFileError(f"{self._name} isn't an index; name another file")
            if (version := self._ask("user_version")) != VERSION:
                raise DamagedFileError(
                    f"{self._name} is an index of version {version}, and this bertkit reads version"
                    f" {VERSION}; {REMEDY}"
                )
            found = connection.execute("SELECT sql FROM sqlite_schema WHERE sql NOT NULL")
            ours = {sql for (sql,) in found if not sql.startswith(OTHER_TABLES)}
            if ours != set(STATEMENTS):
                raise DamagedFileError(f"{self._name} has other tables than an index; {REMEDY}")
            names = connection.execute("SELECT name FROM facts").fetchall()
        facts = {name: self.read_fact(name) for (name,) in names}
        try:
            Facts.model_validate(facts)
        except ValidationError as error:
            problem = describe_validation(error, Facts)
            raise DamagedFileError(f"{self._name} is damaged: {problem}; {REMEDY}") from None

    @contextmanager
    def _errors(self, participle: str) -> Iterator[None]:
        """Turn errors of SQLite into errors that name the file and what to do."""
        try:
            yield
        except sqlite3.Error as error:
            if isinstance(error, sqlite3.ProgrammingError):  # a bug
                raise
            known = _explain(f"{self._name} can't be {participle}", error)
            if isinstance(known, BusyError) and self.path is not None and not self.is_read_only:
                # SQLite takes a file system without locks for a lock of another process.
                with locking_errors(self.path), TemporaryDirectory(dir=self.path.parent) as folder:
                    FileLock(Path(folder, LOCK_FILE), fallback_to_soft=False).acquire()
            raise known from error


def _connect(path: Path | None, is_read_only: bool) -> tuple[sqlite3.Connection, bool]:
    """Return a connection, and whether it takes the file for immutable."""
    if path is None:
        return _open(":memory:"), False
    uri = path.absolute().as_uri()
    if not is_read_only:
        return _open(f"{uri}?mode=rwc"), False
    try:
        return _open(f"{uri}?mode=ro"), False
    except sqlite3.OperationalError:  # a log can't be made beside it
        log = _name_log(path)
        if log.exists() and log.stat().st_size:  # of a process that was killed
            raise
        return _open(f"{uri}?immutable=1"), True


def _name_log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _close(
    connection: sqlite3.Connection, process: int, place: Path | None, identity: tuple[int, ...]
) -> None:
    """Close a connection; the last one merges the log, so that one file remains."""
    if process != os.getpid():  # after a fork, the file and its locks are the parent's
        return
    found = place.stat() if place is not None and place.exists() else None
    if found is not None and (found.st_dev, found.st_ino) != identity:
        # Another file is in its place. SQLite would remove that one's log, by its name, when this
        # connection is closed or deleted, so it is kept to the end of the process, and beyond.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        return
    with suppress(sqlite3.Error):  # others have it open, or it is damaged or closed
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


def _open(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True
    )
    try:
        connection.execute("PRAGMA schema_version")  # reads the file
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _is_on_network(path: Path) -> bool:
    """Whether a file is on another machine, as far as the system says."""
    real, kinds = path.resolve(), {Path("/"): ""}
    with suppress(OSError):
        for line in MOUNTS.read_text(errors="replace").splitlines():
            _, folder, kind, *_ = line.split(" ")
            kinds[Path(folder)] = kind
    nearest = next(kinds[folder] for folder in real.parents if folder in kinds)
    return nearest.startswith(NETWORK_SYSTEMS)


def _explain(failure: str, error: sqlite3.Error) -> BertkitError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what is more exact
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return BusyError(
            f"{failure}: another process has been writing it for {BUSY_SECONDS} seconds; try again"
            " when that has finished"
        )
    if code == sqlite3.SQLITE_FULL:
        return StorageError(f"{failure}: the disk is full; free some space, and try again")
    if isinstance(error, sqlite3.OperationalError) and code > sqlite3.SQLITE_ERROR:
        return StorageError(f"{failure}: {error}")  # of the file system
    return DamagedFileError(f"{failure}: it is damaged, or no index ({show(str(error))}); {REMEDY}")
