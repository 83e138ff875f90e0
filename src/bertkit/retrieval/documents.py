"""Documents of an index: rows, whose further columns are fields, and files of plain text.

A row whose text isn't one is left out and said, as broken rows of a `RecordTable` are.
"""

import hashlib
import json
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from bertkit.base.addresses import is_remote, to_url
from bertkit.base.errors import InputError, SettingsError, pluralize
from bertkit.base.json_files import parse_json
from bertkit.base.progress import announce
from bertkit.data.compression import COMPRESSIONS
from bertkit.data.input_files import INDEX_SUFFIX, find_files, look_at
from bertkit.data.tables.decoder import ID_FIELD, RowDecoder, look_up
from bertkit.data.tables.record import BrokenRowError, Record, to_plain
from bertkit.data.tables.records import RecordTable, open_records
from bertkit.data.tables.rows import Table, name_value
from bertkit.data.tables.settings import CorpusSettings, RecordSettings
from bertkit.data.tables.text_files import find_text_files
from bertkit.data.tables.texts import TextTable
from bertkit.reports.text import make_legible, show
from bertkit.tokenization.words import SURROGATE

ENCODER = json.JSONEncoder(default=str, ensure_ascii=False, skipkeys=True)
DECODER = json.JSONDecoder(
    parse_constant=lambda _: None,
    parse_int=lambda digits: int(digits) if len(digits) < 20 else digits,  # what 64 bits hold
)
PLAIN = ("text", "csv", "tsv", "jsonl", "json")  # formats that aren't compressed by themselves
ID_COLUMN = "id"  # where none is named
WILDCARD = re.compile(r"[*?[]")
ID_DIGITS = 16  # of the SHA-256 of a text, as its id


@dataclass(frozen=True)
class SourceDocument:
    """A document as its source has it."""

    id: str
    text: str  # may be blank
    fields: dict[str, JsonValue]
    place: str  # file and row, for messages
    source: "SourceFile | None" = None
    size: int = 1  # about its share of all, for progress: bytes of a file, 1 of a row from Python

    @property
    def is_row(self) -> bool:
        """Whether it is a row, else a whole file of plain text."""
        return self.source is None or self.source.table.format != "text"

    @property
    def is_blank(self) -> bool:
        """Whether it has no text."""
        return not self.text.replace("\0", "").strip()


@dataclass(frozen=True)
class SourceFile:
    """A file of documents, which aren't read yet."""

    name: str  # folder and path below; the same from every working directory
    path: str  # as `find_path` returns it
    stamp: str  # path, how the file is read, its size and time of change
    size_bytes: int  # 0 of a compressed one, whose documents count more bytes
    table: TextTable
    reading: CorpusSettings
    is_named: bool  # whether a user named this file, else its folder or a pattern

    @property
    def unfinished(self) -> str:
        """The stamp of a file of which documents may be missing."""
        return json.dumps([self.path])

    def documents(self) -> Iterator[SourceDocument]:
        """Yield all documents; a file without texts has none, and is an error if it was named."""
        is_read = False
        try:
            if self.table.format == "text":
                for row in self.table.documents():
                    yield SourceDocument(self.name, row.text, {}, self.name, self, self.size_bytes)
                if self.table.num_undecodable:
                    announce(f"{self.name}: invalid UTF-8 was replaced by U+FFFD")
                return
            chosen = self.reading.model_dump(include={"encoding", "delimiter"})
            settings = RecordSettings.model_validate({**chosen, "format": self.table.format})
            table = open_records(str(self.table.path), settings, kept={})
            for document in _read_records(
                table, self.reading, lambda row, _: f"{self.name}:{row}", self
            ):
                is_read = True
                yield document
        except InputError as error:  # no text, or no column of texts
            if self.is_named or is_read:
                raise
            announce(make_legible(f"left out: {error}"))


