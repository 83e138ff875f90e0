"""Parquet: the text in a column of strings."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from bertkit.base.errors import BertkitError, InputError
from bertkit.data.decompression import classify
from bertkit.data.readers.document import ReadReport
from bertkit.data.readers.parquet import find_fault, open_seekable
from bertkit.data.readers.sources import STANDARD_INPUT_NAME, Source
from bertkit.data.tables.row import RowDecoder, TextRow

ROWS_AT_ONCE = 1024


def read_rows(path: Path | None, size_bytes: int | None, decoder: RowDecoder) -> Iterator[TextRow]:
    """A row for each row of the file; a null is an empty text.

    What is compressed from outside, and standard input, is copied to a temporary file first.

    Raises:
        InputError: it is damaged, or no column has the text.
        StorageError: it can't be read, or the temporary copy can't be written.
    """
    import pyarrow as pa

    source, report = (
        Source(path.name if path else STANDARD_INPUT_NAME, "parquet", path),
        ReadReport(),
    )
    try:
        with open_seekable(source, report) as stream:
            if source.is_faulty:
                decoder.refuse_rest("damaged", "; ".join(report.summary_lines()))
            yield from _read_column(stream, size_bytes or 0, decoder)
    except BertkitError:  # said already; StorageError, of the copy, is an OSError
        raise
    except (pa.ArrowException, OSError) as error:
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
