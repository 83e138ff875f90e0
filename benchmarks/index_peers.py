"""The peers of bench_index.py: other stores of texts and vectors, each as its users run it.

Each gets the same rows and vectors, keeps them in a folder, and gives the ids of the ten texts that
are nearest to a query, which it reads with their texts. What is its own choice stays as it is: the
approximate indexes of txtai and Chroma, the exact ones of the others. `float32` vectors are handed
over in the form that a peer takes fastest.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from index_rows import PART, Known, Query, Rows, Vectors
from index_store import TOP_K, Store

TXTAI_CANDIDATES = 2000  # of which about twenty pass the filter: it is applied to what was found
QDRANT_BATCH = 1000


class Txtai(Store):
    """`Embeddings` with its texts in SQLite and its default index, which is approximate."""

    modules = ("txtai",)

    def __init__(self, folder: Path, known: Known) -> None:
        from txtai import Embeddings

        self._path = str(folder / "index")
        self._is_new = not folder.exists()
        config = {"method": "external", "transform": make_function(known)}
        self._embeddings = Embeddings(content=True, **config)
        if not self._is_new:
            self._embeddings.load(self._path, config=config)

    def add(self, rows: Rows) -> None:
        documents = [
            (name, {"text": text, **fields}, None)
            for name, text, fields in zip(rows.ids, rows.texts, rows.fields, strict=True)
        ]
        if self._is_new:
            self._embeddings.index(documents)
        else:
            self._embeddings.upsert(documents)
        self._is_new = False
        self._embeddings.save(self._path)

    def delete(self, rows: Rows) -> None:
        self._embeddings.delete(rows.ids)
        self._embeddings.save(self._path)

    def search(self, query: Query, *, filtered: bool) -> list[str]:
        if not filtered:
            found = self._embeddings.search(query.text, TOP_K)
            return [hit["id"] for hit in found]
        found = self._embeddings.search(
            "select id, text, score from txtai"
            f" where similar(:query, {TXTAI_CANDIDATES}) and part = {PART}",
            TOP_K,
            parameters={"query": query.text},
        )
        return [hit["id"] for hit in found]

    def close(self) -> None:
        self._embeddings.close()


class LanceDb(Store):
    """A table without an index of its vectors, which is exact."""

    modules = ("lancedb", "pyarrow")

    def __init__(self, folder: Path, known: Known) -> None:
        import lancedb

        self._database = lancedb.connect(folder)
        is_there = (folder / "passages.lance").exists()
        self._table = self._database.open_table("passages") if is_there else None

    def add(self, rows: Rows) -> None:
        import pyarrow as pa

        width = rows.vectors.shape[1]
        flat = pa.array(rows.vectors.ravel())
        fields = rows.fields
        columns = {
            "id": rows.ids,
            "text": rows.texts,
            "vector": pa.FixedSizeListArray.from_arrays(flat, width),
            **{name: [each[name] for each in fields] for name in fields[0]},
        }
        content = pa.table(columns)
        if self._table is None:
            self._table = self._database.create_table("passages", content)
        else:
            self._table.add(content)

    def delete(self, rows: Rows) -> None:
        assert self._table is not None
        self._table.delete(f"id in ({', '.join(repr(name) for name in rows.ids)})")

    def search(self, query: Query, *, filtered: bool) -> list[str]:
        assert self._table is not None
        found = self._table.search(query.vector).select(["id", "text"]).limit(TOP_K)
        if filtered:
            found = found.where(f"part = {PART}", prefilter=True)
        return [hit["id"] for hit in found.to_list()]

    def close(self) -> None:
        from datetime import timedelta

        assert self._table is not None
        self._table.optimize(cleanup_older_than=timedelta(0))


class LanceDbWords(LanceDb):
    """The same with an index of words, which new rows enter by `optimize`; joined by rank."""

    def add(self, rows: Rows) -> None:
        is_new = self._table is None
        super().add(rows)
        assert self._table is not None
        if is_new:
            self._table.create_fts_index("text")
        else:
            self._table.optimize()

    def search_both(self, query: Query) -> list[str]:
        assert self._table is not None
        asked = self._table.search(query_type="hybrid").vector(query.vector).text(query.text)
        return [hit["id"] for hit in asked.select(["id", "text"]).limit(TOP_K).to_list()]


class Chroma(Store):
    """A persistent client; its index is a graph (HNSW), which is approximate."""

    modules = ("chromadb",)

    def __init__(self, folder: Path, known: Known) -> None:
        import chromadb

        settings = chromadb.config.Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(str(folder), settings)
        self._passages = self._client.get_or_create_collection(
            "passages", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def add(self, rows: Rows) -> None:
        size = self._client.get_max_batch_size()
        for start in range(0, len(rows.texts), size):
            part = rows.take(start, start + size)
            self._passages.add(
                ids=part.ids,
                documents=list(part.texts),
                embeddings=part.vectors,
                metadatas=part.fields,
            )

    def delete(self, rows: Rows) -> None:
        self._passages.delete(rows.ids)

    def search(self, query: Query, *, filtered: bool) -> list[str]:
        where = {"part": PART} if filtered else None
        found = self._passages.query(query_embeddings=[query.vector], n_results=TOP_K, where=where)
        ids: list[str] = found["ids"][0]
        return ids

    def close(self) -> None:
        self._client.close()


class Qdrant(Store):
    """The local mode of the client, which is exact; an id is a number."""

    modules = ("qdrant_client",)
    most_rows = 2000  # it writes each through to the disk

    def __init__(self, folder: Path, known: Known) -> None:
        from qdrant_client import QdrantClient

        self._client = QdrantClient(path=str(folder))

    def add(self, rows: Rows) -> None:
        from qdrant_client import models

        if not self._client.collection_exists("passages"):
            size = rows.vectors.shape[1]
            vectors = models.VectorParams(size=size, distance=models.Distance.COSINE)
            self._client.create_collection("passages", vectors_config=vectors)
        pairs = zip(rows.texts, rows.fields, strict=True)
        payloads = [{"text": text, **fields} for text, fields in pairs]
        self._client.upload_collection(
            "passages",
            vectors=rows.vectors,
            payload=payloads,
            ids=list(rows.numbers),
            batch_size=QDRANT_BATCH,
        )

    def delete(self, rows: Rows) -> None:
        self._client.delete("passages", points_selector=list(rows.numbers))

    def search(self, query: Query, *, filtered: bool) -> list[str]:
        from qdrant_client import models

        match = models.FieldCondition(key="part", match=models.MatchValue(value=PART))
        passes = models.Filter(must=[match]) if filtered else None
        found = self._client.query_points(
            "passages", query=query.vector, query_filter=passes, limit=TOP_K
        )
        return [f"p{point.id}" for point in found.points]

    def close(self) -> None:
        self._client.close()


class SqliteVec(Store):
    """A virtual table with the field to filter by in it, which is exact."""

    modules = ("sqlite_vec",)

    def __init__(self, folder: Path, known: Known) -> None:
        import sqlite_vec

        sqlite = find_sqlite()
        folder.mkdir(exist_ok=True)
        self._connection = sqlite.connect(folder / "passages.db")
        self._connection.enable_load_extension(True)
        sqlite_vec.load(self._connection)

    def add(self, rows: Rows) -> None:
        with self._connection:
            self._connection.execute(
                "create virtual table if not exists passages using vec0(id text primary key,"
                f" vector float[{rows.vectors.shape[1]}] distance_metric=cosine, part integer,"
                " +text text, +fields text)"
            )
            self._connection.executemany(
                "insert into passages (id, vector, part, text, fields) values (?, ?, ?, ?, ?)",
                (
                    (name, vector.tobytes(), fields["part"], text, json.dumps(fields))
                    for name, vector, fields, text in zip(
                        rows.ids, rows.vectors, rows.fields, rows.texts, strict=True
                    )
                ),
            )

    def delete(self, rows: Rows) -> None:
        with self._connection:
            names = ((name,) for name in rows.ids)
            self._connection.executemany("delete from passages where id = ?", names)

    def search(self, query: Query, *, filtered: bool) -> list[str]:
        passes = f" and part = {PART}" if filtered else ""
        found = self._connection.execute(
            "select id, text, distance from passages where vector match ? and k = ?" + passes,
            (query.vector.tobytes(), TOP_K),
        )
        return [row[0] for row in found]

    def close(self) -> None:
        self._connection.close()


class SqliteVecWords(SqliteVec):
    """The same with a table of FTS5, joined by rank, as its author writes it."""

    def add(self, rows: Rows) -> None:
        super().add(rows)
        with self._connection:
            self._connection.execute(
                "create virtual table if not exists words using fts5(text, id unindexed,"
                " tokenize='porter unicode61')"
            )
            self._connection.executemany(
                "insert into words (text, id) values (?, ?)",
                zip(rows.texts, rows.ids, strict=True),
            )

    def delete(self, rows: Rows) -> None:
        super().delete(rows)
        with self._connection:
            listed = (json.dumps(rows.ids),)
            self._connection.execute(
                "delete from words where id in (select value from json_each(?))", listed
            )

    def search_both(self, query: Query) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query.text))
        found = self._connection.execute(
            """
            with nearest as (
                select id, row_number() over (order by distance) as place from passages
                where vector match ?1 and k = 100
            ), best as (
                select id, row_number() over (order by rank) as place from
                (select id, rank from words where text match ?2 order by rank limit 100)
            )
            select passages.id, passages.text from (
                select id, sum(1.0 / (60 + place)) as score
                from (select * from nearest union all select * from best) group by id
                order by score desc limit ?3
            ) as joined join passages on passages.id = joined.id order by joined.score desc
            """,
            (query.vector.tobytes(), words, TOP_K),
        )
        return [row[0] for row in found]


class LangChain(Store):
    """The vector store in memory."""

    modules = ("langchain_core.vectorstores.in_memory",)
    is_kept = False

    def __init__(self, folder: Path, known: Known) -> None:
        from langchain_core.embeddings import Embeddings
        from langchain_core.vectorstores import InMemoryVectorStore

        class KnownEmbeddings(Embeddings):  # type: ignore[misc]
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                vectors: list[list[float]] = known.look_up(texts).tolist()
                return vectors

            def embed_query(self, text: str) -> list[float]:
                return self.embed_documents([text])[0]

        self._store = InMemoryVectorStore(KnownEmbeddings())

    def add(self, rows: Rows) -> None:
        self._store.add_texts(rows.texts, metadatas=rows.fields, ids=rows.ids)

    def delete(self, rows: Rows) -> None:
        self._store.delete(rows.ids)

    def search(self, query: Query, *, filtered: bool) -> list[str]:
        passes = (lambda document: document.metadata["part"] == PART) if filtered else None
        found = self._store.similarity_search_by_vector(query.vector.tolist(), TOP_K, filter=passes)
        return [str(document.id) for document in found]

    def close(self) -> None:
        pass


def make_function(known: Known) -> Callable[[list[str]], Vectors]:
    """Txtai takes a function, and no method."""

    def transform(texts: list[str]) -> Vectors:
        return known.look_up(texts)

    return transform


def find_sqlite() -> Any:
    """A module of SQLite that loads extensions: Python's own, or pysqlite3 where that doesn't."""
    import sqlite3

    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    import pysqlite3

    return pysqlite3


PEERS: dict[str, type[Store]] = {
    "txtai": Txtai,
    "lancedb": LanceDb,
    "lancedb-words": LanceDbWords,
    "chromadb": Chroma,
    "qdrant-client": Qdrant,
    "sqlite-vec": SqliteVec,
    "sqlite-vec-words": SqliteVecWords,
    "langchain-core": LangChain,
}
