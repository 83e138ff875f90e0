"""What the functions take: files by name, or rows and texts from Python."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.progress import announce
from bertkit.data.readers.memory import CorpusInput, memory_source
from bertkit.data.tables.decoder import DEFAULT_FIELD
from bertkit.data.tables.record import RowReport
from bertkit.data.tables.records import open_records
from bertkit.data.tables.rows import Table


def hold_rows(table: Table | None) -> Table | None:
    """Return rows that can be read more than once."""
    return list(table) if isinstance(table, Iterator) else table


def list_texts(rows: Table, column: str | None) -> list[str]:
    """Return the texts of rows from Python.

    Args:
        rows: texts, or rows as in `find_origin`.
        column: of the texts; by default `text`.

    Raises:
        InputError: there is no such column, or a row has no text in it.
    """
    table = open_records(rows, split="texts")
    wanted = column or DEFAULT_FIELD
    if table.columns is not None and wanted not in table.columns:
        raise InputError(
            f"the texts have no column {wanted}; name one with text_column:"
            f" {', '.join(table.columns)}"
        )
    report, texts = RowReport(table.name), []
    for record in table.records(report):
        text = record.values.get(wanted)
        if not isinstance(text, str):
            raise InputError(f"{record.place} has no text in {wanted}")
        texts.append(text)
    if report.num_broken:
        raise InputError(report.first_broken[0])
    return texts


def is_paths(data: object) -> bool:
    """Whether data are names of files: a string, a path, or several paths.

    Raises:
        SettingsError: they are several strings, all of which are names of files.
    """
    if isinstance(data, str | Path):
        return True
    if not isinstance(data, Sequence) or not data:
        return False
    if all(isinstance(one, Path) for one in data):
        return True
    if all(isinstance(one, str) and len(one) < 256 and Path(one).exists() for one in data):
        raise SettingsError(
            "a list of strings is a list of texts, and these are names of files; name one file,"
            " folder or glob, or give a list of pathlib.Path"
        )
    return False


def list_inputs(data: Table | Sequence[Path], text_column: str | None) -> list[CorpusInput]:
    """Return the inputs of a corpus: names of files, or texts from Python as one source."""
    if isinstance(data, str | Path):
        return [str(data)]
    if is_paths(data):
        return [str(path) for path in cast("Iterable[Path]", data)]
    return [memory_source(list_texts(cast("Table", data), text_column))]


def choose_output(output: str | Path | None, name: str) -> Path:
    """Return the folder to write; without one, a temporary one, which is announced."""
    if output is not None:
        return Path(output)
    folder = Path(tempfile.mkdtemp(prefix="bertkit-")) / name
    announce(f"writing into {folder}; output= names a folder to keep")
    return folder
