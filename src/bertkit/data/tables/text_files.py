"""Texts of one or several files, read row by row as one table.

Several files are a list of names, a folder or a glob. Row n counts all rows of all files, in the
order of the names, with folders sorted.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from bertkit.base.addresses import is_remote, to_url
from bertkit.base.errors import (
    BertkitError,
    InputError,
    MissingFileError,
    pluralize,
    storage_errors,
)
from bertkit.base.progress import announce
from bertkit.base.remote import find_info
from bertkit.data.input_files import STANDARD_INPUT, FileId, distinguish, find_files, look_at
from bertkit.data.tables.decoder import NotTextError
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.texts import TextRow, TextTable, open_texts

Source = str | Path
MAX_SHOWN = 3


@dataclass
class TextFiles:
    """The rows of files of texts."""

    inputs: list[str]  # files, folders and globs, as they were named
    tables: dict[str, TextTable]  # by the names that messages and ids have
    is_single: bool  # whether one file was named; else files without text are left out
    left_out: dict[str, str] = field(default_factory=dict)  # why, by name

    @property
    def name(self) -> str:
        """What messages call the input."""
        if self.is_single:
            return next(iter(self.tables.values())).name
        shown = ", ".join(self.inputs[:MAX_SHOWN])
        return shown + (", …" if len(self.inputs) > MAX_SHOWN else "")

    @property
    def has_ids(self) -> bool:
        """Whether rows have ids: of a column, or made of file and row."""
        return not self.is_single or any(table.id_column for table in self.tables.values())

    @property
    def size_bytes(self) -> int | None:
        """Bytes on disk; None if unknown, as for a pipe."""
        sizes = [table.size_bytes for table in self.tables.values()]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def num_undecodable(self) -> int:
        """Number of rows read so far with invalid UTF-8, which became U+FFFD."""
        return sum(table.num_undecodable for table in self.tables.values())

    def rows(self) -> Iterator[TextRow]:
        """Return all rows, from the beginning; those of several files have ids.

        Raises:
            InputError: a row can't be read as a text; the message names it.
        """
        return next(iter(self.tables.values())).rows() if self.is_single else self._name_rows()

    def _name_rows(self) -> Iterator[TextRow]:
        for name, table in self.tables.items():
            try:
                for number, row in enumerate(table.rows(), start=1):
                    yield row if row.id is not None else row._replace(id=f"{name}:{number}")
            except NotTextError as error:
                self.leave_out(name, error)

    def identity(self) -> dict[str, str | int | None] | None:
        """Return that of a file, or a digest of those of several; see `TextTable.identity`."""
        identities = [table.identity() for table in self.tables.values()]
        if None in identities:
            return None
        if self.is_single:
            return identities[0]
        named = json.dumps(list(zip(self.tables, identities, strict=True)))
        digest = hashlib.sha256(named.encode()).hexdigest()
        return {"num_files": len(identities), "files_sha256": digest}

    def leave_out(self, name: str, error: BertkitError) -> None:
        """Leave out a file without text, and say so once."""
        if name not in self.left_out:
            self.left_out[name] = str(error)
            announce(f"left out: {error}")


def open_text_files(
    source: Source | Sequence[Source], settings: TableSettings | None = None
) -> TextFiles:
    """Open files of texts; no content is read yet.

    Args:
        source: a file (may be .gz, .bz2 or .zst), a folder, a glob, - for standard input, or
            several of these.
    """
    names = [str(one) for one in ([source] if isinstance(source, str | Path) else source)]
    if not names:
        raise InputError("no input: name files, folders or globs of texts")
    only = names[0]
    if len(names) == 1 and (only == STANDARD_INPUT or _is_file(only)):
        return TextFiles(names, {only: open_texts(only, settings)}, True)
    return find_text_files(names, settings)


def find_text_files(names: list[str], settings: TableSettings | None = None) -> TextFiles:
    """Find files of texts as in `open_text_files`; a single one is named as one of several."""
    files = TextFiles(names, {}, False)
    seen, taken = set[FileId](), set[str]()
    for path, name in chain.from_iterable(map(find_files, names)):
        try:
            table = open_texts(path, settings)
            if table.size_bytes is None:
                raise NotTextError(f"{path} is a pipe or a device; name it alone")
        except (NotTextError, MissingFileError) as error:  # missing: a link to nothing
            if str(path) in names:
                raise
            files.left_out[name] = str(error)
            continue
        file_id = look_at(path).file_id
        if file_id not in seen:  # else it is there under another name
            seen.add(file_id)
            table.name = distinguish(name, taken)
            files.tables[table.name] = table
    for problem in list(files.left_out.values())[:MAX_SHOWN]:
        announce(f"left out: {problem}")
    if (num_more := len(files.left_out) - MAX_SHOWN) > 0:
        announce(f"left out: {pluralize(num_more, 'more file')} without texts")
    if not files.tables:
        raise InputError(f"{files.name} has no file of texts: {'; '.join(files.left_out.values())}")
    return files


def _is_file(name: str) -> bool:
    """Whether a name is that of something else than a folder."""
    if is_remote(name):
        info = find_info(to_url(name))
        return info is not None and info["type"] == "file"
    with storage_errors(Path(name), "read"):
        return Path(name).exists() and not Path(name).is_dir()
