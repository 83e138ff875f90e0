"""The files of an index: memory-mapped arrays and concatenated texts."""

from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import DamagedFileError, MissingFileError, storage_errors
from bertkit.base.files import DurableFile, durable_file
from bertkit.data.mapped_array import MappedArray, write_array
from bertkit.data.tables.texts import TextRow
from bertkit.retrieval.index_record import (
    ID_ENDS_FILE,
    IDS_FILE,
    ROWS_FILE,
    TEXT_ENDS_FILE,
    TEXTS_FILE,
)

ADVICE = "rebuild the index with --rebuild"


@contextmanager
def rebuilding_advised() -> Iterator[None]:
    """Add the advice to rebuild the index to errors about damaged or missing files."""
    try:
        yield
    except (DamagedFileError, MissingFileError) as error:
        problem = str(error).rpartition(";")[0] or str(error)
        raise type(error)(f"{problem}; {ADVICE}") from None


def map_matrix(path: Path, record: FileRecord) -> NDArray[Any]:
    """Verify the checksum of a `.npy` file, and map it.

    Verifying reads the whole file, which takes about a second per gigabyte.
    """
    MappedArray(path, record, 0).verify(0, record.size_bytes)
    try:
        # Copy-on-write rather than read-only, because torch warns about read-only memory.
        mapped = np.lib.format.open_memmap(path, mode="c")
    except (ValueError, OverflowError) as error:
        raise DamagedFileError(f"{path} isn't an array ({error}); {ADVICE}") from None
    matrix: NDArray[Any] = mapped.view(np.ndarray)
    return matrix


class StoredTexts:
    """The texts of a corpus on disk, with random access by row.

    Args:
        path: the file of texts, UTF-8, concatenated.
        record: the size and checksums of that file.
        ends: the byte offset where each text ends.

    Raises:
        MissingFileError: a file is missing.
        DamagedFileError: a file has the wrong size.
    """

    def __init__(self, path: Path, record: FileRecord, ends: MappedArray) -> None:
        self._path, self._size_bytes = path, record.size_bytes
        self._content = MappedArray(path, record, 0)
        self._ends = ends

    def __getitem__(self, row: int) -> str:
        """Return the text of a row."""
        with rebuilding_advised():
            ends = self._ends.read(max(0, row - 1), row + 1).tolist()
            start, stop = (0, *ends)[-2:]
            if not start <= stop <= self._size_bytes:
                raise DamagedFileError(f"{self._path} has no text of row {row:,}")
            self._content.verify(start, stop)
            with storage_errors(self._path, "read"), self._path.open("rb") as stream:
                stream.seek(start)
                content = stream.read(stop - start)
            try:
                return content.decode("utf-8")
            except UnicodeDecodeError:
                raise DamagedFileError(f"{self._path} isn't UTF-8 in row {row:,}") from None


class _TextWriter:
    """Concatenates texts in a file, and collects where each ends."""

    def __init__(self, file: DurableFile) -> None:
        self.ends = array("Q")
        self._file, self._position = file, 0

    def add(self, text: str) -> None:
        content = text.encode("utf-8")
        self._file.write(content)
        self._position += len(content)
        self.ends.append(self._position)


def write_texts(
    rows: Iterator[tuple[int, TextRow]], folder: Path, has_ids: bool
) -> dict[str, FileRecord]:
    """Write texts, their row numbers, and their ids if they have some.

    Returns:
        The records of the files, by name.
    """
    numbers = array("Q")
    with ExitStack() as stack:
        named = [TEXTS_FILE, *([IDS_FILE] if has_ids else [])]
        files = [stack.enter_context(durable_file(folder / name)) for name in named]
        writers = [_TextWriter(file) for file in files]
        for number, row in rows:
            numbers.append(number)
            for writer, text in zip(writers, (row.text, row.id or ""), strict=False):
                writer.add(text)
    records = {name: file.record() for name, file in zip(named, files, strict=True)}
    arrays = dict(zip((TEXT_ENDS_FILE, ID_ENDS_FILE), (one.ends for one in writers), strict=False))
    for name, content in {**arrays, ROWS_FILE: numbers}.items():
        records[name] = write_array(folder / name, np.frombuffer(content, dtype=np.uint64))
    return records
