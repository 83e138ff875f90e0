"""Parquet: the text in a named column, a newline between paragraphs."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from bertkit.data.decompression import COMPRESSIONS, classify
from bertkit.data.readers.document import Document, ReadReport
from bertkit.data.readers.jsonl import document_of
from bertkit.data.readers.lines import decode_text
from bertkit.data.readers.settings import ReaderSettings
from bertkit.data.readers.sources import Source

ROWS_AT_ONCE = 1024


def read_documents(
    source: Source, settings: ReaderSettings, report: ReadReport
) -> Iterator[Document]:
    """A document for each row; each is its own group."""
    import pyarrow as pa

    number = 0
    try:
        with open_seekable(source, report) as stream:
            for value in read_column(stream, source, settings.field, report):
                number += 1
                place = f"{source.name}:{number:,}"
                text = decode_text(value, place, report) if isinstance(value, bytes) else value
                yield from document_of(text, place, report)
    except (pa.ArrowException, OSError) as error:
        source.count_fault(report, *classify(error))
    if not number and not source.is_faulty:
        report.add("empty-file", source.name)


@contextmanager
def open_seekable(source: Source, report: ReadReport) -> Iterator[BinaryIO]:
    """The content as a file that can be read from any place; what can't be is copied first."""
    if source.path is not None and source.path.suffix.lower() not in COMPRESSIONS:
        with source.path.open("rb") as file:
            yield file
        return
    with source.open(report) as stream, tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy)
        yield copy


def read_column(
    stream: BinaryIO, source: Source, name: str, report: ReadReport
) -> Iterator[bytes | object]:
    """The values of a column; strings as bytes, for they may be invalid UTF-8."""
    import pyarrow.parquet as pq

    if not stream.seek(0, os.SEEK_END):
        return
    stream.seek(0)
    file = pq.ParquetFile(stream)
    num_rows = file.metadata.num_rows
    if name not in file.schema_arrow.names:
        source.is_faulty = True
        report.add("missing-field", f"{source.name} (all rows)", num_rows)
        return
    for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=[name]):
        if source.advance is not None:
            source.advance(round((source.size_bytes or 0) * len(batch) / num_rows))
        yield from _as_bytes(batch.column(0)).to_pylist()


def _as_bytes(column: Any) -> Any:
    """A column of strings as one of bytes; another one as it is."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column.cast(pa.large_binary())
    return column
