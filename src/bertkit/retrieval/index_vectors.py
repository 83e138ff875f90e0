"""Open the vectors of an index, with cells if it is approximate."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from bertkit.base.errors import DamagedFileError, ResumeError
from bertkit.base.files import make_folder
from bertkit.base.output import open_output
from bertkit.data.mapped_array import write_array
from bertkit.embeddings.similarity_names import Similarity
from bertkit.retrieval.approximate_search import Cells
from bertkit.retrieval.index_files import ADVICE, map_matrix, rebuilding_advised
from bertkit.retrieval.index_plan import IndexPlan
from bertkit.retrieval.index_record import (
    CELLS_ARRAYS,
    RECORD_FILE,
    VECTORS_FILE,
    CellsRecord,
    IndexRecord,
)
from bertkit.retrieval.vector_index import VectorIndex

CELLS_FOLDER = "cells"
ROWS_SEARCHED_EXACTLY = 1_000_000  # 0.2 seconds per query on two cores; cells take minutes to build


def open_vectors(
    plan: IndexPlan, record: IndexRecord, similarity: Similarity
) -> tuple[IndexRecord, VectorIndex]:
    """Open the vectors, with cells if the settings ask for them; build the cells if missing."""
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
    """Build cells, and write them and the updated record."""
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
