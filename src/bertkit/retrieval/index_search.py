"""Searching an index: lists by words and by vectors, joined, then reranked and cut."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np
from numpy.typing import NDArray

from bertkit.base.errors import DamagedFileError
from bertkit.reports.notebook import ResultList
from bertkit.retrieval.filters import Condition, compile_filter, read_filter
from bertkit.retrieval.fusion import fuse
from bertkit.retrieval.hits import Hit, hash_text, read_fields
from bertkit.retrieval.index_file import REMEDY, IndexFile
from bertkit.retrieval.settings import QuerySettings
from bertkit.retrieval.stored_vectors import StoredVectors
from bertkit.retrieval.vector_file import Vectors
from bertkit.retrieval.words import LEAST_SCORE, find_words

DEPTH = 100  # rows of each list, or as many as hits are asked for
SELECT = (
    "SELECT id, fields, passages.text, start, line, documents.id IS sources.name, passages.sha256"
    " FROM passages JOIN documents ON document = documents.number"
    " LEFT JOIN sources ON source = sources.number WHERE row = ?"
)
_NOTHING = np.empty(0, np.int64), np.empty(0, np.float64)


@dataclass(frozen=True)
class IndexSearch:
    """One search of an index, for any number of queries."""

    file: IndexFile
    vectors: StoredVectors
    options: QuerySettings

    @property
    def num_hits(self) -> int:
        """How many of the best are read, unless documents are counted."""
        candidates = 0 if self.options.rerank is None else self.options.candidates
        return max(self.options.top_k, candidates)

    def find(self, queries: Sequence[str], vectors: Vectors | None) -> list[list[Hit]]:
        """Find the best passages of one state of the index, best first."""
        options, depth = self.options, self.num_hits
        if options.by == "both" or options.by_document:
            depth = max(DEPTH, depth)
        with self.file.reading() as connection:
            where = None if options.where is None else read_filter(options.where)
            condition = None if where is None else compile_filter(connection, where)
            if vectors is not None:
                self.vectors.refresh(connection, self.file.state())
            found = self._find(connection, queries, vectors, condition, depth)
            while options.by_document and any(self._lacks(hits, depth) for hits in found):
                depth *= 4
                found = self._find(connection, queries, vectors, condition, depth)
        return ResultList(map(self._finish, queries, found))

    def _lacks(self, hits: Sequence[Hit], depth: int) -> bool:
        """Whether a longer list could have more documents, and too few are in this one."""
        return len(hits) >= depth and len({hit.id for hit in hits}) < self.options.top_k

    def _find(
        self,
        connection: Connection,
        queries: Sequence[str],
        vectors: Vectors | None,
        condition: Condition | None,
        depth: int,
    ) -> list[list[Hit]]:
        by, found = self.options.by, []
        nearest = [_NOTHING] * len(queries)
        if vectors is not None:
            among = None if condition is None else _list_rows(connection, condition)
            nearest = self.vectors.search(vectors, depth, among)
        for number, (query, (rows, similarities)) in enumerate(zip(queries, nearest, strict=True)):
            words = find_words(connection, query, depth, condition) if by != "vectors" else []
            ranked, of_words, known = words, dict(words), dict[int, float]()
            if vectors is not None:
                ranked = list(zip(rows.tolist(), similarities.tolist(), strict=True))
                known = dict(ranked)
            if vectors is not None and by == "both":
                kept = [row for row, score in words if score >= LEAST_SCORE]
                ranked = fuse([kept, rows.tolist()])
                others = [row for row in kept if row not in known]
                scores = self.vectors.score(vectors[number], others)
                known |= dict(zip(others, scores, strict=True))
            if not self.options.by_document:
                ranked = ranked[: self.num_hits]
            found.append(
                [
                    _read_hit(connection, row, score, of_words.get(row), known.get(row))
                    for row, score in ranked
                ]
            )
        return found

    def _finish(self, query: str, hits: list[Hit]) -> list[Hit]:
        """Rerank hits, keep the best of each document, and cut the list."""
        options = self.options
        if options.rerank is not None and hits:
            from bertkit.retrieval.reranking import load_reranker, rerank

            hits = rerank(load_reranker(options.rerank), query, hits[: options.candidates])
        if options.by_document:
            best: dict[str, Hit] = {}
            for hit in hits:
                best.setdefault(hit.id, hit)
            hits = [*best.values()]
        return ResultList(hits[: options.top_k])


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
    return Hit(
        id=name,
        score=score,
        text=text.strip(),
        start=start,
        line=line,
        fields=read_fields(fields, name),
        words=words,
        vector=vector,
        is_file=bool(is_file),
    )
