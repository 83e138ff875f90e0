"""Writing rows: arrays, lines, cells, Parquet and workbooks, each whole and durable."""

import codecs
import csv
import io
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import InputError, MissingExtraError, SettingsError, storage_errors
from bertkit.base.extras import describe_install, require_package
from bertkit.base.files import DurableFile, DurableStream, check_new_file, durable_file
from bertkit.base.json_files import with_nulls
from bertkit.data.tables.record import PLAIN_CSV, CsvStyle, NumberCell

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
LINE_END = "\r\n"
METADATA_KEY = b"bertkit"  # in Parquet, of what the rows depend on
MAX_CELL_CHARS = 32_767  # Excel's own
MAX_SHEET_NUMBER = 1 << 53  # a larger one would lose digits
NO_CHARACTER = re.compile("[\ufffe\uffff]")  # in XML; XlsxWriter escapes the others
ROWS_AT_ONCE = 4096  # of Parquet; the first so many decide the types of the columns


def write_array(path: Path, array: NDArray[Any]) -> FileRecord:
    """Write a `.npy` file durably, without copying the array in memory."""
    array = np.ascontiguousarray(array)
    with durable_file(path) as file:
        file.write(format_header(array.dtype, array.shape))
        file.write(array.data)
    return file.record()


def format_header(kind: DTypeLike, shape: tuple[int, ...]) -> bytes:
    """Return the header of a `.npy` file, whose length is the same for any number of rows."""
    header, descr = io.BytesIO(), np.lib.format.dtype_to_descr(np.dtype(kind))
    np.lib.format.write_array_header_1_0(
        header, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return header.getvalue()


def write_lines(file: DurableFile, lines: Iterable[str]) -> None:
    """Write lines that don't end with a newline yet."""
    for line in lines:
        file.write(f"{line}\n".encode())


def write_tables(
    file: DurableFile, schema: "pa.Schema", tables: Iterable["pa.Table"], **options: Any
) -> None:
    """Write a Parquet file, a row group for each table."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(DurableStream(file), schema, **options) as writer:
        for table in tables:
            writer.write_table(table)


def build_schema(columns: Iterable[Any], identity: dict[str, Any]) -> "pa.Schema":
    """Build the schema of rows with everything that they depend on as its metadata."""
    import pyarrow as pa

    return pa.schema(columns, metadata={METADATA_KEY: json.dumps(identity).encode()})


def format_json(value: Any) -> str:
    """Format a row, or a nested value, as JSON in one line; NaN and infinity are null."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(with_nulls(value), ensure_ascii=False, allow_nan=False, default=str)


def write_jsonl(file: DurableFile, rows: Iterable[Row]) -> None:
    """Write one JSON line per row."""
    write_lines(file, map(format_json, rows))


def write_csv(file: DurableFile, rows: Iterable[Row], style: CsvStyle = PLAIN_CSV) -> None:
    """Write a header and one record per row; nested values are JSON.

    A cell that begins with =, +, - or @ is written as it is, for programs that read it back.
    """
    if style.has_mark:
        file.write(codecs.BOM_UTF8)
    text = io.StringIO(newline="")
    # Some versions of Python quote a cell with a lone CR only if the line end has one.
    writer = csv.writer(text, delimiter=style.delimiter, lineterminator=LINE_END)
    for cells in _list_cells(rows):
        writer.writerow(cells)
        file.write(f"{text.getvalue().removesuffix(LINE_END)}\n".encode())
        text.seek(0)
        text.truncate()


def write_tsv(file: DurableFile, rows: Iterable[Row]) -> None:
    """Write a header and one line per row; nested values are JSON, and nothing is quoted.

    Raises:
        InputError: a cell has a tab or a line end.
    """

    def join(number: int, cells: list[Any]) -> str:
        shown = ["" if cell is None else str(cell) for cell in cells]
        if any(mark in cell for cell in shown for mark in "\t\r\n"):
            raise InputError(
                f"row {number:,} has a tab or a line end in a cell, which TSV can't hold; write"
                " .csv, .jsonl or .parquet"
            )
        return "\t".join(shown)

    write_lines(file, map(join, count(), _list_cells(rows)))


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
    """Format a value as a cell of CSV; NaN is an empty one."""
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, bool | dict | list | tuple):
        return format_json(value)
    return value


