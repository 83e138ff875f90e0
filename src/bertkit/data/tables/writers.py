"""Output formats of predictions, by file extension."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.files import DurableFile, DurableStream, check_new_file

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
ROWS_AT_ONCE = 4096  # of Parquet; the first so many decide the types of the columns


def format_json(row: Row) -> str:
    """Format a row as a line of JSON, without the newline."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False, default=str)


def write_jsonl(file: DurableFile, rows: Iterable[Row]) -> None:
    """Write one JSON line per row."""
    for row in rows:
        file.write(f"{format_json(row)}\n".encode())


def write_csv(file: DurableFile, rows: Iterable[Row]) -> None:
    """Write a header and one record per row; nested values are JSON."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    for cells in _list_cells(rows):
        writer.writerow(cells)
        file.write(text.getvalue().encode())
        text.seek(0)
        text.truncate()


def write_tsv(file: DurableFile, rows: Iterable[Row]) -> None:
    """Write a header and one line per row; nested values are JSON, and nothing is quoted.

    Raises:
        InputError: a cell has a tab or a line end.
    """
    for number, cells in enumerate(_list_cells(rows)):
        shown = ["" if cell is None else str(cell) for cell in cells]
        if any(mark in cell for cell in shown for mark in "\t\r\n"):
            raise InputError(
                f"row {number:,} has a tab or a line end in a cell, which TSV can't hold; write"
                " .csv, .jsonl or .parquet"
            )
        file.write(("\t".join(shown) + "\n").encode())


def _list_cells(rows: Iterable[Row]) -> Iterator[list[Any]]:
    """Yield the names of the columns, which are those of the first row, then the cells of rows."""
    columns: list[str] = []
    for number, row in enumerate(rows, start=1):
        if number == 1:
            columns = list(row)
            yield columns
        _check_columns(row, columns, number)
        yield [format_cell(row.get(name)) for name in columns]


def _check_columns(row: Row, columns: list[str], number: int) -> None:
    others = [name for name in row if name not in columns]
    if others:
        raise InputError(
            f"row {number:,} has {', '.join(others)}, which the first row lacks; write .jsonl, or"
            " choose columns with --keep-columns"
        )


def format_cell(value: Any) -> Any:
    """Format a value as a cell of CSV."""
    if isinstance(value, bool | dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    return value


def write_parquet(file: DurableFile, rows: Iterable[Row]) -> None:
    """Write a table with columns of text, numbers or booleans; other values are JSON.

    Raises:
        InputError: a value doesn't fit the type that its column has in the first rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    remaining = iter(rows)
    first = list(islice(remaining, ROWS_AT_ONCE))
    columns = list(dict.fromkeys(chain.from_iterable(first)))
    schema = pa.schema([(name, _find_type([row.get(name) for row in first])) for name in columns])
    number = 1
    with pq.ParquetWriter(DurableStream(file), schema) as writer:
        while first:
            for place, row in enumerate(first, start=number):
                _check_columns(row, columns, place)
            writer.write_table(_build_table(first, schema, number))
            number += len(first)
            first = list(islice(remaining, ROWS_AT_ONCE))


def _find_type(values: list[Any]) -> "pa.DataType":
    """Return the type of a column: that of its values, or text for JSON."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    for kind, arrow in ((bool, pa.bool_()), (int, pa.int64()), (float, pa.float64())):
        if kinds == {kind}:
            return arrow
    return pa.float64() if kinds == {int, float} else pa.string()


def _build_table(rows: list[Row], schema: "pa.Schema", number: int) -> "pa.Table":
    import pyarrow as pa

    arrays = []
    for column in schema:
        values = [row.get(column.name) for row in rows]
        if column.type == pa.string():
            values = [_to_text(value) for value in values]
        try:
            arrays.append(pa.array(values, column.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"the column {column.name} has other types of values from row {number:,} on than"
                f" before ({error}); write .jsonl or .csv"
            ) from None
    return pa.Table.from_arrays(arrays, schema=schema)


def _to_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)


WRITERS: dict[str, Callable[[DurableFile, Iterable[Row]], None]] = {
    ".jsonl": write_jsonl,
    ".csv": write_csv,
    ".tsv": write_tsv,
    ".parquet": write_parquet,
}


def check_output(output: Path, *, overwrite: bool) -> None:
    """Raise an error if the extension is unknown or the file exists and must not be replaced."""
    if output.suffix.lower() not in WRITERS:
        raise SettingsError(
            f"{output} must end with {' or '.join(WRITERS)}, which selects the format"
        )
    check_new_file(output, overwrite=overwrite)
