"""Texts of one or several files, read row by row as one table.

Several files are a list of names, a folder or a glob. Row n counts all rows of all files, in the
order of the names, with folders sorted.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from bertkit.base.addresses import is_remote, to_url
from bertkit.base.checksums import record_file
from bertkit.base.errors import (
    BertkitError,
    InputError,
    MissingFileError,
    SettingsError,
    storage_errors,
)
from bertkit.base.progress import announce
from bertkit.base.remote import RemoteFile, find_info
from bertkit.data.input_files import (
    INDEX_SUFFIX,
    STANDARD_INPUT,
    FileId,
    distinguish,
    find_files,
    look_at,
)
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
    skips_blank: bool = False  # whether rows without text are left out; their numbers stay
    num_blank: int = 0  # rows without text, of those read so far
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
        """Yield all rows that aren't left out, from the beginning; see `numbered_rows`."""
        return (row for _, row in self.numbered_rows())

    def numbered_rows(self) -> Iterator[tuple[int, TextRow]]:
        """Yield all rows that aren't left out, each with its number, from 0.

        Raises:
            InputError: a row can't be read as a text; the message names it.
        """
        if self.is_single and not self.skips_blank:
            return enumerate(next(iter(self.tables.values())).rows())
        return self._number_rows()

    def _number_rows(self) -> Iterator[tuple[int, TextRow]]:
        self.num_blank, number = 0, 0
        for name, table in self.tables.items():
            try:
                for row_of_file, row in enumerate(table.rows(), start=1):
                    is_blank = not row.text.replace("\0", "").strip()
                    self.num_blank += is_blank
                    if not (is_blank and self.skips_blank):
                        is_named = self.is_single or row.id is not None
                        yield number, row if is_named else row._replace(id=f"{name}:{row_of_file}")
                    number += 1
            except NotTextError as error:
                if self.is_single:
                    raise
                self.leave_out(name, error)

    def identity(self) -> dict[str, str | bool | int | None] | None:
        """Return that of a file, or a digest of those of several; see `TextTable.identity`."""
        identities = [table.identity() for table in self.tables.values()]
        skipping = {"skips_blank": True} if self.skips_blank else {}
        if None in identities:
            return None
        if self.is_single:
            return {**(identities[0] or {}), **skipping}
        digest = _hash(list(zip(self.tables, identities, strict=True)))
        return {"num_files": len(identities), "files_sha256": digest, **skipping}

    def fingerprint(self) -> str:
        """Return the SHA-256 of the identity."""
        return _hash(self.identity())

    def paths(self) -> Iterator[Path | RemoteFile]:
        """Yield the files.

        Raises:
            InputError: one is standard input, a pipe or a device.
        """
        for name, table in self.tables.items():
            if table.path is None or table.size_bytes is None:
                raise InputError(f"{name} must be a regular file, and is a pipe or a device")
            yield table.path

    def sha256(self) -> str:
        """Return the SHA-256 of the file, or of the names and contents of several.

        It is what an identity stands for, and takes a reading of everything.
        """
        digests = [record_file(path).sha256 for path in self.paths()]
        if self.is_single:
            return digests[0]
        return _hash(list(zip(self.tables, digests, strict=True)))

    def place_beside(self) -> Path:
        """Return a path beside the input, for what is made of it.

        That of one file or folder has its name; of several, their common folder and a digest.
        """
        if any(map(is_remote, self.inputs)):
            raise SettingsError(
                "an index of remote texts needs a folder; name one with `index_folder`"
            )
        first = Path(self.inputs[0])
        if len(self.inputs) == 1 and first.exists():
            return name_beside(first)
        absolute = sorted(str(Path(name).absolute()) for name in self.inputs)
        folders = [path.absolute().parent for path in self.paths() if isinstance(path, Path)]
        folder = Path(os.path.commonpath(folders))
        relative = [os.path.relpath(name, folder) for name in absolute]
        return folder / f"texts-{_hash(relative)[:8]}{INDEX_SUFFIX}"

    def leave_out(self, name: str, error: BertkitError) -> None:
        """Leave out a file without text, and say so once."""
        if name not in self.left_out:
            self.left_out[name] = str(error)
            announce(f"left out: {error}")


def name_beside(path: Path) -> Path:
    """Return a path beside a file or folder, for what is made of it."""
    named = path if path.name not in {"", ".."} else path.resolve()
    return named.with_name(f"{named.name}{INDEX_SUFFIX}")


def open_text_files(
    source: Source | Sequence[Source],
    settings: TableSettings | None = None,
    *,
    skips_blank: bool = False,
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
        return TextFiles(names, {only: open_texts(only, settings)}, True, skips_blank)
    files = find_text_files(names, settings)
    files.skips_blank = skips_blank
    return files


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
            files.leave_out(name, error)
            continue
        file_id = look_at(path).file_id
        if file_id not in seen:  # else it is there under another name
            seen.add(file_id)
            table.name = distinguish(name, taken)
            files.tables[table.name] = table
    if not files.tables:
        raise InputError(f"{files.name} has no file of texts: {'; '.join(files.left_out.values())}")
    return files


def _hash(value: object) -> str:
    """Return the SHA-256 of JSON data."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _is_file(name: str) -> bool:
    """Whether a name is that of something else than a folder."""
    if is_remote(name):
        info = find_info(to_url(name))
        return info is not None and info["type"] == "file"
    with storage_errors(Path(name), "read"):
        return Path(name).exists() and not Path(name).is_dir()
