"""The folder of an index: memory-mapped arrays, texts, and a record, written last."""

import re
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, NonNegativeInt, PositiveInt

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.checksums import FileRecord
from bertkit.base.errors import (
    BertkitError,
    DamagedFileError,
    MissingFileError,
    ResumeError,
    storage_errors,
)
from bertkit.base.files import DurableFile, durable_file, make_folder
from bertkit.base.output import open_output
from bertkit.data.mapped_array import MappedArray
from bertkit.data.tables.settings import CorpusSettings
from bertkit.data.tables.text_files import TextFiles
from bertkit.data.tables.texts import TextRow
from bertkit.data.writers import write_array
from bertkit.inference.embeddings.settings import Similarity
from bertkit.retrieval.approximate_search import Cells
from bertkit.retrieval.index_plan import ADVICE, FOLDER_FLAG, IndexPlan
from bertkit.retrieval.vector_file import Identity
from bertkit.retrieval.vector_index import VectorIndex

OTHER_ADVICE = re.compile(r"(; (make it again|restore it|start over|rebuild the index)[^;]*)+$")
RECORD_FILE = "index.json"
VECTORS_FILE = "vectors.npy"
TEXTS_FILE = "texts.bin"
TEXT_ENDS_FILE = "text_ends.npy"
ROWS_FILE = "rows.npy"
IDS_FILE = "ids.bin"
ID_ENDS_FILE = "id_ends.npy"
OLDER_FILES = (VECTORS_FILE, TEXTS_FILE, TEXT_ENDS_FILE)  # empty rows had vectors, too
FILES = (*OLDER_FILES, ROWS_FILE)
FILES_WITH_IDS = (*FILES, IDS_FILE, ID_ENDS_FILE)
CELLS_ARRAYS = ("centers", "ranges", "sizes", "rows", "codes")
CELLS_FOLDER = "cells"
ROWS_SEARCHED_EXACTLY = 1_000_000  # 0.2 seconds per query on two cores; cells take minutes to build


@contextmanager
def advising(
    advice: str = ADVICE,
    kinds: tuple[type[BertkitError], ...] = (DamagedFileError, MissingFileError),
    replaced: str = "",
) -> Iterator[None]:
    """Replace the advice of errors of some kinds, or only of those that end with some advice."""
    try:
        yield
    except kinds as error:
        if not str(error).endswith(replaced):
            raise
        raise type(error)(f"{OTHER_ADVICE.sub('', str(error))}; {advice}") from None


Files = dict[str, FileRecord]


def _check_names(*allowed: tuple[str, ...]) -> AfterValidator:
    """Return a validator that a record lists exactly the files of one of these."""

    def check(files: Files) -> Files:
        if set(files) not in [set(names) for names in allowed]:
            raise ValueError(f"must list {', '.join(allowed[0])}")
        return files

    return AfterValidator(check)


