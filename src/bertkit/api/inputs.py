"""What the functions take: files by name, or rows and texts from Python."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.progress import announce
from bertkit.data.input_files import name_input
from bertkit.data.sources import CorpusInput, memory_source
from bertkit.data.tables.decoder import DEFAULT_FIELD
from bertkit.data.tables.records import open_records
from bertkit.data.tables.rows import ArrowTable, Table, name_files
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.text_files import open_text_files

AnyTable = TypeVar("AnyTable")
# Texts from Python, or files by name: one string (a file, folder or glob), or paths.
Texts = Table | Sequence[Path]
# Texts where one string is a text: a list of texts or rows, a data frame, or a file.
SeveralTexts = list[Any] | tuple[Any, ...] | ArrowTable | Path


def hold_rows(table: AnyTable) -> AnyTable:
    """Return rows that can be read more than once, or the name of a file, if there is one."""
    if isinstance(table, str | Path):
        name_input(table)
    return cast("AnyTable", list(table)) if isinstance(table, Iterator) else table


def are_tuples(rows: object) -> bool:
    """Whether rows are plain tuples, like the first of them."""
    first = rows[0] if isinstance(rows, Sequence) and not isinstance(rows, str) and rows else None
    return isinstance(first, tuple) and not hasattr(first, "_asdict")


def list_texts(rows: Table, column: str | None) -> list[str]:
    """Return the text of each row from Python, by default of the column `text`.

    None and NaN are an empty text, as an empty cell of CSV is.
    """
    table, wanted = open_records(rows, split="texts"), column or DEFAULT_FIELD
    if table.columns is not None and wanted not in table.columns:
        raise InputError(
            f"the texts have no column {wanted}; name one with text_column:"
            f" {', '.join(table.columns)}"
        )
    texts = []
    for record in table.records():
        text = record.values.get(wanted, ...)
        text = "" if text is None else text
        if not isinstance(text, str):
            raise InputError(f"{record.place} has no text in {wanted}")
        texts.append(text)
    if table.report.num_broken:
        raise InputError(table.report.first_broken[0])
    return texts


def read_texts(texts: Table, reading: TableSettings) -> list[str]:
    """Return the texts of files or of rows."""
    names = name_files(texts)
    if names is None:
        return list_texts(texts, reading.text_column)
    return [row.text for row in open_text_files(names, reading).rows()]


def take_texts(texts: str | SeveralTexts, reading: TableSettings) -> list[str]:
    """Return the texts; a string is one, where it isn't the name of a file."""
    return [texts] if isinstance(texts, str) else read_texts(texts, reading)


def list_inputs(data: Texts, text_column: str | None) -> list[CorpusInput]:
    """Return the inputs of a corpus: names of files, or texts from Python as one source."""
    names = name_files(data)
    if names is not None:
        return list(names)
    return [memory_source(list_texts(data, text_column))]


def take_path(value: object, name: str) -> Path:
    """Return an argument as a path."""
    if not isinstance(value, str | Path):
        raise SettingsError(f"{name} is the name of a file or folder, not {type(value).__name__}")
    return Path(value)


def choose_output(output: str | Path | None, name: str) -> Path:
    """Return the folder to write; without one, a temporary one, which is announced."""
    if output is not None:
        return take_path(output, "output")
    folder = Path(tempfile.mkdtemp(prefix="bertkit-")) / name
    announce(f"writing into {folder}; output= names a folder to keep")
    return folder
