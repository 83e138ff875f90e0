"""Search a file of texts by meaning, with an index that is kept beside it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast, overload

from bertkit.base.errors import InputError
from bertkit.base.output import open_output
from bertkit.data.mapped_array import MappedArray
from bertkit.embeddings.embedder import Embedder
from bertkit.embeddings.similarity_names import Similarity
from bertkit.retrieval.approximate_search import check_approximate
from bertkit.retrieval.index_builder import build_index, check_folder, find_index
from bertkit.retrieval.index_files import StoredTexts, rebuilding_advised
from bertkit.retrieval.index_plan import FOLDER_SUFFIX, Place, make_plan
from bertkit.retrieval.index_record import (
    TEXT_ENDS_FILE,
    TEXTS_FILE,
    IndexRecord,
    look_at,
)
from bertkit.retrieval.index_vectors import open_vectors
from bertkit.retrieval.settings import SearchSettings
from bertkit.retrieval.vector_index import VectorIndex
from bertkit.tokenization.tokenizer import check_texts

ACTIVITY = "making the index"


@dataclass(frozen=True)
class Hit:
    """One text that was found.

    Attributes:
        score: how alike it is to the query; more is more alike.
        row: its row in the corpus, from 0.
        text: all of it.
    """

    score: float
    row: int
    text: str


@dataclass(frozen=True)
class SearchIndex:
    """The texts of a file, searched by meaning.

    Examples:
        >>> index = SearchIndex.open("all-MiniLM-L6-v2/", "passages.jsonl")  # doctest: +SKIP
        >>> index.search("How do I mend a tyre?", top_k=3)[0].text  # doctest: +SKIP
        'Take the wheel off first.'

    Attributes:
        record: what the index holds.
        embedder: makes vectors of queries.
        vectors: of the texts.
        texts: by row.
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
        """Open the index of a corpus; where there is none, or the corpus has changed, make it.

        Args:
            model: a folder of any format, a run, or the id of a model of the Hub.
            corpus: a file of texts: text, JSONL, CSV, TSV or Parquet.
            settings: how it is read, becomes vectors and is searched.
            index_folder: where the index is kept; by default beside the corpus, under its name and
                `.bertkit`.
            device: auto, cpu, cuda or cuda:N.
            revision: a branch, tag or commit of a model of the Hub.

        Raises:
            SettingsError: the index has vectors of another model or other settings, its folder
                holds something else, or a setting doesn't fit the model.
            InputError: the corpus has no texts, or isn't a file of texts.
            ResumeError: another process is making the index, or the corpus changed meanwhile.
            DamagedFileError: a file of the index was altered.
            MissingExtraError: an approximate index is asked for, and faiss isn't installed.
            StoppedError: Ctrl-C or SIGTERM; the message says how to go on.
            StorageError: reading failed.
            BertkitError: the model can't be loaded, as in `Embedder.load`.
        """
        corpus = Path(corpus)
        folder = Path(index_folder or corpus.with_name(corpus.name + FOLDER_SUFFIX))
        look_at(corpus)
        place = Place(model, corpus, folder, device, revision)
        plan, embedder = make_plan(place, settings or SearchSettings())
        similarity = plan.settings.similarity or cast("Similarity", embedder.similarity)
        if plan.settings.index == "approximate":
            check_approximate(similarity)
        record = find_index(plan)
        if record is None:
            with open_output(
                folder,
                ACTIVITY,
                inputs=[corpus],
                check=check_folder,
                is_workplace=True,
                flag="--index-folder",
            ):
                record = find_index(plan) or build_index(plan)  # another may have made it
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
        """Find the texts most alike to one query, or to each of several, the best first.

        Args:
            queries: none of them empty.
            top_k: texts of a query.

        Raises:
            InputError: a query is empty or isn't a text, or `top_k` is under 1.
            DamagedFileError: the texts were altered.
            MissingFileError: they are gone.
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