def write_parquet(file: DurableFile, rows: Iterable[Row]) -> None:
    """Write a table with columns of text, numbers or booleans; other values are JSON.

    Raises:
        InputError: a value doesn't fit the type that its column has in the first rows.
    """
    import pyarrow as pa

    remaining = iter(rows)
    groups = iter(lambda: list(islice(remaining, ROWS_AT_ONCE)), [])
    first = next(groups, [])
    columns = list(dict.fromkeys(chain.from_iterable(first)))
    schema = pa.schema([(name, _find_type([row.get(name) for row in first])) for name in columns])

    def build_tables() -> "Iterator[pa.Table]":
        number = 1
        for group in chain([first] if first else [], groups):
            for place, row in enumerate(group, start=number):
                _check_columns(row, columns, place)
            yield _build_table(group, schema, number)
            number += len(group)

    write_tables(file, schema, build_tables())


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
            is_cell = (str, type(None))
            values = [one if isinstance(one, is_cell) else format_json(one) for one in values]
        try:
            arrays.append(pa.array(values, column.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"the column {column.name} has other types of values from row {number:,} on than"
                f" before ({error}); write .jsonl or .csv"
            ) from None
    return pa.Table.from_arrays(arrays, schema=schema)


def write_xlsx(file: DurableFile, rows: Iterable[Row]) -> None:
    """Write a workbook of one sheet, in bounded memory: numbers as numbers, all else as text.

    No text is a formula or a link, whatever it begins with. Nested values are JSON.

    Raises:
        InputError: there are more rows, columns or characters than a sheet holds.
    """
    writer = _find_xlsx_writer()
    with storage_errors(file.path, "written"), tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.xlsx")
        workbook = writer.Workbook(path, {"constant_memory": True, "tmpdir": folder})
        workbook.set_properties({"created": np.datetime64("1980-01-01", "s").item()})
        try:
            try:
                _fill_sheet(workbook.add_worksheet(), rows)
            finally:
                workbook.close()  # and its temporary files
        except writer.exceptions.FileCreateError as error:
            raise error.args[0] from None  # what the disk said
        with path.open("rb") as made:
            shutil.copyfileobj(made, DurableStream(file))


def _find_xlsx_writer() -> ModuleType:
    try:
        import xlsxwriter
    except ImportError:
        raise MissingExtraError(
            f".xlsx is written with XlsxWriter; {describe_install('xlsx')}, or write .csv"
        ) from None
    return cast("ModuleType", xlsxwriter)


def _fill_sheet(sheet: Any, rows: Iterable[Row]) -> None:
    for number, cells in enumerate(_list_cells(rows)):
        if not all(_write_cell(sheet, number, *cell) for cell in enumerate(cells)):
            raise InputError(
                f"row {number:,} doesn't fit into a sheet of .xlsx, which holds 1,048,576 rows,"
                f" 16,384 columns and {MAX_CELL_CHARS:,} characters in a cell; write .csv, .jsonl"
                " or .parquet"
            )


def _write_cell(sheet: Any, row: int, column: int, cell: Any) -> bool:
    """Write a cell, or return False if it doesn't fit; Excel counts units of UTF-16."""
    number = cell.number if isinstance(cell, NumberCell) else cell
    if isinstance(number, int | float) and abs(number) < MAX_SHEET_NUMBER:
        return bool(sheet.write_number(row, column, number) == 0)
    text = NO_CHARACTER.sub("\N{REPLACEMENT CHARACTER}", "" if cell is None else str(cell))
    has_room = len(text.encode("utf-16-le")) <= 2 * MAX_CELL_CHARS
    return has_room and (not text or bool(sheet.write_string(row, column, text) == 0))


ROW_WRITERS: dict[str, Callable[[DurableFile, Iterable[Row]], None]] = {
    ".jsonl": write_jsonl,
    ".csv": write_csv,
    ".tsv": write_tsv,
    ".parquet": write_parquet,
    ".xlsx": write_xlsx,
}


def write_rows(output: Path, rows: Iterable[Row], style: CsvStyle = PLAIN_CSV) -> None:
    """Write rows durably in the format that the extension says; the caller must hold its lock."""
    suffix = output.suffix.lower()
    write = partial(write_csv, style=style) if suffix == ".csv" else ROW_WRITERS[suffix]
    with durable_file(output) as file:
        write(file, rows)


def check_output(output: Path, *, overwrite: bool) -> None:
    """Raise an error if the format is unknown, or the file exists and must not be replaced."""
    if check_suffix(output, ROW_WRITERS) == ".xlsx":
        _find_xlsx_writer()
    check_new_file(output, overwrite=overwrite)


def check_suffix(output: Path, known: Collection[str]) -> str:
    """Return the extension of an output in lower case, one of those that are known."""
    suffix = output.suffix.lower()
    if suffix not in known:
        raise SettingsError(f"{output} must end with {' or '.join(known)}, which sets its format")
    if suffix == ".parquet":
        require_package("pyarrow", str(output))
    return suffix
