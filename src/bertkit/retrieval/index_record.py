"""The plan of an index, and its record: checksummed JSON in its folder, written last."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, NonNegativeInt, PositiveInt

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.checksums import FileRecord
from bertkit.base.errors import DamagedFileError, SettingsError, storage_errors
from bertkit.data.tables.settings import CorpusSettings
from bertkit.data.tables.text_files import TextFiles
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import Similarity
from bertkit.retrieval.settings import SearchSettings
from bertkit.retrieval.vector_file import VectorsFingerprint

QUERY_PROMPTS = ("query",)
PASSAGE_PROMPTS = ("document", "passage", "corpus")  # in the order of sentence-transformers


@dataclass(frozen=True)
class IndexPlan:
    """Everything that determines an index."""

    model: str | Path  # as the user named it
    corpus: TextFiles  # the texts, without empty rows
    folder: Path  # may not exist yet
    settings: SearchSettings  # with the precision that was taken
    passage_prompt: str  # prepended to each text of the corpus
    embedding: dict[str, Any]  # everything that the vectors depend on

    @property
    def reading(self) -> CorpusSettings:
        """The settings for reading the corpus."""
        return CorpusSettings(**self.settings.model_dump(include=set(CorpusSettings.model_fields)))

    def check_embedding(self, found: dict[str, Any]) -> None:
        """Raise SettingsError if existing vectors were made with another model or settings."""
        earlier = VectorsFingerprint(embedding=found, input=None)
        changes = earlier.list_changes(VectorsFingerprint(embedding=self.embedding, input=None))
        if not changes:
            return
        model = self.embedding["model"]
        if found.get("model_sha256") == self.embedding["model_sha256"]:  # under whatever name
            vectors, earlier_use = f"{model} with other settings", "settings"
        else:
            vectors = f"{found.get('model')}, which differ from those of {model}"
            earlier_use = "model and settings"
        raise SettingsError(
            f"{self.folder} has vectors of {vectors} ({'; '.join(changes)}); use the earlier"
            f" {earlier_use}, name another --index-folder, or rebuild the index with --rebuild"
        )


def make_plan(
    model: str | Path,
    corpus: TextFiles,
    folder: Path,
    settings: SearchSettings,
) -> tuple[IndexPlan, Embedder]:
    """Load the model; return the plan of the index and the embedder of queries."""
    without_prompt = settings.model_copy(update={"prompt": None, "prompt_name": None})
    embedder = Embedder.load(model, without_prompt)
    settings = settings.model_copy(update={"precision": embedder.engine.precision})
    passage_prompt = settings.passage_prompt
    if passage_prompt is None:
        passage_prompt = _choose_prompt(embedder, PASSAGE_PROMPTS)
    plan = IndexPlan(
        model=model,
        corpus=corpus,
        folder=folder,
        settings=settings,
        passage_prompt=passage_prompt,
        embedding=embedder.identity | {"prompt": passage_prompt},
    )
    encoder = replace(embedder.text_encoder, prompt=_find_query_prompt(embedder, settings))
    return plan, replace(embedder, text_encoder=encoder)


def _find_query_prompt(embedder: Embedder, settings: SearchSettings) -> str:
    """Return the prompt for queries."""
    name = settings.prompt_name
    if name is None:
        chosen = settings.prompt
        return _choose_prompt(embedder, QUERY_PROMPTS) if chosen is None else chosen
    if settings.prompt is not None:
        raise SettingsError("prompt and prompt_name exclude each other; give one")
    if name not in embedder.prompts:
        known = ", ".join(embedder.prompts) or "none"
        raise SettingsError(f"this model has no prompt {name!r}; it has {known}")
    return embedder.prompts[name]


def _choose_prompt(embedder: Embedder, names: tuple[str, ...]) -> str:
    """Return the first of these prompts that the model has, else its default prompt."""
    default = embedder.text_encoder.prompt
    return next((embedder.prompts[name] for name in names if name in embedder.prompts), default)


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


class IndexPart(BaseModel):
    """Base class of the parts of an index's record."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CorpusRecord(IndexPart):
    """The state of the corpus when it was embedded."""

    name: str  # of its file or folder
    reading: CorpusSettings  # which columns were read, and how
    size_bytes: NonNegativeInt
    stamp: str = ""  # SHA-256 of its files' sizes and times of change; of several, names too
    changed_ns: int | None = None  # the file's time of change, in records of older versions
    sha256: str  # of the whole file, or of the names and contents of several

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
    embedding: dict[str, Any]  # everything that the vectors depend on
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
        try:
            return cls.load(path)
        except DamagedFileError as error:
            raise DamagedFileError(f"{error}; rebuild the index with --rebuild") from None