def open_sources(
    inputs: Sequence[str | Path], reading: CorpusSettings, index: Path | None = None
) -> list[SourceFile]:
    """Find the files of texts that files, folders and globs name; others are left out and said."""
    names, sources = [str(one) for one in inputs], []
    chosen = reading.model_dump(include=set(CorpusSettings.model_fields), exclude_defaults=True)
    for name, table in find_text_files(names, reading).tables.items():
        assert table.path is not None, "standard input isn't a file"
        path = find_path(str(table.path), index)
        stamp = json.dumps([path, {**chosen, "format": table.format, **look_at(table.path).stamp}])
        is_named = str(table.path) in {*names, *(str(Path(one)) for one in names)}
        is_plain = table.format in PLAIN and table.path.suffix.lower() not in COMPRESSIONS
        size_bytes = (table.size_bytes or 0) if is_plain else 0
        sources.append(SourceFile(name, path, stamp, size_bytes, table, reading, is_named))
    return sources


def read_rows(
    rows: Table,
    *,
    text: str | None = None,
    id: str | None = None,  # noqa: A002 - as a keyword of `Index.add`
    first: int | None = None,
) -> Iterator[SourceDocument]:
    """Yield a document for each row from Python, in any form of `open_records`.

    Args:
        text: the column of the texts; by default the only one, or `text`.
        id: the column of the ids, by default `id`; an empty text for none. Without one, they are
            the numbers of the rows, from `first`. A row without an id has digits of the SHA-256 of
            its text, so that the same text has the same id later.
    """
    reading, repeats = CorpusSettings(text_column=text, id_column=id), Counter[str]()
    table = open_records(rows, split="rows")
    has_ids = _choose_id_column(table, id) is not None

    def name_row(number: int, found: str) -> str:
        if first is not None and not has_ids:
            return str(first + number - 1)
        digits = hashlib.sha256(found.encode()).hexdigest()[:ID_DIGITS]
        repeats[digits] += 1
        return digits if repeats[digits] == 1 else f"{digits}-{repeats[digits]}"

    yield from _read_records(table, reading, name_row)


def _choose_id_column(table: RecordTable, named: str | None) -> str | None:
    if named is None and ID_COLUMN in (table.columns or ()):
        return ID_COLUMN
    return named or None


def _read_records(
    table: RecordTable,
    reading: CorpusSettings,
    name_row: Callable[[int, str], str],
    source: SourceFile | None = None,
) -> Iterator[SourceDocument]:
    """Yield a document for each record; `name_row` makes ids of number and text."""
    id_column = _choose_id_column(table, reading.id_column)
    chooser = RowDecoder(table.name, column=reading.text_column, id_column=id_column)
    column = chooser.choose_column(table.columns) if table.columns else ""
    position = num_unnamed = 0
    for number, record in enumerate(table.records(), start=1):
        before, position = position, table.report.num_bytes
        try:
            text = _take_text(record, column)
            fields = _take_fields(record, {column, id_column, ""})
        except BrokenRowError as error:
            table.report.add_broken(str(error))
            continue
        own_id = to_plain(chooser.name_id(record.values).get(ID_FIELD))
        named = "" if own_id is None else _to_text(own_id)
        if not named.strip():
            named, num_unnamed = name_row(number, text), num_unnamed + 1
        size = position - before if source else 1
        yield SourceDocument(named, text, fields, record.place, source, size)
    if num_unnamed and reading.id_column:
        announce(f"{table.name}: {pluralize(num_unnamed, 'row')} without {reading.id_column}")
    if not table.report.num_rows:
        return
    for line in table.report.summary_lines():
        announce(make_legible(line))
    if table.report.num_rows == table.report.num_broken:
        raise InputError(f"{table.name} has no row with a text: {table.report.first_broken[0]}")


def _take_text(record: Record, column: str) -> str:
    """Return the text of a record, empty if it is null or missing."""
    found: object = None
    with suppress(KeyError):
        found = look_up(record.values, column)
    if not isinstance(found, str | None):
        raise BrokenRowError(
            f"{record.place} has a {name_value(found)} in {show(column)} where a text should be"
        )
    return _to_text(found or "")


