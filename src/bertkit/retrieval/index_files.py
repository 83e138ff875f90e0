"""The files of an index: memory-mapped arrays and concatenated texts."""

from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import DamagedFileError, MissingFileError, ResumeError, storage_errors
from bertkit.base.files import DurableFile, durable_file, make_folder
from bertkit.base.output import open_output
from bertkit.data.shards import MappedArray
from bertkit.data.tables.texts import TextRow
from bertkit.data.writers import write_array
from bertkit.inference.embeddings.settings import Similarity
from bertkit.retrieval.approximate_search import Cells
from bertkit.retrieval.index_record import (
    CELLS_ARRAYS,
    ID_ENDS_FILE,
    IDS_FILE,
    RECORD_FILE,
    ROWS_FILE,
    TEXT_ENDS_FILE,
    TEXTS_FILE,
    VECTORS_FILE,
    CellsRecord,
    IndexPlan,
    IndexRecord,
)
from bertkit.retrieval.vector_index import VectorIndex

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

    They are UTF-8, concatenated; `ends` are the byte offsets where each ends.
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
    """Write texts, their row numbers, and ids if they have some; return the file records."""
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


CELLS_FOLDER = "cells"
ROWS_SEARCHED_EXACTLY = 1_000_000  # 0.2 seconds per query on two cores; cells take minutes to build


def open_vectors(
    plan: IndexPlan, record: IndexRecord, similarity: Similarity
) -> tuple[IndexRecord, VectorIndex]:
    """Open the vectors, with an approximate index's cells if asked for; build these if missing."""
    folder = plan.folder
    with rebuilding_advised():
        vectors = map_matrix(folder / VECTORS_FILE, record.files[VECTORS_FILE])
    if vectors.dtype != np.float32:
        raise DamagedFileError(
            f"{folder / VECTORS_FILE} holds {vectors.dtype}, and must hold float32; {ADVICE}"
        )
    if vectors.shape != (record.num_rows, record.dimension):
        raise DamagedFileError(
            f"{folder / VECTORS_FILE} has the shape {vectors.shape}, and must have"
            f" {(record.num_rows, record.dimension)}; {ADVICE}"
        )
    if not _wants_cells(plan, record, similarity):
        return record, VectorIndex(vectors, similarity)
    if record.cells is None or record.cells.similarity != similarity:
        activity = "clustering the vectors of"
        with open_output(folder, activity, is_workplace=True, flag="--index-folder"):
            return _add_cells(folder, record, VectorIndex(vectors, similarity))
    with rebuilding_advised():
        arrays = {
            name: map_matrix(folder / CELLS_FOLDER / f"{name}.npy", record.cells.files[name])
            for name in CELLS_ARRAYS
        }
        cells = Cells(**arrays, num_probes=record.cells.num_probes, recall=record.cells.recall)
        return record, VectorIndex(vectors, similarity, cells=cells)


def _wants_cells(plan: IndexPlan, record: IndexRecord, similarity: Similarity) -> bool:
    chosen = plan.settings.index
    if chosen != "auto":
        return chosen == "approximate"
    is_large = record.num_rows > ROWS_SEARCHED_EXACTLY
    return is_large and similarity != "manhattan" and find_spec("faiss") is not None


def _add_cells(
    folder: Path, record: IndexRecord, index: VectorIndex
) -> tuple[IndexRecord, VectorIndex]:
    """Build the cells of an approximate index, and write them and the updated record."""
    if IndexRecord.read(folder) != record:
        raise ResumeError(f"{folder} was rebuilt meanwhile; run the command again")
    index = index.approximate()
    cells = index.cells
    assert cells is not None
    if record.cells is not None:  # for another similarity; their files are about to be replaced
        record.model_copy(update={"cells": None}).save(folder / RECORD_FILE)
    place = folder / CELLS_FOLDER
    make_folder(place)
    files = {
        name: write_array(place / f"{name}.npy", getattr(cells, name)) for name in CELLS_ARRAYS
    }
    cells_record = CellsRecord(
        similarity=index.similarity,
        num_probes=cells.num_probes,
        recall=cells.recall,
        files=files,
    )
    record = record.model_copy(update={"cells": cells_record})
    record.save(folder / RECORD_FILE)
    return record, index
