"""Embeddings, vector store, retriever and reranker for LangChain."""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from bertkit.base.errors import InputError, MissingExtraError
from bertkit.base.extras import describe_install
from bertkit.inference.reranker import Reranker
from bertkit.inference.settings import EngineSettings
from bertkit.retrieval.index import Index

try:
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
except ModuleNotFoundError as error:
    raise MissingExtraError(
        f"LangChain isn't installed ({error.name} is missing); {describe_install('langchain')}"
    ) from None

ID, TEXT = "\0id", "\0text"  # columns, beside those of any metadata
ID_DIGITS = 32
Metadata = dict[str, Any]


class BertkitEmbeddings(Embeddings):
    """Vectors of texts and of queries, each with its prompt; takes what an index takes."""

    def __init__(self, model: str | Path | None = None, **settings: Any) -> None:
        self.model = Index(model=model, **settings).model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Compute the vectors of texts."""
        return self.model.embed_passages(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        """Compute the vector of a query."""
        return self.model.embed_queries([text]).tolist()[0]


class BertkitVectorStore(VectorStore):
    """An index of bertkit, given as `Index` or by its file, as a vector store; else in memory."""

    def __init__(self, index: Index | str | Path | None = None) -> None:
        self.index = index if isinstance(index, Index) else Index(index)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[Metadata] | None = None,
        *,
        ids: list[str] | None = None,
        path: str | Path | None = None,
    ) -> Self:
        """Make an index of texts, or add them to that of a file; `embedding` is one of bertkit."""
        if embedding is not None and not isinstance(embedding, BertkitEmbeddings):
            raise InputError(f"expected BertkitEmbeddings, got {type(embedding).__name__}")
        store = cls(Index(path, model=None if embedding is None else embedding.model))
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[Metadata] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
    ) -> list[str]:
        """Add texts, or replace those of equal ids; without ids, these are made of the content."""
        listed = list(texts)
        num = len(listed)
        columns = zip(listed, metadatas or [{}] * num, ids or [None] * num, strict=True)
        rows = [{**one, TEXT: text, ID: name or _make_id(text, one)} for text, one, name in columns]
        self.index.add(list({row[ID]: row for row in rows}.values()), id=ID, text=TEXT)
        return [row[ID] for row in rows]

    def delete(self, ids: list[str] | None = None, **options: Any) -> bool:
        """Delete documents by id, or those that pass a filter, `where`."""
        self.index.delete(ids, **options)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents that are there, whole."""
        found = filter(None, map(self.index.get, ids))
        return [Document(one.text, id=one.id, metadata=one.fields) for one in found]

    def similarity_search(self, query: str, k: int = 4, **options: Any) -> list[Document]:
        """Return the best passages; options are those of `Index.search`."""
        return [found for found, _ in self.similarity_search_with_score(query, k, **options)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, **options: Any
    ) -> list[tuple[Document, float]]:
        """Return the best passages with their scores; `filter` is another name of `where`."""
        if "filter" in options:
            options["where"] = options.pop("filter")
        hits = self.index.search(query, k, **options)
        return [(Document(h.text, id=h.id, metadata=h.fields), h.score) for h in hits]


class BertkitRetriever(VectorStoreRetriever):
    """Finds passages in a store; `invoke` takes the options of a search, such as `k`, too."""

    def __init__(self, store: BertkitVectorStore, k: int = 4, **options: Any) -> None:
        super().__init__(vectorstore=store, search_kwargs={"k": k, **options})


class BertkitReranker(BaseDocumentCompressor):
    """Orders documents by a model of pairs of texts, and keeps the best `top_n`."""

    model: str
    top_n: int = 3

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: object = None
    ) -> list[Document]:
        """Return the best documents; `relevance_score` of their metadata is the model's value."""
        reranker = Reranker.take(self.model, EngineSettings())
        best = reranker.rank(query, [one.page_content for one in documents], self.top_n)
        found = [(documents[one.row], {"relevance_score": one.score}) for one in best]
        return [one.model_copy(update={"metadata": one.metadata | value}) for one, value in found]


def _make_id(text: str, metadata: Metadata) -> str:
    content = json.dumps([text, metadata], sort_keys=True, default=str)
    return sha256(content.encode(errors="surrogatepass")).hexdigest()[:ID_DIGITS]
