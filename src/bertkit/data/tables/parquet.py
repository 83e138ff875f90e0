"""Parquet: the text in a column of strings."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from bertkit.base.errors import BertkitError, InputError
from bertkit.data.decompression import classify
from bertkit.data.readers.document import ReadReport
from bertkit.data.readers.parquet import find_fault, open_seekable
from bertkit.data.readers.sources import STANDARD_INPUT_NAME, Source
from bertkit.data.tables.record import Record, RecordDecoder, Rows
from bertkit.data.tables.row import MAX_ROW_BYTES, RowDecoder, TextRow
from bertkit.data.tables.settings import RecordSettings

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 1024


def read_rows(path: Path | None, size_bytes: int | None, decoder: RowDecoder) -> Iterator[TextRow]:
    """A row for each row of the file; a null is an empty text.

    Raises:
        InputError: it is damaged, or no column has the text.
        StorageError: it can't be read, or the temporary copy can't be written.
    """
    with open_table(path, decoder) as stream:
        yield from _read_column(stream, size_bytes or 0, decoder)


@contextmanager
def open_table(path: Path | None, decoder: RowDecoder) -> Iterator[BinaryIO]:
    """A file that can be read from any place; what goes wrong while it is read is told.

    What is compressed from outside, and standard input, is copied to a temporary file first.

    Raises:
        InputError: it is damaged.
        StorageError: it can't be read, or the temporary copy can't be written.
    """
    import pyarrow as pa

    source = Source(path.name if path else STANDARD_INPUT_NAME, "parquet", path)
    report = ReadReport()
    try:
        with open_seekable(source, report) as stream:
            if source.is_faulty:
                decoder.refuse_rest("damaged", "; ".join(report.summary_lines()))
            yield stream
    except BertkitError:  # said already; StorageError, of the copy, is an OSError
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # of a column's name
        decoder.refuse_rest(*classify(error))


def _read_column(stream: BinaryIO, size_bytes: int, decoder: RowDecoder) -> Iterator[TextRow]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(stream)
    name = decoder.choose_field(file.schema_arrow.names)
    if find_fault(file.schema_arrow, name):
        kind = file.schema_arrow.field(name).type
        raise InputError(f"{decoder.name}: the column {name} holds {kind} where text should be")
    num_bytes = size_bytes // max(1, file.metadata.num_rows)
    for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=[name]):
        for value in batch.column(0).cast(pa.large_binary()).to_pylist():
            decoder.check_size(len(value or b""))
            yield TextRow(decoder.decode(value or b""), num_bytes)


def read_records(stream: BinaryIO, decoder: RecordDecoder, _: RecordSettings) -> Rows:
    """A record for each row, with all columns; dates and times are text.

    Raises:
        InputError: two columns have one name; or, while records are read, a row has over 16 MiB.
    """
    import pyarrow.parquet as pq

    file = pq.ParquetFile(stream)
    names = file.schema_arrow.names
    decoder.check_unique(names)
    return Rows(tuple(names), read_batches(file.iter_batches(batch_size=ROWS_AT_ONCE), decoder))


def read_batches(batches: Iterable["pa.RecordBatch"], decoder: RecordDecoder) -> Iterator[Record]:
    """A record for each row; one with a value that Python can't hold is broken.

    Raises:
        InputError: a row has over 16 MiB.
    """
    for batch in batches:
        _check_sizes(batch, decoder)
        decoder.report.num_bytes += batch.nbytes
        batch = _write_times(batch)
        try:
            rows = batch.to_pylist()
        except (ValueError, OverflowError):  # of one value; which row it is in is seen below
            rows = [None] * len(batch)
        for index, values in enumerate(rows):
            decoder.where = f"row {decoder.num_rows + 1:,}"
            try:
                values = values or _list_cells(batch.slice(index, 1))
            except (ValueError, OverflowError) as error:
                decoder.finish_row(f"{decoder.place} has a value that can't be read ({error})")
                continue
            for name, value in values.items():
                if isinstance(value, bytes):
                    values[name] = decoder.decode(value)
            decoder.finish_row()
            yield Record(values, decoder.place)


def _check_sizes(batch: "pa.RecordBatch", decoder: RecordDecoder) -> None:
    if batch.nbytes <= MAX_ROW_BYTES:
        return
    for index in range(len(batch)):
        if batch.slice(index, 1).nbytes > MAX_ROW_BYTES:
            raise InputError(
                f"{decoder.name}, row {decoder.num_rows + index + 1:,} has more than"
                f" {MAX_ROW_BYTES >> 20} MiB; a row may have as many"
            )


def _write_times(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """The same rows, dates and times as text: Python has no nanoseconds and no year 10,000."""
    import pyarrow as pa

    for index, column in enumerate(batch.schema):
        if pa.types.is_temporal(column.type):
            batch = batch.set_column(index, column.name, batch.column(index).cast(pa.string()))
    return batch


def _list_cells(row: "pa.RecordBatch") -> dict[str, Any]:
    """The values of a single row, its texts as bytes, for they may be invalid UTF-8."""
    import pyarrow as pa

    cells = {}
    for name, column in zip(row.schema.names, row.columns, strict=True):
        is_text = find_fault(row.schema, name) is None
        cells[name] = (column.cast(pa.large_binary()) if is_text else column).to_pylist()[0]
    return cells
