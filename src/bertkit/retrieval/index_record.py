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
from bertkit.base.checksums import FileRecord
from bertkit.base.errors import DamagedFileError, storage_errors
from bertkit.data.tables.settings import CorpusSettings
from bertkit.data.tables.text_files import TextFiles
from bertkit.embeddings.similarity_names import Similarity

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

Files = dict[str, FileRecord]


def _check_names(*allowed: tuple[str, ...]) -> AfterValidator:
    """Return a validator that a record lists exactly the files of one of these."""

    def check(files: Files) -> Files:
        if set(files) not in [set(names) for names in allowed]:
            raise ValueError(f"must list {', '.join(allowed[0])}")
        return files

    return AfterValidator(check)


class Part(BaseModel):
    """Base class of the parts of a record."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CorpusRecord(Part):
    """The state of the corpus when it was embedded.

    Attributes:
        name: the name of its file or folder.
        reading: which columns were read, and how.
        size_bytes: its size.
        stamp: the SHA-256 of the sizes and times of change of its files, and of several, the names.
        changed_ns: the time of change of the file, in records of older versions.
        sha256: the SHA-256 of the whole file, or of the names and contents of several.
    """

    name: str
    reading: CorpusSettings
    size_bytes: NonNegativeInt
    stamp: str = ""
    changed_ns: int | None = None
    sha256: str

    @classmethod
    def of(cls, files: TextFiles, reading: CorpusSettings) -> "CorpusRecord":
        """Record the state of a corpus; reads all of it for its SHA-256."""
        size_bytes, stamp = files.stamp()
        return cls(
            name=Path(files.name).name,
            reading=reading,
            size_bytes=size_bytes,
            stamp=stamp,
            sha256=files.sha256(),
        )

    def describes(self, files: TextFiles, reading: CorpusSettings) -> bool:
        """Whether a corpus is unchanged; its content is hashed only if a date differs."""
        if reading != self.reading:
            return False
        size_bytes, stamp = files.stamp()
        if stamp == self.stamp:
            return True
        return size_bytes == self.size_bytes and files.sha256() == self.sha256


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
    files: Annotated[Files, _check_names(CELLS_ARRAYS)]


class IndexRecord(ChecksummedModel):
    """A complete index.

    Attributes:
        corpus: the embedded corpus.
        embedding: everything that the vectors depend on.
        num_rows: number of texts, and of vectors; rows without text have none.
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
    files: Annotated[Files, _check_names(FILES, FILES_WITH_IDS, OLDER_FILES)]
    cells: CellsRecord | None = None

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
        try:
            return cls.load(path)
        except DamagedFileError as error:
            raise DamagedFileError(f"{error}; rebuild the index with --rebuild") from None
