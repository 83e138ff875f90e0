"""The record of an index: checksummed JSON in its folder, written last."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
)

from bertkit.base.checksummed_json import read_checksummed_json, write_checksummed_json
from bertkit.base.checksums import FileRecord, record_file
from bertkit.base.errors import DamagedFileError, InputError, storage_errors
from bertkit.base.settings import describe_validation
from bertkit.data.tables.settings import TableSettings
from bertkit.embeddings.similarity_names import Similarity

RECORD_FILE = "index.json"
VECTORS_FILE = "vectors.npy"
TEXTS_FILE = "texts.bin"
TEXT_ENDS_FILE = "text_ends.npy"
CELLS_ARRAYS = ("centers", "ranges", "sizes", "rows", "codes")

Files = dict[str, FileRecord]


def _check_names(*names: str) -> AfterValidator:
    """See that a record tells of these files, and of no others."""

    def check(files: Files) -> Files:
        if files.keys() != set(names):
            raise ValueError(f"it must tell of {', '.join(names)}")
        return files

    return AfterValidator(check)


class Part(BaseModel):
    """Base of what a record holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CorpusRecord(Part):
    """The corpus as it was when it was embedded.

    Attributes:
        name: of its file.
        reading: which of its columns were read, and how.
        size_bytes: its length.
        changed_ns: when it was last written, in nanoseconds since 1970.
        sha256: of all of it.
    """

    name: str
    reading: TableSettings
    size_bytes: NonNegativeInt
    changed_ns: int
    sha256: str

    @classmethod
    def of(cls, path: Path, reading: TableSettings) -> "CorpusRecord":
        """Look at a corpus, and read all of it for its SHA-256."""
        size_bytes, changed_ns = look_at(path)
        return cls(
            name=path.name,
            reading=reading,
            size_bytes=size_bytes,
            changed_ns=changed_ns,
            sha256=record_file(path).sha256,
        )

    def describes(self, path: Path, reading: TableSettings) -> bool:
        """Whether a corpus is still this one; its content is read only where its date differs."""
        if reading != self.reading:
            return False
        size_bytes, changed_ns = look_at(path)
        if (size_bytes, changed_ns) == (self.size_bytes, self.changed_ns):
            return True
        return size_bytes == self.size_bytes and record_file(path).sha256 == self.sha256


class CellsRecord(Part):
    """The approximate part.

    Attributes:
        similarity: that it was made for.
        num_probes: cells that a query looks through.
        recall: measured when it was made.
        files: its arrays, by field of `Cells`.
    """

    similarity: Similarity
    num_probes: PositiveInt
    recall: float
    files: Annotated[Files, _check_names(*CELLS_ARRAYS)]


class IndexRecord(Part):
    """An index that is whole.

    Attributes:
        corpus: what was embedded.
        embedding: all that a vector depends on.
        num_rows: texts and vectors.
        dimension: features of a vector.
        counts: what the texts were like, by the names of `TextCounts`.
        files: vectors and texts, by file name.
        cells: of an approximate index, once there is one.
    """

    corpus: CorpusRecord
    embedding: dict[str, Any]
    num_rows: PositiveInt
    dimension: PositiveInt
    counts: dict[str, NonNegativeInt]
    files: Annotated[Files, _check_names(VECTORS_FILE, TEXTS_FILE, TEXT_ENDS_FILE)]
    cells: CellsRecord | None = None

    def write(self, folder: Path) -> None:
        """Seal the folder."""
        write_checksummed_json(folder / RECORD_FILE, self.model_dump(mode="json"))

    @classmethod
    def read(cls, folder: Path) -> "IndexRecord | None":
        """What a folder holds; None where it isn't whole or there is none."""
        path = folder / RECORD_FILE
        with storage_errors(path, "read"):
            if not path.exists():
                return None
        try:
            return cls.model_validate(read_checksummed_json(path))
        except ValidationError as error:
            problem = describe_validation(error)
        except DamagedFileError as error:
            problem = str(error)
        raise DamagedFileError(
            f"{path} isn't the record of an index ({problem}); make it anew with --rebuild"
        )


def look_at(path: Path) -> tuple[int, int]:
    """Length of a corpus, and when it was last written."""
    with storage_errors(path, "read"):
        status = path.stat()
        if not path.is_file():
            raise InputError(
                f"{path} must be a file that can be read again, and is a folder, a pipe or a device"
            )
    return status.st_size, status.st_mtime_ns
