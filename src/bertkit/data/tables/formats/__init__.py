"""File formats: each reads the rows of a file, for labeled records, texts and corpora alike.

A reader is a function `(stream, decoder) → Rows`. To add a format, write a module in this folder,
add it to `FORMATS`, and its name to the settings that may name it (`tables/settings.py`,
`sources.py`).
"""

from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from bertkit.base.extras import require_package
from bertkit.base.remote import RemoteFile
from bertkit.data.input_files import find_extension
from bertkit.data.tables.decoder import RowDecoder, open_content
from bertkit.data.tables.formats import (
    conll,
    jsonl,
    lines,
    mediawiki,
    parquet,
    separated,
    squad,
    xlsx,
)
from bertkit.data.tables.record import Rows


class FileFormat(NamedTuple):
    """A file format."""

    read_rows: Callable[[Any, RowDecoder], Rows]  # the stream is what `open_rows` opens
    extensions: tuple[str, ...] = ()
    is_text: bool = True  # else it says by itself how its characters are encoded


FORMATS = {
    "text": FileFormat(lines.read_rows, (".txt",)),
    "json": FileFormat(squad.read_json_rows, (".json",)),
    "jsonl": FileFormat(jsonl.read_rows, (".jsonl", ".ndjson")),
    "csv": FileFormat(separated.read_csv_rows, (".csv",)),
    "tsv": FileFormat(separated.read_tsv_rows, (".tsv",)),
    "parquet": FileFormat(parquet.read_rows, (".parquet",), is_text=False),
    "xlsx": FileFormat(xlsx.read_rows, (".xlsx",), is_text=False),
    "conll": FileFormat(conll.read_rows, (".conll", ".conllu", ".iob", ".iob2", ".bio")),
    "squad": FileFormat(squad.read_rows),
    "mediawiki": FileFormat(mediawiki.read_rows, (".xml",), is_text=False),
}
SEEKABLE = {"parquet": parquet.open_table, "xlsx": xlsx.open_workbook}
EXTENSIONS = {extension: name for name, one in FORMATS.items() for extension in one.extensions}


def find_format(path: Path | RemoteFile, known: Collection[str]) -> str | None:
    """Return the format by a file's extension; None if it shows none of those known.

    Raises:
        MissingExtraError: a package that reads the file isn't installed.
    """
    if path.suffix.lower() == ".zst":
        require_package("zstandard", str(path))
    name = EXTENSIONS.get(find_extension(path))
    if name not in known:
        return None
    if name == "parquet":
        require_package("pyarrow", str(path))
    return name


def open_rows(
    path: Path | RemoteFile | None, name: str, decoder: RowDecoder, stack: ExitStack
) -> Rows:
    """Open a table at its first row until the stack ends; a path of None is standard input."""
    chosen = FORMATS[name]
    open_seekable = SEEKABLE.get(name)
    opened = (
        open_content(path, decoder, is_text=chosen.is_text)
        if open_seekable is None
        else open_seekable(path, decoder)
    )
    return chosen.read_rows(stack.enter_context(opened), decoder)