def _take_fields(record: Record, others: set[str | None]) -> dict[str, JsonValue]:
    """Return the further cells; what JSON lacks is a text, such as a date, or null, as NaN."""
    try:
        cells = {name: to_plain(cell) for name, cell in record.values.items() if name not in others}
        found: dict[str, JsonValue] = DECODER.decode(_to_text(ENCODER.encode(cells)))
    except RecursionError:
        raise BrokenRowError(f"{record.place} has a value that is nested too deeply") from None
    return found


def _to_text(value: object) -> str:
    """Return a value as text that can be stored."""
    return SURROGATE.sub("\N{REPLACEMENT CHARACTER}", str(value))


def compare_sources(
    connection: sqlite3.Connection,
    sources: Sequence[SourceFile],
    corpus: str = "",
    index: Path | None = None,
) -> tuple[list[SourceFile], list[str]]:
    """Return the files of a corpus that aren't stored as they are, and names of its that are gone.

    Those of another corpus are gone if they were in the folders of this one, and no file is there.

    Raises:
        InputError: the index has another file by the name of one.
    """
    found = connection.execute("SELECT name, stamp, corpus FROM sources ORDER BY name").fetchall()
    paths = {
        name: cast("str", cast("list[JsonValue]", parse_json(str(stamp), "the index"))[0])
        for name, stamp, _ in found
    }
    folder = _find_folder(index)
    moved = [one for one in sources if paths.get(one.name, one.path) != one.path]
    given = {os.path.realpath(folder / one.path) for one in sources if moved}
    for one in moved:
        old = folder / paths[one.name]
        if old.exists() and os.path.realpath(old) not in given:
            raise InputError(
                f"{one.path} would replace {paths[one.name]}, which the index has as"
                f" {show(one.name)}; rename a folder, or give all files together"
            )
    stored = {name: rest for name, *rest in found}
    changed = [one for one in sources if stored.get(one.name) != [one.stamp, corpus]]
    names = json.loads(corpus or "[]")
    inside = tuple(WILDCARD.split("" if each == "." else f"{each}/")[0] for each in names)

    def is_gone(path: str, owner: str) -> bool:
        is_inside = owner != "" and path.startswith(inside) and not is_remote(path)
        return owner == corpus or (is_inside and not (folder / path).exists())

    kept = {one.name for one in sources}
    return changed, [n for n, _, owner in found if n not in kept and is_gone(paths[n], owner)]


def place_index(inputs: Sequence[str | Path]) -> Path:
    """Return the path of the index of a corpus: beside it, or in the common folder of several."""
    if any(map(is_remote, inputs)):
        raise SettingsError("remote texts have no folder for an index; name a file with --index")
    first = Path(inputs[0])
    if len(inputs) == 1 and first.exists():
        named = first if first.name not in {"", ".."} else first.resolve()
        return named.with_name(f"{named.name}{INDEX_SUFFIX}")
    paths = [path for each in inputs for path, _ in find_files(str(each)) if isinstance(path, Path)]
    folder = Path(os.path.commonpath([path.absolute().parent for path in paths]))
    digest = hashlib.sha256(name_corpus(inputs, folder / "texts").encode()).hexdigest()
    return folder / f"texts-{digest[:8]}{INDEX_SUFFIX}"


def name_corpus(inputs: Sequence[str | Path], index: Path | None) -> str:
    """Return the name of a corpus in an index: its path from there, whose folder may move."""
    return json.dumps(sorted({find_path(name, index) for name in inputs}))


def find_path(name: str | Path, index: Path | None) -> str:
    """Return the path of a file from the folder of an index, with which it may move; or its URL."""
    if is_remote(name):
        return to_url(name)
    return os.path.relpath(Path(name).absolute(), _find_folder(index))


def _find_folder(index: Path | None) -> Path:
    return Path("/") if index is None else index.absolute().parent
