"""Semantic search over files of texts, with an index stored beside them."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self, overload

import numpy as np
from numpy.typing import NDArray

from bertkit.base.checksums import record_file
from bertkit.base.errors import (
    BertkitError,
    DamagedFileError,
    InputError,
    ResumeError,
    SettingsError,
    pluralize,
    storage_errors,
)
from bertkit.base.files import remove_folder
from bertkit.base.output import LOCK_FILE, open_output
from bertkit.base.progress import announce
from bertkit.data.problems import append_problems, describe_unknown
from bertkit.data.tables.text_files import open_text_files
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.transformer import Vectors
from bertkit.reports.notebook import ResultList, Tabular
from bertkit.retrieval.approximate_search import check_approximate
from bertkit.retrieval.embed import EmbedResult, embed
from bertkit.retrieval.index_folder import (
    CELLS_FOLDER,
    FILES_WITH_IDS,
    ID_ENDS_FILE,
    IDS_FILE,
    RECORD_FILE,
    ROWS_FILE,
    TEXT_ENDS_FILE,
    TEXTS_FILE,
    VECTORS_FILE,
    CorpusRecord,
    IndexRecord,
    StoredCorpus,
    StoredTexts,
    advising,
    map_numbers,
    open_vectors,
)
from bertkit.retrieval.index_plan import FOLDER_FLAG, IndexPlan, make_plan
from bertkit.retrieval.settings import EmbedSettings, SearchSettings
from bertkit.retrieval.unfinished_vectors import read_record
from bertkit.retrieval.vector_file import Identity, keep_precision, manifest_path
from bertkit.retrieval.vector_index import VectorIndex
from bertkit.tokenization.tokenizer import check_texts

# The stems of all file names in an index folder; the lock file's name starts with a dot.
OWN_NAMES = {name.split(".")[0] for name in (RECORD_FILE, *FILES_WITH_IDS, CELLS_FOLDER, LOCK_FILE)}


def find_index(plan: IndexPlan) -> IndexRecord | None:
    """Return the record of an existing index that matches the plan; None if one must be built."""
    if plan.settings.overwrite:
        return None
    record = IndexRecord.read(plan.folder)
    if record is None:
        return None
    plan.check_embedding(record.embedding)
    is_same = not record.is_older and record.corpus.describes(plan.corpus, plan.reading)
    return record if is_same else None


def _advising_to_remove(folder: Path) -> AbstractContextManager[None]:
    """Replace the advice of `bertkit embed` with that for an index."""
    advice = f"remove {folder} to start over"
    return advising(advice, (BertkitError,), replaced="--overwrite")


def read_embedding(folder: Path) -> Identity:
    """Return what the vectors of an index depend on, finished or not; empty if there are none."""
    if (record := IndexRecord.read(folder)) is not None:
        return record.embedding
    with _advising_to_remove(folder):
        state = read_record(folder / VECTORS_FILE)
    return {} if state is None else state.beginning.embedding


def check_folder(folder: Path) -> None:
    """Check that building an index in a folder would replace nothing but an older index."""
    with storage_errors(folder, "read"):
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    is_index = LOCK_FILE in names or names >= {RECORD_FILE, VECTORS_FILE}
    if names and not (is_index and {name.split(".")[0] for name in names} <= OWN_NAMES):
        raise SettingsError(
            f"{folder} holds other files, which the index could replace; name a new or empty"
            f" {FOLDER_FLAG}"
        )


def build_index(plan: IndexPlan) -> IndexRecord:
    """Embed the corpus, resuming if possible, and store its texts as they are read.

    The caller must hold the lock of the folder.
    """
    output, overwrite = plan.folder / VECTORS_FILE, plan.settings.overwrite
    begun = None
    with suppress(DamagedFileError) if overwrite else _advising_to_remove(plan.folder):
        begun = read_record(output)
    if begun is None and overwrite:
        remove_folder(manifest_path(output))  # finished vectors are computed again
    elif begun is not None and not overwrite:
        plan.check_embedding(begun.beginning.embedding)
    corpus = CorpusRecord.of(plan.corpus, plan.reading)
    earlier = None if overwrite else IndexRecord.read(plan.folder)
    if earlier is not None:
        cause = "has an older index" if earlier.is_older else "changed since it was embedded"
        announce(f"{plan.corpus.name} {cause}; embedding it again")
    remove_folder(plan.folder / RECORD_FILE)
    changes = {
        "prompt": plan.passage_prompt,
        "prompt_name": None,
        "id_column": None,  # the index stores ids
        "overwrite": True,
    }
    chosen = plan.settings.model_dump(include=set(EmbedSettings.model_fields))
    settings = EmbedSettings(**chosen | changes)
    with StoredCorpus.open(plan.folder, has_ids=plan.corpus.has_ids) as stored:
        with _advising_to_remove(plan.folder):
            result = embed(plan.model, plan.corpus, output, settings, tap=stored.tap)
        if result.was_done:  # its texts weren't read
            for _ in stored.tap(plan.corpus.numbered_rows()):
                pass
        if not result.num_rows:
            raise InputError(f"{plan.corpus.name} has no texts")
    files = {VECTORS_FILE: record_file(output), **stored.write_numbers()}
    announce(_describe(plan, result))
    if not corpus.describes(plan.corpus, plan.reading):
        raise ResumeError(f"{plan.corpus.name} changed while it was read; run the command again")
    record = IndexRecord(
        corpus=corpus,
        embedding=plan.embedding,
        num_rows=result.num_rows,
        dimension=result.dimension,
        counts=asdict(result.counts),
        files=files,
    )
    record.save(plan.folder / RECORD_FILE)  # marks the index as complete
    return record


def _describe(plan: IndexPlan, result: EmbedResult) -> str:
    """Describe in one line what was embedded and which data problems were counted."""
    num_blank = plan.corpus.num_blank
    has_lines = any(table.format == "text" for table in plan.corpus.tables.values())
    problems = ["one text per line"] if has_lines else []
    problems += [f"{pluralize(num_blank, 'empty row')} left out"] if num_blank else []
    problems += [
        f"{number:,} {name.replace('_', ' ')}"
        for name, number in asdict(result.counts).items()
        if number and name not in ("texts", "tokens", "text_tokens", "unknown_tokens")
    ]
    line = f"{plan.corpus.name}: {pluralize(result.num_rows, 'text')} embedded"
    line += f" ({', '.join(problems)})" if problems else ""
    unknown = describe_unknown(result.counts.unknown_tokens, result.counts.text_tokens)
    return append_problems(line, unknown)


@dataclass(frozen=True)
class RowHit(Tabular):
    """One search result.

    Its `id` is the text's own; else, of several files, the name of its file and its row there, from
    1; else None.
    """

    score: float  # similarity to the query; higher is more similar
    row: int  # in the corpus, from 0
    text: str
    id: str | None = None


@dataclass(frozen=True)
class SearchIndex:
    """A semantic search index over the texts of a file.

    Examples:
        >>> index = SearchIndex.open("all-MiniLM-L6-v2/", "passages.jsonl")  # doctest: +SKIP
        >>> index.search("How do I mend a tire?", top_k=3)[0].text  # doctest: +SKIP
        'Take the wheel off first.'

    Attributes:
        record: the record of the index.
        embedder: embeds the queries.
        vectors: the searchable vectors of the texts.
        texts: the texts, in the order of the vectors.
        rows: the number of the row of each, in the corpus.
        ids: the ids of the texts, if they have some.
    """

    record: IndexRecord
    embedder: Embedder
    vectors: VectorIndex
    texts: StoredTexts
    rows: NDArray[np.unsignedinteger]
    ids: StoredTexts | None = None

    @classmethod
    def open(
        cls,
        model: str | Path,
        corpus: str | Path | Sequence[str | Path],
        settings: SearchSettings | None = None,
        *,
        index_folder: str | Path | None = None,
    ) -> Self:
        """Open the index of a corpus; build it if it is missing or the corpus has changed.

        Args:
            model: a folder of any format, a run, or the id of a model of the Hub.
            corpus: a file of texts (text, JSONL, CSV, TSV or Parquet), a folder or glob of such
                files, or several of these. Rows without text are left out.
            settings: how the corpus is read, embedded and searched; with precision auto, an
                existing index keeps its own.
            index_folder: where to store the index; by default beside the corpus, under its name
                plus `.bertkit`; that of several files is in their common folder.

        Raises:
            SettingsError: the index has vectors of another model or other settings, its folder
                holds other files, or a setting doesn't fit the model.
            InputError: the corpus has no texts, or isn't a file of texts.
            ResumeError: another process is building the index, or the corpus changed meanwhile.
            DamagedFileError: a file of the index was altered.
            MissingExtraError: the index is to be approximate, and faiss isn't installed.
            StoppedError: Ctrl-C or SIGTERM; the message says how to resume.
            StorageError: reading failed.
            BertkitError: the model can't be loaded, as in `Embedder.load`.
        """
        asked = settings or SearchSettings()
        files = open_text_files(corpus, asked, skips_blank=True)
        list(files.paths())  # an error here comes before the model is loaded
        folder = Path(index_folder or files.place_beside())
        kept = asked if asked.overwrite else keep_precision(asked, read_embedding(folder))
        plan, embedder = make_plan(model, files, folder, kept)
        similarity = plan.settings.similarity or embedder.similarity
        if plan.settings.index == "approximate":
            check_approximate(similarity)
        record = find_index(plan)
        if record is None:
            with open_output(
                folder,
                "building the index",
                inputs=[name for name in files.inputs if Path(name).exists()],
                check=check_folder,
                is_workplace=True,
                flag=FOLDER_FLAG,
            ):
                record = find_index(plan) or build_index(plan)  # another may have made it
        elif asked.precision == "auto":
            announce(f"precision {plan.settings.precision}, as the index was made")
        record, vectors = open_vectors(plan, record, similarity)
        with advising():
            texts = _open_texts(folder, record, TEXTS_FILE, TEXT_ENDS_FILE)
            has_ids = IDS_FILE in record.files
            ids = _open_texts(folder, record, IDS_FILE, ID_ENDS_FILE) if has_ids else None
            rows = map_numbers(folder / ROWS_FILE, record.files[ROWS_FILE], record.num_rows)
        return cls(record, embedder, vectors, texts, rows, ids)

    @overload
    def search(self, queries: str, top_k: int = 5) -> list[RowHit]: ...

    @overload
    def search(
        self, queries: list[str] | tuple[str, ...], top_k: int = 5
    ) -> list[list[RowHit]]: ...

    def search(
        self, queries: str | list[str] | tuple[str, ...], top_k: int = 5
    ) -> list[RowHit] | list[list[RowHit]]:
        """Find the texts most similar to one query, or to each of several, best first.

        Args:
            queries: one or several texts, none empty.
            top_k: results per query.

        Raises:
            InputError: a query is empty or isn't a text, or `top_k` is under 1.
            DamagedFileError: the texts were altered.
            MissingFileError: the texts are missing.
        """
        texts = [queries] if isinstance(queries, str) else list(queries)
        check_texts(texts)
        for number, text in enumerate(texts, start=1):
            if not text.strip():
                raise InputError(f"query {number} is empty; each must have at least one word")
        found = self.find(self.embedder(texts), top_k)
        return found[0] if isinstance(queries, str) else found

    def find(self, vectors: Vectors, top_k: int = 5) -> list[list[RowHit]]:
        """Find the texts whose vectors are most similar to each of several; errors as above."""
        scores, places = self.vectors.search(vectors, top_k)

        def describe(score: float, place: int) -> RowHit:
            name = None if self.ids is None else self.ids[place]
            return RowHit(score, int(self.rows[place]), self.texts[place], name)

        return ResultList(
            ResultList(map(describe, *each))
            for each in zip(scores.tolist(), places.tolist(), strict=True)
        )


def _open_texts(folder: Path, record: IndexRecord, name: str, ends: str) -> StoredTexts:
    """Open texts, or ids."""
    offsets = map_numbers(folder / ends, record.files[ends], record.num_rows)
    return StoredTexts(folder / name, record.files[name], offsets)
