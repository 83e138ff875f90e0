"""Searching an index: lists by words and by vectors, joined, then reranked and cut."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np
from numpy.typing import NDArray

from bertkit.base.errors import DamagedFileError
from bertkit.inference.settings import EngineSettings
from bertkit.reports.notebook import ResultList
from bertkit.retrieval.filters import Condition, compile_filter, read_filter
from bertkit.retrieval.fusion import fuse
from bertkit.retrieval.hits import Hit, hash_text, read_fields
from bertkit.retrieval.index_file import REMEDY, IndexFile
from bertkit.retrieval.settings import QuerySettings
from bertkit.retrieval.stored_vectors import StoredVectors
from bertkit.retrieval.vector_file import Vectors
from bertkit.retrieval.words import LEAST_SCORE, find_words

Where = str | Mapping[str, object]
DEPTH = 100  # rows of each list, or as many as hits are asked for
FEW_ROWS = 10  # found by words that stand in half of the texts still count, if no more are found
# The indexes must agree, since SQLite doesn't notice a flipped bit in a number or an id.
SELECT = (
    "SELECT id, fields, passages.text, start, line, documents.id IS sources.name, passages.sha256"
    " FROM passages JOIN documents ON document = documents.number"
    " LEFT JOIN sources ON source = sources.number WHERE row = ?"
    " AND EXISTS (SELECT 1 FROM passages AS one INDEXED BY passages_document"
    " WHERE one.document = documents.number AND one.row = passages.row)"
    " AND EXISTS (SELECT 1 FROM documents AS one INDEXED BY sqlite_autoindex_documents_1"
    " WHERE one.id = documents.id AND one.number = documents.number)"
)


@dataclass(frozen=True)
class IndexSearch:
    """One search of an index, for any number of queries."""

    file: IndexFile
    vectors: StoredVectors
    options: QuerySettings

    @property
    def num_hits(self) -> int:
        """How many of the best are read, unless documents are counted."""
        return max(self.options.top_k, self.options.candidates if self.options.rerank else 0)

    def find(self, queries: Sequence[str], vectors: Vectors | None) -> list[list[Hit]]:
        """Find the best passages of one state of the index, best first."""
        options, depth = self.options, self.num_hits
        if options.by == "both" or options.by_document:
            depth = max(DEPTH, depth)
        with self.file.reading() as connection:
            condition = compile_where(connection, options.where)
            if vectors is not None:
                with self.file.mapped():
                    self.vectors.refresh(connection, self.file.state())
            while True:
                found = self._find(connection, queries, vectors, condition, depth)
                if not options.by_document or all(
                    len(hits) < depth or len({hit.id for hit in hits}) >= options.top_k
                    for hits in found
                ):
                    break
                depth *= 4
        return ResultList(map(self._finish, queries, found))

    def _find(
        self,
        connection: Connection,
        queries: Sequence[str],
        vectors: Vectors | None,
        condition: Condition | None,
        depth: int,
    ) -> list[list[Hit]]:
        options, nearest, found = self.options, [dict[int, float]() for _ in queries], []
        if vectors is not None:
            among = None if condition is None else _list_rows(connection, condition)
            lists = self.vectors.search(vectors, depth, among)
            nearest = [dict(zip(*map(np.ndarray.tolist, one), strict=True)) for one in lists]
        for number, (query, near) in enumerate(zip(queries, nearest, strict=True)):
            words = dict[int, float]()
            if options.by != "vectors":
                words = dict(find_words(connection, query, depth, condition))
            ranked = [*words.items(), *near.items()]
            if options.by == "both":
                least = LEAST_SCORE if len(words) > FEW_ROWS else 0
                ranked = fuse([[row for row in words if words[row] >= least], [*near]])
            ranked = ranked if options.by_document else ranked[: self.num_hits]
            far = [row for row, _ in ranked if row not in near]
            if vectors is not None and far:  # found by words only
                near |= dict(zip(far, self.vectors.score(vectors[number], far), strict=True))
            scores = ((row, score, words.get(row), near.get(row)) for row, score in ranked)
            found.append([_read_hit(connection, *each) for each in scores])
        return found

    def _finish(self, query: str, hits: list[Hit]) -> list[Hit]:
        """Keep the best hit of each document, rerank, and cut the list."""
        options = self.options
        if options.by_document:
            best = dict[str, Hit]()
            for hit in hits:
                best.setdefault(hit.id, hit)
            hits = [*best.values()]
        if options.rerank is not None and hits:
            from bertkit.inference.reranker import Reranker
            from bertkit.retrieval.reranking import rerank

            reranker = Reranker.take(options.rerank, EngineSettings())
            hits = rerank(reranker, query, hits[: self.num_hits])
        return ResultList(hits[: options.top_k])


def compile_where(connection: Connection, where: Where | None) -> Condition | None:
    """Compile a filter; errors as in `read_filter` and `compile_filter`."""
    return None if where is None else compile_filter(connection, read_filter(where))


def _list_rows(connection: Connection, condition: Condition) -> NDArray[np.int64]:
    """Return the rows of the passages that pass a filter, ascending."""
    found = connection.execute(
        "SELECT row FROM documents JOIN passages ON document = documents.number"
        f" WHERE {condition.sql} ORDER BY row",
        condition.values,
    )
    return np.fromiter((row for (row,) in found), np.int64)


def _read_hit(
    connection: Connection, row: int, score: float, words: float | None, vector: float | None
) -> Hit:
    found = connection.execute(SELECT, (row,)).fetchone()
    if found is None or hash_text(found[2]) != found[-1]:
        raise DamagedFileError(f"the index is damaged: a passage isn't what was stored; {REMEDY}")
    name, fields, text, start, line, is_file, _ = found
    values = read_fields(fields, name)
    return Hit(name, score, text.strip(), start, line, values, words, vector, None, bool(is_file))
