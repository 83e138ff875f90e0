"""An index of documents in one file, found by words, by vectors and by fields, kept current."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from itertools import chain
from pathlib import Path
from sqlite3 import Connection
from threading import RLock
from typing import TYPE_CHECKING, Any, cast, overload

from bertkit.base.errors import DamagedFileError, InputError, SettingsError, pluralize
from bertkit.base.progress import announce, show_progress
from bertkit.base.signals import stop_at_once
from bertkit.checkpoints.bundled import describe_name
from bertkit.data.problems import describe_unknown, name_problem
from bertkit.data.tables.rows import Table, name_files
from bertkit.inference.embeddings.settings import Similarity
from bertkit.inference.settings import EngineSettings, take_settings
from bertkit.inference.stream import cut_windows
from bertkit.reports.notebook import ResultList
from bertkit.retrieval.documents import (
    SourceDocument,
    SourceFile,
    compare_sources,
    name_corpus,
    open_sources,
    read_rows,
)
from bertkit.retrieval.filters import Condition
from bertkit.retrieval.hits import Changes, Hit, IndexInfo, StoredDocument, read_fields
from bertkit.retrieval.index_file import REMEDY, IndexFile
from bertkit.retrieval.index_model import IndexModel, load_model
from bertkit.retrieval.index_search import IndexSearch, Where, compile_where
from bertkit.retrieval.index_writer import IndexWriter
from bertkit.retrieval.passages import Passage
from bertkit.retrieval.settings import IndexSettings, QuerySettings
from bertkit.retrieval.stored_vectors import StoredVectors
from bertkit.retrieval.vector_file import Identity, Vectors
from bertkit.tokenization.tokenizer import check_texts

if TYPE_CHECKING:
    from bertkit.inference.embeddings.embedder import Embedder

BATCH_DOCUMENTS = 500  # stored at a time, or those of 262,144 characters of files


class Index(AbstractContextManager["Index"]):
    """Documents that are found by words and by meaning, in one file that is kept current.

    Processes and threads may share the file: one writes at a time, and a search sees what was
    stored last. A document is a row, or a file of plain text; it is found by its passages.

    Args:
        path: the file, which the first `add` or `update` makes; None for an index in memory.
        model: a model folder, a run, the id of a model of the Hub, or an `Embedder`; by default
            that of the file, else the one that comes with bertkit. It is loaded when vectors are
            needed.
        settings: how texts are read, cut and embedded.
        more: fields of `IndexSettings`.

    Examples:
        >>> index = bertkit.Index()
        >>> index.add(["Take the wheel off first.", "Boil the eggs for ten minutes."]).added
        2
        >>> index.search("How do I mend a tire?", top_k=1)[0].text
        'Take the wheel off first.'
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        model: "str | Path | Embedder | IndexModel | None" = None,
        settings: IndexSettings | None = None,
        **more: Any,
    ) -> None:
        # It stays where it is if the process goes to another folder.
        self.path = None if path is None else Path(path).absolute()
        self.settings = settings or take_settings(IndexSettings, more, "Index")
        self._given = model
        self._file: IndexFile | None = None
        self._lock = RLock()

    def add(
        self,
        rows: Table,
        *,
        id: str | None = None,  # noqa: A002 - a column's name, as people call it
        text: str | None = None,
    ) -> Changes:
        """Add documents, or replace those that have the same ids.

        Equal texts are embedded once. Up to 500 rows from Python are stored whole or not at all;
        of more, what was stored stays if the work is interrupted, and the same call goes on. An
        empty text deletes the document that had its id.

        Args:
            rows: files, folders or globs by name, or a list of `Path`; or texts, mappings or a data
                frame.
            id: the column of ids, by default `id`; an empty text for none. A plain text file has
                its name. A row without an id has file and number, or from Python digits of its
                text's SHA-256; in memory its number, if no row has an id.
            text: the column of texts, by default the only one, or `text`. Others are fields.

        Raises:
            InputError: rows can't be read, or two have the same id.
            SettingsError: the index has vectors of another model.
            StorageError: the file can't be written.
        """
        names = name_files(rows)
        columns = {"text_column": text, "id_column": id}
        given = {name: value for name, value in columns.items() if value is not None}
        reading = self.settings.model_copy(update=given)
        if names is not None:
            sources, writer = open_sources(names, reading, self.path), self._open_writer()
            with writer.file.reading() as connection:
                compare_sources(connection, sources, index=self.path)  # refuses others of one name
            return self._store_files(writer, sources)
        writer, first = self._open_writer(), None
        if self.path is None:
            first = self._ask("SELECT ifnull(max(CAST(id AS INTEGER)) + 1, 0) FROM documents")
        documents = read_rows(rows, text=reading.text_column, id=reading.id_column, first=first)
        self._store(writer, documents, len(rows) if isinstance(rows, Sized) else None)
        return writer.changes

    def update(self, corpus: str | Path | Sequence[str | Path]) -> Changes:
        """Store what has changed in files, and delete what is gone from them.

        Only files whose size or date differs are read, and only new texts are embedded.

        Args:
            corpus: a file, a folder, a glob, or several. A later update of the same corpus deletes
                the documents of files that are gone.

        Raises:
            InputError: as in `add`; or a document has the id of one of another, unchanged file.
            BertkitError: as in `add`.
        """
        inputs = [corpus] if isinstance(corpus, str | Path) else list(corpus)
        name = name_corpus(inputs, self.path)
        sources = open_sources(inputs, self.settings, self.path)
        writer = self._open_writer(corpus=name)
        with writer.file.reading() as connection:
            changed, gone = compare_sources(connection, sources, name, self.path)
            writer.seen = dict(connection.execute("SELECT name, stamp FROM sources"))
        if changed or gone:
            writer.movable = {*gone, *(source.name for source in changed)}
            self._store_files(writer, changed)
            writer.finish(changed, gone)
            writer.file.sync()
        return writer.changes

    def delete(self, ids: Sequence[str] | None = None, *, where: Where | None = None) -> int:
        """Delete documents by their ids, or those that pass a filter; return how many there were.

        Raises:
            SettingsError: neither or both are given, or the filter is wrong.
        """
        if (ids is None) == (not where):
            raise SettingsError("delete takes ids, or a filter (where) that isn't empty, not both")
        writer = self._open_writer(creates=False)
        with writer.file.writing() as connection:
            named = [ids] if isinstance(ids, str) else ids
            listed = _list_ids(connection, where) if named is None else map(str, named)
            select = "SELECT number FROM documents WHERE id = ?"
            found = [connection.execute(select, (one,)).fetchone() for one in listed]
            numbers = {one[0] for one in found if one is not None}
            writer.delete(connection, sorted(numbers))
        writer.file.sync()
        return len(numbers)

    def get(self, id: str) -> StoredDocument | None:  # noqa: A002
        """Return a document by its id; None if there is none."""
        of_document = "SELECT start, line, text FROM passages WHERE document = ? ORDER BY row"
        with self._open().reading() as connection:
            select = "SELECT number, fields FROM documents WHERE id = ?"
            found = connection.execute(select, (id,)).fetchone()
            if found is None:
                return None
            passages = [Passage(*one) for one in connection.execute(of_document, found[:1])]
        return StoredDocument(id, read_fields(found[1], id), passages)

    def documents(self, where: Where | None = None) -> Iterator[StoredDocument]:
        """Yield all documents, or those that pass a filter, in the order in which they came."""
        with self._open().reading() as connection:
            ids = _list_ids(connection, where)
        parts = cut_windows(ids, most_texts=BATCH_DOCUMENTS)
        return chain.from_iterable(map(self._read, parts))

    @overload
    def search(self, queries: str, top_k: int = 5, **options: Any) -> list[Hit]: ...

    @overload
    def search(
        self, queries: list[str] | tuple[str, ...], top_k: int = 5, **options: Any
    ) -> list[list[Hit]]: ...

    def search(
        self, queries: str | list[str] | tuple[str, ...], top_k: int = 5, **options: Any
    ) -> list[Hit] | list[list[Hit]]:
        """Find the best passages for one query, or for each of several, best first.

        Args:
            queries: one or several texts, none empty.
            top_k: results per query.
            options: fields of `QuerySettings`: `by` (words, vectors or both), `where` (a filter,
                or a dict of fields and values), `rerank` (a model of pairs), `candidates`,
                `by_document`.

        Raises:
            InputError: a query is empty or isn't a text.
            SettingsError: an option is wrong, such as a filter.
            BertkitError: the file can't be read, or the model can't be loaded.
        """
        texts = [queries] if isinstance(queries, str) else list(queries)
        check_texts(texts)
        for number, text in enumerate(texts, start=1):
            if not text.strip():
                raise InputError(f"query {number} is empty; each must have at least one word")
        settings = take_settings(QuerySettings, {"top_k": top_k, **options}, "search")
        found = self.find(texts, None, settings)
        return found[0] if isinstance(queries, str) else found

    def find(
        self, queries: list[str], vectors: Vectors | None, options: QuerySettings
    ) -> list[list[Hit]]:
        """Find passages as `search` does, with vectors `[queries, dimension]` that are known.

        None computes them, if they are needed.
        """
        file = self._open()
        if not queries or file.read_fact("dimension") is None:
            return ResultList(ResultList() for _ in queries)
        with file.reading() as connection:  # an error here comes before a model is loaded
            compile_where(connection, options.where)
        if options.rerank is not None:
            from bertkit.inference.reranker import Reranker

            Reranker.take(options.rerank, EngineSettings())
        if options.by == "words":
            vectors = None
        else:
            if vectors is None or "model" in vars(self):  # the file may be another by now
                self.model.check(cast("Identity", file.read_fact("embedding")), file.path)
            vectors = self.model.embed_queries(queries) if vectors is None else vectors
        return IndexSearch(file, self._vectors, options).find(queries, vectors)

    @cached_property
    def model(self) -> IndexModel:
        """What computes vectors; the first access loads it. It may be set to another."""
        return load_model(self._open(creates=True), self._given, self.settings)

    @cached_property
    def _vectors(self) -> StoredVectors:
        file = self._open()
        stored, usual = file.read_fact("dimension"), file.read_fact("similarity")
        similarity = self.settings.similarity or usual or self.model.similarity
        dimension = stored or self.model.identity["dimension"]
        return StoredVectors(cast("int", dimension), cast("Similarity", similarity))

    def info(self) -> IndexInfo:
        """Describe the index."""
        with self._open().reading() as connection:
            fields = connection.execute(
                "SELECT name, count(DISTINCT document) FROM fields GROUP BY name ORDER BY name"
            ).fetchall()
            embedding = cast("Identity", self._open().read_fact("embedding") or {})
            name, precision, dimension = map(embedding.get, ("model", "precision", "dimension"))
            return IndexInfo(
                documents=len(self),
                passages=self._ask("SELECT count(*) FROM passages"),
                sources=self._ask("SELECT count(*) FROM sources"),
                model=None if name is None else describe_name(str(name)),
                precision=cast("str | None", precision),
                dimension=cast("int | None", dimension),
                similarity=cast("str | None", self._open().read_fact("similarity")),
                tokenizer=cast("str | None", self._open().read_fact("tokenizer")),
                size_bytes=self._ask("PRAGMA page_count") * self._ask("PRAGMA page_size"),
                fields=dict(fields),
                changed=cast("str | None", self._open().read_fact("changed")),
            )

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._ask("SELECT count(*) FROM documents")

    def close(self) -> None:
        """Close the file; an index in memory is gone."""
        with self._lock:
            file, self._file = self._file, None
            vars(self).pop("_vectors", None)
        if file is not None:
            file.close()

    def __repr__(self) -> str:
        return f"Index({'' if self.path is None else repr(str(self.path))})"

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, *, creates: bool = False) -> IndexFile:
        with self._lock:
            if self._file is not None and not self._file.is_current:
                self.close()  # it was removed or replaced
            if self._file is None:
                self._file = IndexFile.open(self.path, creates=creates)
            return self._file

    def _open_writer(self, corpus: str | None = None, *, creates: bool = True) -> IndexWriter:
        file = self._open(creates=creates)
        return IndexWriter(file, lambda: self.model, lambda: self._vectors, corpus)

    def _ask(self, select: str) -> int:
        with self._open().reading() as connection:
            number: int = connection.execute(select).fetchone()[0]
        return number

    def _store_files(self, writer: IndexWriter, sources: Sequence[SourceFile]) -> Changes:
        sizes = [source.size_bytes for source in sources]
        documents = chain.from_iterable(source.documents() for source in sources)
        self._store(writer, documents, sum(sizes) if all(sizes) else None, are_files=True)
        return writer.changes

    def _store(
        self,
        writer: IndexWriter,
        documents: Iterable[SourceDocument],
        total: int | None,
        *,
        are_files: bool = False,
    ) -> None:
        """Store documents in batches, each of which is read whole before, and say what is odd."""
        batches = cut_windows(
            documents,
            lambda one: len(one.text) if are_files else 0,
            most_texts=BATCH_DOCUMENTS,
            ends_early=False,
        )
        kept = f"stopped; what was stored stays in {writer.file.path}, and the same command goes on"
        with (
            stop_at_once(lambda: kept) if self.path else nullcontext(),
            show_progress("Indexing", total, is_bytes=are_files) as progress,
        ):
            for batch in batches:
                writer.store(batch)
                progress.advance(sum(one.size for one in batch))
        writer.file.sync()
        if writer.changes.blank:
            announce(f"{pluralize(writer.changes.blank, 'empty text')} left out")
        if writer.changes.embedded:
            counts = self.model.counts
            for line in describe_unknown(counts.unknown_tokens, counts.text_tokens):
                announce(name_problem("the texts", line))

    def _read(self, ids: Sequence[str]) -> list[StoredDocument]:
        with self._open().reading():  # of one state
            return [one for one in map(self.get, ids) if one is not None]


def _list_ids(connection: Connection, where: Where | None) -> list[str]:
    """Return the ids of the documents that pass a filter, in the order in which they came."""
    condition = compile_where(connection, where) or Condition("1", ())
    select = f"SELECT id FROM documents WHERE {condition.sql} ORDER BY number"
    ids = [one for (one,) in connection.execute(select, condition.values)]
    if not all(isinstance(one, str) for one in ids):
        raise DamagedFileError(f"the index is damaged: a document has no id; {REMEDY}")
    return ids
