"""File formats of tables, for labeled records and plain texts alike.

A reader is a function `(stream, decoder) → Rows`. To add a format, write a module in this folder,
add it to `READERS` and `EXTENSIONS`, and its name to `RecordFormat` in `tables/settings.py`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bertkit.base.remote import RemoteFile
from bertkit.data.tables.decoder import RowDecoder, open_content
from bertkit.data.tables.formats import conll, jsonl, parquet, separated, squad
from bertkit.data.tables.record import Rows

Reader = Callable[[BinaryIO, RowDecoder], Rows]

READERS: dict[str, Reader] = {
    "text": separated.read_line_rows,
    "json": squad.read_json_rows,
    "jsonl": jsonl.read_rows,
    "csv": separated.read_csv_rows,
    "tsv": separated.read_tsv_rows,
    "parquet": parquet.read_rows,
    "conll": conll.read_rows,
    "squad": squad.read_rows,
}
EXTENSIONS = {
    ".txt": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".conll": "conll",
    ".conllu": "conll",
    ".iob": "conll",
    ".iob2": "conll",
    ".bio": "conll",
    ".json": "json",
}


@contextmanager
def open_rows(
    path: Path | RemoteFile | None, name_of_format: str, decoder: RowDecoder
) -> Iterator[Rows]:
    """Open a table at its first row; a path of None is standard input."""
    if name_of_format == "parquet":
        with parquet.open_table(path, decoder) as stream:
            yield parquet.read_rows(stream, decoder)
        return
    with open_content(path, decoder) as stream:
        yield READERS[name_of_format](stream, decoder)