class IndexPart(BaseModel):
    """Base class of the parts of an index's record."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CorpusRecord(IndexPart):
    """The state of the corpus when it was embedded."""

    name: str  # of its file or folder
    reading: CorpusSettings  # which columns were read, and how
    size_bytes: NonNegativeInt
    stamp: str = ""  # fingerprint of its files
    changed_ns: int | None = None  # the file's time of change, in records of older versions
    sha256: str  # of the whole file, or of the names and contents of several

    @classmethod
    def of(cls, files: TextFiles, reading: CorpusSettings) -> "CorpusRecord":
        """Record the state of a corpus; reads all of it for its SHA-256."""
        return cls(
            name=Path(files.name).name,
            reading=reading,
            size_bytes=files.size_bytes or 0,
            stamp=files.fingerprint(),
            sha256=files.sha256(),
        )

    def describes(self, files: TextFiles, reading: CorpusSettings) -> bool:
        """Whether a corpus is unchanged; its content is hashed only if a date differs."""
        if reading != self.reading:
            return False
        if files.fingerprint() == self.stamp:
            return True
        return files.size_bytes == self.size_bytes and files.sha256() == self.sha256


class CellsRecord(IndexPart):
    """The approximate part of an index."""

    similarity: Similarity  # that it was built for
    num_probes: PositiveInt  # cells searched per query
    recall: float  # measured at build time
    files: Annotated[Files, _check_names(CELLS_ARRAYS)]  # arrays, by field of `Cells`


class IndexRecord(ChecksummedModel):
    """A complete index."""

    description: ClassVar[str] = "the record of an index"

    corpus: CorpusRecord
    embedding: Identity  # everything that the vectors depend on
    num_rows: PositiveInt  # rows without text have no vector
    dimension: PositiveInt
    counts: dict[str, NonNegativeInt]  # by the names of `TextCounts`
    # of vectors and texts, by name
    files: Annotated[Files, _check_names(FILES, FILES_WITH_IDS, OLDER_FILES)]
    cells: CellsRecord | None = None  # if it was built

    @property
    def is_older(self) -> bool:
        """Whether an older version made it, which has to be made again."""
        return ROWS_FILE not in self.files

    @classmethod
    def read(cls, folder: Path) -> "IndexRecord | None":
        """Read the record of a folder; None if there is no complete index."""
        path = folder / RECORD_FILE
        with storage_errors(path, "read"):
            if not path.exists():
                return None
        with advising():
            return cls.load(path)


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


def map_numbers(path: Path, record: FileRecord, length: int) -> NDArray[np.unsignedinteger]:
    """Map a `.npy` file with a row of unsigned numbers."""
    mapped = map_matrix(path, record)
    if mapped.shape != (length,) or mapped.dtype.kind != "u":
        raise DamagedFileError(
            f"{path} holds {mapped.dtype} of the shape {mapped.shape}, and must hold {length:,}"
            f" unsigned numbers; {ADVICE}"
        )
    return mapped


class StoredTexts:
    """The texts of a corpus on disk, with random access by row; each MiB is verified once.

    They are UTF-8, concatenated; `ends` are the byte offsets where each ends. They stay those that
    were opened if the index is built again meanwhile, since files are replaced as a whole.
    """

    def __init__(self, path: Path, record: FileRecord, ends: NDArray[np.unsignedinteger]) -> None:
        self._file = MappedArray(path, record, 0)  # checks the size, and that there are checksums
        self._path, self._ends = path, ends
        with storage_errors(path, "read"), path.open("rb") as stream:
            self._content = (
                mmap(stream.fileno(), 0, access=ACCESS_READ) if record.size_bytes else None
            )

    def __getitem__(self, row: int) -> str:
        """Return the text of a row."""
        ends = self._ends[max(0, row - 1) : row + 1].tolist()
        start, stop = (0, *ends)[-2:]
        if not start <= stop <= len(self._content or b""):
            raise DamagedFileError(f"{self._path} has no text of row {row:,}; {ADVICE}")
        if self._content is None:
            return ""
        with advising():
            self._file.verify(start, stop, self._content)
        try:
            return self._content[start:stop].decode("utf-8")
        except UnicodeDecodeError:
            raise DamagedFileError(f"{self._path} isn't UTF-8 in row {row:,}; {ADVICE}") from None


class StoredCorpus:
    """Writes the texts of a corpus, their row numbers, and their ids if they have some."""

    def __init__(self, folder: Path, files: dict[str, DurableFile]) -> None:
        self.folder, self.files = folder, files  # by name
        self.numbers = array("Q")
        self.ends = {name: array("Q") for name in files}

    @classmethod
    @contextmanager
    def open(cls, folder: Path, *, has_ids: bool) -> Iterator[Self]:
        """Open the files, which are complete when the block ends without an error."""
        names = (TEXTS_FILE, IDS_FILE) if has_ids else (TEXTS_FILE,)
        make_folder(folder)
        with ExitStack() as stack:
            files = {name: stack.enter_context(durable_file(folder / name)) for name in names}
            yield cls(folder, files)

    def tap(self, rows: Iterator[tuple[int, TextRow]]) -> Iterator[TextRow]:
        """Store rows, each with its number, and pass them on."""
        for number, row in rows:
            self.numbers.append(number)
            for (name, file), text in zip(
                self.files.items(), (row.text, row.id or ""), strict=False
            ):
                content, ends = text.encode("utf-8"), self.ends[name]
                file.write(content)
                ends.append((ends[-1] if ends else 0) + len(content))
            yield row

    def write_numbers(self) -> dict[str, FileRecord]:
        """Write the numbers of rows, and where texts end; return the records of all files."""
        records = {name: file.record() for name, file in self.files.items()}
        arrays = dict(zip((TEXT_ENDS_FILE, ID_ENDS_FILE), self.ends.values(), strict=False))
        for name, values in {**arrays, ROWS_FILE: self.numbers}.items():
            records[name] = write_array(self.folder / name, np.frombuffer(values, dtype=np.uint64))
        return records


def open_vectors(
    plan: IndexPlan, record: IndexRecord, similarity: Similarity
) -> tuple[IndexRecord, VectorIndex]:
    """Open the vectors, with an approximate index's cells if asked for; build these if missing."""
    folder = plan.folder
    with advising():
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
    wants_cells = plan.settings.index == "approximate"
    if plan.settings.index == "auto" and record.num_rows > ROWS_SEARCHED_EXACTLY:
        wants_cells = similarity != "manhattan" and find_spec("faiss") is not None
    if not wants_cells:
        return record, VectorIndex(vectors, similarity)
    if record.cells is None or record.cells.similarity != similarity:
        activity = "clustering the vectors of"
        with open_output(folder, activity, is_workplace=True, flag=FOLDER_FLAG):
            return _add_cells(folder, record, VectorIndex(vectors, similarity))
    with advising():
        arrays = {
            name: map_matrix(folder / CELLS_FOLDER / f"{name}.npy", record.cells.files[name])
            for name in CELLS_ARRAYS
        }
        cells = Cells(**arrays, num_probes=record.cells.num_probes, recall=record.cells.recall)
        return record, VectorIndex(vectors, similarity, cells=cells)


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
