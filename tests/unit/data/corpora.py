"""Writing small corpora, and reading them."""

import bz2
import gzip
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from bertkit.data.documents import open_corpus
from bertkit.data.sources import ReaderSettings

TEXT = "First line.\nSecond line.\n\nThird line.\n"
DOCUMENTS = [("First line.", "Second line."), ("Third line.",)]
COMPRESS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
LONG = "".join(f"Sentence {number} of a text that fills pages.\n" for number in range(40_000))


def read(path: Path | str, **settings: object):
    corpus = open_corpus([str(path)], ReaderSettings(**settings))
    return [document.lines for document in corpus.documents()], corpus.report


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def pack_parquet(**columns: list[object]) -> bytes:
    pq.write_table(pa.table(columns), buffer := io.BytesIO())
    return buffer.getvalue()


def write_parquet(path: Path, **columns: list[object]) -> Path:
    return write(path, pack_parquet(**columns))
