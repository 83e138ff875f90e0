"""The record of an index: checksummed JSON in its folder, written last."""

from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    NonNegativeInt,
    PositiveInt,
)

from bertkit.base.checksummed_model import ChecksummedModel
from bertkit.base.checksums import FileRecord, record_file
from bertkit.base.errors import DamagedFileError, InputError, storage_errors
from bertkit.data.tables.settings import TableSettings
from bertkit.embeddings.similarity_names import Similarity

RECORD_FILE = "index.json"
VECTORS_FILE = "vectors.npy"
TEXTS_FILE = "texts.bin"
TEXT_ENDS_FILE = "text_ends.npy"
CELLS_ARRAYS = ("centers", "ranges", "sizes", "rows", "codes")

Files = dict[str, FileRecord]


def _check_names(*names: str) -> AfterValidator:
    """Return a validator that a record lists exactly these files."""

    def check(files: Files) -> Files:
        if files.keys() != set(names):
            raise ValueError(f"must list {', '.join(names)}")
        return files

    return AfterValidator(check)


class Part(BaseModel):
    """Base class of the parts of a record."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CorpusRecord(Part):
    """The state of the corpus when it was embedded.

    Attributes:
        name: its file name.
        reading: which columns were read, and how.
        size_bytes: its size.
        changed_ns: its modification time in nanoseconds since 1970.
        sha256: the SHA-256 of the whole file.
    """

    name: str
    reading: TableSettings
    size_bytes: NonNegativeInt
    changed_ns: int
    sha256: str

    @classmethod
    def of(cls, path: Path, reading: TableSettings) -> "CorpusRecord":
        """Record the state of a corpus; reads the whole file for its SHA-256."""
        size_bytes, changed_ns = read_size_and_time(path)
        return cls(
            name=path.name,
            reading=reading,
            size_bytes=size_bytes,
            changed_ns=changed_ns,
            sha256=record_file(path).sha256,
        )

    def describes(self, path: Path, reading: TableSettings) -> bool:
        """Whether a corpus is unchanged; its content is hashed only if its mtime differs."""
        if reading != self.reading:
            return False
        size_bytes, changed_ns = read_size_and_time(path)
        if (size_bytes, changed_ns) == (self.size_bytes, self.changed_ns):
            return True
        return size_bytes == self.size_bytes and record_file(path).sha256 == self.sha256


class CellsRecord(Part):
    """The approximate part of an index.

    Attributes:
        similarity: the measure that it was built for.
        num_probes: cells searched per query.
        recall: recall measured at build time.
        files: its array files, by field of `Cells`.
    """

    similarity: Similarity
    num_probes: PositiveInt
    recall: float
    files: Annotated[Files, _check_names(*CELLS_ARRAYS)]


class IndexRecord(ChecksummedModel):
    """A complete index.

    Attributes:
        corpus: the embedded corpus.
        embedding: everything that the vectors depend on.
        num_rows: number of texts, and of vectors.
        dimension: features per vector.
        counts: statistics of the texts, by the names of `TextCounts`.
        files: the files of vectors and texts, by file name.
        cells: the approximate part, if it was built.
    """

    description: ClassVar[str] = "the record of an index"

    corpus: CorpusRecord
    embedding: dict[str, Any]
    num_rows: PositiveInt
    dimension: PositiveInt
    counts: dict[str, NonNegativeInt]
    files: Annotated[Files, _check_names(VECTORS_FILE, TEXTS_FILE, TEXT_ENDS_FILE)]
    cells: CellsRecord | None = None

    @classmethod
    def read(cls, folder: Path) -> "IndexRecord | None":
        """Read the record of a folder; None if there is no complete index."""
        path = folder / RECORD_FILE
        with storage_errors(path, "read"):
            if not path.exists():
                return None
        try:
            return cls.load(path)
        except DamagedFileError as error:
            raise DamagedFileError(f"{error}; rebuild the index with --rebuild") from None


def read_size_and_time(path: Path) -> tuple[int, int]:
    """Return the size and the modification time of a corpus."""
    with storage_errors(path, "read"):
        status = path.stat()
        if not path.is_file():
            raise InputError(f"{path} must be a regular file, and is a folder, a pipe or a device")
    return status.st_size, status.st_mtime_ns
