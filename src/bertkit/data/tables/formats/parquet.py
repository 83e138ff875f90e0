"""Parquet tables: rows of texts in one string column, or of records with all columns."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from bertkit.base.errors import BertkitError, DamagedFileError, InputError, StorageError
from bertkit.base.extras import require_package
from bertkit.base.json_files import MAX_JSON_VALUES, parse_json
from bertkit.base.remote import RemoteFile
from bertkit.data.compression import COMPRESSIONS, classify
from bertkit.data.tables.decoder import ID_FIELD, MAX_ROW_BYTES, RowDecoder, open_content
from bertkit.data.tables.record import ClassName, Record, Rows, to_plain

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROWS_AT_ONCE = 1024
BATCH_BYTES = 1 << 29  # limit for the rows read at once, even with dictionary encoding
VALUES_AT_ONCE = 1 << 24  # of a column, decoded at a time
MAX_FOOTER_BYTES = 64 << 20  # some 300,000 row groups, which take ten times as much memory
FOOTER_END = b"PAR1"
HUB_KEY = b"huggingface"


@contextmanager
def open_table(path: Path | RemoteFile | None, decoder: RowDecoder) -> Iterator[BinaryIO]:
    """Open a seekable file; errors while it is read become messages about the file."""
    require_package("pyarrow", "a Parquet file")
    import pyarrow as pa

    with open_seekable(path, decoder) as stream:
        try:
            yield stream
        except (pa.ArrowException, UnicodeDecodeError) as error:  # the latter from column names
            decoder.refuse_rest(*classify(error))


@contextmanager
def open_seekable(path: Path | RemoteFile | None, decoder: RowDecoder) -> Iterator[BinaryIO]:
    """Open a file that is read at any place; errors of reading become messages about the file.

    Compressed files and standard input are copied to a temporary file first.
    """
    try:
        with _copy(path, decoder) if path is None or needs_copy(path) else path.open("rb") as file:
            yield file
    except BertkitError:  # its message is complete; StorageError is an OSError
        raise
    except OSError as error:
        decoder.refuse_rest(*classify(error))


def needs_copy(path: Path | RemoteFile) -> bool:
    """Whether the content can only be read sequentially."""
    return path.suffix.lower() in COMPRESSIONS


@contextmanager
def _copy(path: Path | RemoteFile | None, decoder: RowDecoder) -> Iterator[BinaryIO]:
    try:
        with open_content(path, decoder, is_text=False) as stream, ExitStack() as stack:
            copy = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(stream, copy)
            copy.flush()
            kept = stack.pop_all()
    except BertkitError:
        raise
    except OSError as error:
        raise StorageError(
            f"the temporary copy of {decoder.name} can't be written ({error.strerror});"
            " set TMPDIR to a folder with room for it"
        ) from error
    with kept:
        yield copy


def open_parquet(stream: BinaryIO) -> "tuple[pq.ParquetFile, int]":
    """Open a file, and compute how many of its rows may be read at once.

    A dictionary stores a repeated value once, so each row may expand to the full size that its row
    group declares.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream.seek(-min(8, stream.seek(0, os.SEEK_END)), os.SEEK_END)
    end = stream.read()
    num_bytes = int.from_bytes(end[:4], "little")
    if end[4:] == FOOTER_END and MAX_FOOTER_BYTES < num_bytes <= stream.tell():
        raise pa.ArrowInvalid(
            f"its footer has {num_bytes:,} bytes, and at most {MAX_FOOTER_BYTES:,} are read; write"
            " it with larger row groups"
        )
    stream.seek(0)
    file = pq.ParquetFile(stream)
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    largest = max((group.total_byte_size for group in groups), default=0)
    return file, min(ROWS_AT_ONCE, max(1, BATCH_BYTES // max(1, largest)))


def find_fault(schema: "pa.Schema", name: str) -> str | None:
    """Return the fault of all rows if the column is missing or isn't text, else None."""
    import pyarrow as pa

    if name not in schema.names:
        return "missing-field"
    kind = schema.types[schema.names.index(name)]
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    strings = {pa.string(), pa.large_string(), pa.string_view()}
    is_text = kind in strings | {pa.binary(), pa.large_binary(), pa.binary_view(), pa.null()}
    return None if is_text else "wrong-type"


def read_rows(stream: BinaryIO, decoder: RowDecoder) -> Rows:
    """Read a record for each row; dates and times become text."""
    file, rows_at_once = open_parquet(stream)
    names = file.schema_arrow.names
    num_rows = file.metadata.num_rows
    if decoder.texts_only:
        column = decoder.choose_column(names)
        batches = _read_texts(file, column, rows_at_once, decoder)
        return Rows((column,), read_batches(batches, decoder), num_rows)
    decoder.check_unique(names)
    most_values = _check_lists(file, decoder)
    rows_at_once = max(1, min(rows_at_once, VALUES_AT_ONCE // most_values))
    records = read_batches(file.iter_batches(batch_size=rows_at_once), decoder)
    classes = _find_classes(file.schema_arrow.metadata or {})
    return Rows(tuple(names), name_classes(records, classes), num_rows)


def _find_classes(metadata: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    """Return the names of classes by column, which the files of Hugging Face's datasets have."""
    try:
        content: Any = parse_json(metadata.get(HUB_KEY, b"{}"), "the metadata")
        features = content["info"]["features"]
        found = {
            column: feature.get("feature", feature)
            for column, feature in features.items()
            if isinstance(feature, dict)  # a list has no names
        }
        return {
            column: [str(name) for name in feature["names"]]
            for column, feature in found.items()
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
        }
    except (DamagedFileError, KeyError, TypeError, AttributeError):
        return {}  # of another program, whose columns are read as they are


def name_classes(
    records: Iterator[Record], classes: Mapping[str, Sequence[str]]
) -> Iterator[Record]:
    """Replace the indices of classes by names; -1, used for withheld labels, by None."""
    if not classes:
        yield from records
    known = {
        column: [ClassName(name, number) for number, name in enumerate(names)]
        for column, names in classes.items()
    }
    for record in records:
        named = {
            column: _name(record.values[column], names)
            for column, names in known.items()
            if column in record.values
        }
        yield Record({**record.values, **named}, record.place)


def _name(value: Any, names: Sequence[ClassName]) -> Any:
    if isinstance(value, list):
        return [_name(item, names) for item in value]
    if not isinstance(value, int):
        return value
    return names[value] if 0 <= value < len(names) else None


def _read_texts(
    file: "pq.ParquetFile", column: str, rows_at_once: int, decoder: RowDecoder
) -> "Iterator[pa.RecordBatch]":
    """Return batches of one column, as bytes, and of that of the ids."""
    import pyarrow as pa

    path = [column] if column in file.schema_arrow.names else column.split(".")
    schema = file.schema_arrow
    for name in path[:-1]:  # each is a struct with the next
        kind = schema.field(name).type if name in schema.names else None
        schema = pa.schema(list(kind) if kind is not None and pa.types.is_struct(kind) else [])
    if find_fault(schema, path[-1]):
        kind = schema.field(path[-1]).type if path[-1] in schema.names else "no such field"
        raise InputError(f"{decoder.name}: the column {column} holds {kind} where text should be")
    columns = [column] if decoder.id_column is None else [column, decoder.id_column]
    if columns[-1] != column and columns[-1] not in file.schema_arrow.names:
        raise InputError(f"{decoder.name}: ids can't be a field of a column ({columns[-1]})")
    for batch in file.iter_batches(batch_size=rows_at_once, columns=columns):
        values = batch.column(path[0])
        for name in path[1:]:
            values = values.flatten()[values.type.get_field_index(name)]
        arrays = [values.cast(pa.large_binary())]
        if decoder.id_column is not None:
            arrays.append(batch.column(decoder.id_column))
        yield pa.record_batch(arrays, [column, ID_FIELD][: len(arrays)])


def _check_lists(file: "pq.ParquetFile", decoder: RowDecoder) -> int:
    """Reject lists that would be too long even if evenly distributed over the rows.

    Equal values take no space in the file, but much time and memory to decode. The result is the
    most values of a column per row, on average over a row group; at least 1.
    """
    most_values = 1
    for index in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(index)
        # Reading no rows raises an error for damaged metadata of a column, for which `column` would
        # abort the process (pyarrow 26.0.1).
        next(file.reader.iter_batches(0, [index], None, use_threads=False), None)
        for number in range(group.num_columns):
            column = group.column(number)
            if column.num_values > MAX_JSON_VALUES * max(1, group.num_rows):
                raise InputError(
                    f"{decoder.name}: the column {column.path_in_schema} has"
                    f" {column.num_values:,} values in {group.num_rows:,} rows; the limit"
                    f" for a row is {MAX_JSON_VALUES:,}"
                )
            most_values = max(most_values, column.num_values // max(1, group.num_rows))
    return most_values


def read_batches(batches: Iterable["pa.RecordBatch"], decoder: RowDecoder) -> Iterator[Record]:
    """Yield a record for each row; one with a value that Python can't represent is broken."""
    for batch in batches:
        _check_sizes(batch, decoder)
        decoder.report.num_bytes += batch.nbytes
        batch = _convert_columns(batch)
        decimals = [field.name for field in batch.schema if "decimal" in str(field.type)]
        try:
            rows = batch.to_pylist()
        except (ValueError, OverflowError):  # one value is invalid; its row is found below
            rows = [None] * len(batch)
        for index, values in enumerate(rows):
            decoder.where = f"row {decoder.report.num_rows + 1:,}"
            try:
                values = values or _list_cells(batch.slice(index, 1))
            except (ValueError, OverflowError) as error:
                decoder.finish_row(f"{decoder.place} has a value that can't be read ({error})")
                continue
            for name, value in values.items():
                if isinstance(value, bytes):
                    values[name] = decoder.decode(value)
            values |= {name: to_plain(values[name]) for name in decimals}
            decoder.finish_row()
            yield Record(values, decoder.place)


def _check_sizes(batch: "pa.RecordBatch", decoder: RowDecoder) -> None:
    if batch.nbytes <= MAX_ROW_BYTES and _count_values(batch) <= MAX_JSON_VALUES:
        return
    for index in range(len(batch)):
        row = batch.slice(index, 1)
        place = f"{decoder.name}, row {decoder.report.num_rows + index + 1:,}"
        if row.nbytes > MAX_ROW_BYTES:
            raise InputError(
                f"{place} has more than {MAX_ROW_BYTES >> 20} MiB, the limit for a row"
            )
        if _count_values(row) > MAX_JSON_VALUES:
            raise InputError(
                f"{place} has more than {MAX_JSON_VALUES:,} values, the limit for a row"
            )


def _count_values(batch: "pa.RecordBatch") -> int:
    """Count the values in all columns' lists, including nulls, which take no bytes."""
    import pyarrow as pa

    types = pa.types
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    num_values, columns = 0, list(batch.columns)
    while columns:
        column = columns.pop()
        if any(is_one(column.type) for is_one in lists):
            columns.append(column.flatten())
            num_values += len(columns[-1])
        elif types.is_map(column.type):
            columns += [column.keys, column.items]
            num_values += len(column.keys)
        elif types.is_struct(column.type):
            columns += column.flatten()
    return num_values


def _convert_columns(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """Convert dates and times to text, and numbers of 32 bits to those that are written alike.

    Python has no nanoseconds and no year 10,000. A float32 of 0.1 stays 0.1.
    """
    import pyarrow as pa

    for index, column in enumerate(batch.schema):
        values = batch.column(index)
        if pa.types.is_temporal(column.type):
            batch = batch.set_column(index, column.name, values.cast(pa.string()))
        elif pa.types.is_float32(column.type):
            values = values.cast(pa.string()).cast(pa.float64())
            batch = batch.set_column(index, column.name, values)
    return batch


def _list_cells(row: "pa.RecordBatch") -> dict[str, Any]:
    """Return the values of a single row; texts as bytes, because they may be invalid UTF-8."""
    import pyarrow as pa

    cells = {}
    for name, column in zip(row.schema.names, row.columns, strict=True):
        is_text = find_fault(row.schema, name) is None
        cells[name] = (column.cast(pa.large_binary()) if is_text else column).to_pylist()[0]
    return cells
