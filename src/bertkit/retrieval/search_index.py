"""Semantic search over a file of texts, with an index stored beside it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast, overload

from bertkit.base.errors import InputError
from bertkit.base.output import open_output
from bertkit.base.progress import announce
from bertkit.batch_jobs.embed.manifest import keep_precision
from bertkit.data.mapped_array import MappedArray
from bertkit.embeddings.embedder import Embedder
from bertkit.embeddings.similarity_names import Similarity
from bertkit.retrieval.approximate_search import check_approximate
from bertkit.retrieval.index_builder import (
    build_index,
    check_folder,
    find_index,
    read_embedding,
)
from bertkit.retrieval.index_files import StoredTexts, rebuilding_advised
from bertkit.retrieval.index_plan import FOLDER_SUFFIX, make_plan
from bertkit.retrieval.index_record import (
    TEXT_ENDS_FILE,
    TEXTS_FILE,
    IndexRecord,
    read_size_and_time,
)
from bertkit.retrieval.index_vectors import open_vectors
from bertkit.retrieval.settings import SearchSettings
from bertkit.retrieval.vector_index import VectorIndex
from bertkit.tokenization.tokenizer import check_texts


@dataclass(frozen=True)
class Hit:
    """One search result.

    Attributes:
        score: similarity to the query; higher is more similar.
        row: its row in the corpus, from 0.
        text: the whole text.
    """

    score: float
    row: int
    text: str


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
        texts: the texts, by row.
    """

    record: IndexRecord
    embedder: Embedder
    vectors: VectorIndex
    texts: StoredTexts

    @classmethod
    def open(
        cls,
        model: str | Path,
        corpus: str | Path,
        settings: SearchSettings | None = None,
        *,
        index_folder: str | Path | None = None,
        device: str = "auto",
        revision: str | None = None,
    ) -> Self:
        """Open the index of a corpus; build it if it is missing or the corpus has changed.

        Args:
            model: a folder of any format, a run, or the id of a model of the Hub.
            corpus: a file of texts: text, JSONL, CSV, TSV or Parquet.
            settings: how the corpus is read, embedded and searched; with precision auto, an
                existing index keeps its own.
            index_folder: where to store the index; by default beside the corpus, under its name
                plus `.bertkit`.
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
        corpus = Path(corpus)
        folder = Path(index_folder or corpus.with_name(corpus.name + FOLDER_SUFFIX))
        read_size_and_time(corpus)
        asked = settings or SearchSettings()
        kept = asked if asked.rebuild else keep_precision(asked, read_embedding(folder))
        plan, embedder = make_plan(model, corpus, folder, kept, device=device, revision=revision)
        similarity = plan.settings.similarity or cast("Similarity", embedder.similarity)
        if plan.settings.index == "approximate":
            check_approximate(similarity)
        record = find_index(plan)
        if record is None:
            with open_output(
                folder,
                "building the index",
                inputs=[corpus],
                check=check_folder,
                is_workplace=True,
                flag="--index-folder",
            ):
                record = find_index(plan) or build_index(plan)  # another may have made it
        elif asked.precision == "auto":
            announce(f"precision {plan.settings.precision}, as the index was made")
        record, vectors = open_vectors(plan, record, similarity)
        with rebuilding_advised():
            ends = MappedArray(
                folder / TEXT_ENDS_FILE, record.files[TEXT_ENDS_FILE], record.num_rows
            )
            texts = StoredTexts(folder / TEXTS_FILE, record.files[TEXTS_FILE], ends)
        return cls(record, embedder, vectors, texts)

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
        scores, rows = self.vectors.search(self.embedder.encode(texts), top_k)
        found = [
            [Hit(score, row, self.texts[row]) for score, row in zip(*each, strict=True)]
            for each in zip(scores.tolist(), rows.tolist(), strict=True)
        ]
        return found[0] if isinstance(queries, str) else found
