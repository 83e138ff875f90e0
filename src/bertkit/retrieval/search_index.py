"""Semantic search over files of texts, with an index stored beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast, overload

from bertkit.base.errors import InputError
from bertkit.base.output import open_output
from bertkit.base.progress import announce
from bertkit.batch_jobs.embed.manifest import keep_precision
from bertkit.data.mapped_array import MappedArray
from bertkit.data.tables.text_files import open_text_files
from bertkit.embeddings.embedder import Embedder
from bertkit.embeddings.similarity_names import Similarity
from bertkit.reports.notebook import ResultList, Tabular
from bertkit.retrieval.approximate_search import check_approximate
from bertkit.retrieval.index_builder import (
    build_index,
    check_folder,
    find_index,
    read_embedding,
)
from bertkit.retrieval.index_files import StoredTexts, rebuilding_advised
from bertkit.retrieval.index_plan import make_plan
from bertkit.retrieval.index_record import (
    ID_ENDS_FILE,
    IDS_FILE,
    ROWS_FILE,
    TEXT_ENDS_FILE,
    TEXTS_FILE,
    IndexRecord,
)
from bertkit.retrieval.index_vectors import open_vectors
from bertkit.retrieval.settings import SearchSettings
from bertkit.retrieval.vector_index import VectorIndex
from bertkit.tokenization.tokenizer import check_texts


@dataclass(frozen=True)
class Hit(Tabular):
    """One search result.

    Attributes:
        score: similarity to the query; higher is more similar.
        row: its row in the corpus, from 0.
        text: the whole text.
        id: its id; of several files, else the name of its file and its row there, from 1; None:
            it has none.
    """

    score: float
    row: int
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
    rows: MappedArray
    ids: StoredTexts | None = None

    @classmethod
    def open(
        cls,
        model: str | Path,
        corpus: str | Path | Sequence[str | Path],
        settings: SearchSettings | None = None,
        *,
        index_folder: str | Path | None = None,
        device: str = "auto",
        revision: str | None = None,
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
            device: auto, cpu, cuda or cuda:N.
            revision: a branch, tag or commit of a model of the Hub.

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
        files.stamp()  # an error here comes before the model is loaded
        folder = Path(index_folder or files.place_beside())
        kept = asked if asked.rebuild else keep_precision(asked, read_embedding(folder))
        plan, embedder = make_plan(model, files, folder, kept, device=device, revision=revision)
        similarity = plan.settings.similarity or cast("Similarity", embedder.similarity)
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
                flag="--index-folder",
            ):
                record = find_index(plan) or build_index(plan)  # another may have made it
        elif asked.precision == "auto":
            announce(f"precision {plan.settings.precision}, as the index was made")
        record, vectors = open_vectors(plan, record, similarity)
        with rebuilding_advised():
            texts = _open_texts(folder, record, TEXTS_FILE, TEXT_ENDS_FILE)
            has_ids = IDS_FILE in record.files
            ids = _open_texts(folder, record, IDS_FILE, ID_ENDS_FILE) if has_ids else None
            rows = MappedArray(folder / ROWS_FILE, record.files[ROWS_FILE], record.num_rows)
        return cls(record, embedder, vectors, texts, rows, ids)

    @overload
    def search(self, queries: str, top_k: int = 5) -> list[Hit]: ...

    @overload
    def search(self, queries: list[str] | tuple[str, ...], top_k: int = 5) -> list[list[Hit]]: ...

    def search(
        self, queries: str | list[str] | tuple[str, ...], top_k: int = 5
    ) -> list[Hit] | list[list[Hit]]:
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
        scores, places = self.vectors.search(self.embedder.encode(texts), top_k)
        found: list[Any] = ResultList(
            ResultList(self._find(score, place) for score, place in zip(*each, strict=True))
            for each in zip(scores.tolist(), places.tolist(), strict=True)
        )
        return found[0] if isinstance(queries, str) else found

    def _find(self, score: float, place: int) -> Hit:
        """Return the hit of a vector."""
        with rebuilding_advised():
            row = int(self.rows.read(place, place + 1)[0])
        return Hit(score, row, self.texts[place], None if self.ids is None else self.ids[place])


def _open_texts(folder: Path, record: IndexRecord, name: str, ends: str) -> StoredTexts:
    """Open texts, or ids."""
    offsets = MappedArray(folder / ends, record.files[ends], record.num_rows)
    return StoredTexts(folder / name, record.files[name], offsets)
