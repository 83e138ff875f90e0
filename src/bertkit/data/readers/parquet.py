"""Parquet corpora: text in a named column; newlines end paragraphs."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, BinaryIO

from bertkit.base.errors import BertkitError, StorageError
from bertkit.data.encodings import COMPRESSIONS, classify
from bertkit.data.readers.document import Document, ReaderSettings, ReadReport
from bertkit.data.readers.jsonl import RECORD_LIMIT_BYTES, document_of
from bertkit.data.readers.sources import TextSource
from bertkit.data.readers.text import decode_text

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROWS_AT_ONCE = 1024
BATCH_BYTES = 1 << 29  # limit for the rows read at once, even with dictionary encoding
MAX_FOOTER_BYTES = 64 << 20  # some 300,000 row groups, which take ten times as much memory
FOOTER_END = b"PAR1"


def read_documents(
    source: TextSource, settings: ReaderSettings, report: ReadReport
) -> Iterator[Document]:
    """Yield a document for each row; each is its own group."""
    import pyarrow as pa

    number = 0
    try:
        with open_seekable(source, report) as stream:
            for value in read_column(stream, source, settings.text_column, report):
                number += 1
                place = f"{source.name}:{number:,}"
                if len(value or b"") > RECORD_LIMIT_BYTES:
                    report.add("long-record", place)
                    continue
                text = None if value is None else decode_text(value, place, report)
                yield from document_of(text, place, report)
    except BertkitError:  # for the temporary copy, or a remote file; not the content
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # from column names
        source.count_fault(report, *classify(error))
    if not number and not source.is_faulty:
        report.add("empty-file", source.name)


@contextmanager
def open_seekable(source: TextSource, report: ReadReport) -> Iterator[BinaryIO]:
    """Yield the content as a seekable file; compressed files and pipes are copied first."""
    if source.path is not None and not needs_copy(source):
        with source.path.open("rb") as file:
            yield file
        return
    try:
        with source.open(report) as stream, ExitStack() as stack:
            copy = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(stream, copy)
            copy.flush()
            kept = stack.pop_all()
    except BertkitError:
        raise
    except OSError as error:
        raise StorageError(
            f"the temporary copy of {source.name} can't be written ({error.strerror});"
            " set TMPDIR to a folder with room for it"
        ) from error
    with kept:
        yield copy


def needs_copy(source: TextSource) -> bool:
    """Whether the content can only be read sequentially."""
    return source.path is None or source.path.suffix.lower() in COMPRESSIONS


def read_column(
    stream: BinaryIO, source: TextSource, name: str, report: ReadReport
) -> Iterator[bytes | None]:
    """Yield the values of a column; strings as bytes, because they may be invalid UTF-8."""
    import pyarrow as pa

    # A faulty copy was already counted when it was made.
    if source.is_faulty or not stream.seek(0, os.SEEK_END):
        return
    file, rows_at_once = open_parquet(stream)
    num_rows = file.metadata.num_rows
    if fault := find_fault(file.schema_arrow, name):
        source.is_faulty = True
        report.add(fault, f"{source.name} (all rows)", num_rows)
        return
    for batch in file.iter_batches(batch_size=rows_at_once, columns=[name]):
        if source.advance is not None and not needs_copy(source):
            source.advance(round((source.size_bytes or 0) * len(batch) / num_rows))
        yield from batch.column(0).cast(pa.large_binary()).to_pylist()


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
