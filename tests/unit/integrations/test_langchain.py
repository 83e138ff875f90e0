"""LangChain's own tests of embeddings, vector stores and retrievers, and what they leave open."""

import sys

import pytest

pytest.importorskip("langchain_tests")

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_tests.integration_tests import (
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

from bertkit.base.errors import InputError, MissingExtraError
from bertkit.inference.reranker import RankedPassage, Reranker
from bertkit.integrations.langchain import (
    BertkitEmbeddings,
    BertkitReranker,
    BertkitRetriever,
    BertkitVectorStore,
)

pytestmark = pytest.mark.anyio  # runs the asynchronous ones
TEXTS = ["Take the wheel off first.", "Boil the eggs for ten minutes.", "Pump up the tire."]


@pytest.fixture
def anyio_backend():
    return "asyncio"


class TestEmbeddings(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self):
        return BertkitEmbeddings


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self):
        return BertkitVectorStore()


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self):
        return BertkitRetriever

    @property
    def retriever_constructor_params(self):
        return {"store": BertkitVectorStore.from_texts(TEXTS)}

    @property
    def retriever_query_example(self):
        return "a flat tire"


def test_a_store_is_a_file_that_is_opened_again(tmp_path):
    path = tmp_path / "notes.bertkit"
    fields = [{"year": year} for year in (2019, 2020, 2021)]
    store = BertkitVectorStore.from_texts(TEXTS, BertkitEmbeddings(), fields, path=path)
    store.index.close()
    store = BertkitVectorStore(path)
    assert store.add_texts(TEXTS[:1], fields[:1]) == store.add_texts(TEXTS[:1], fields[:1])
    assert len(store.index) == 3
    found = store.similarity_search_with_score("a flat tire", k=3, filter="year > 2019")
    assert [one.metadata["year"] for one, _ in found] == [2021, 2020]
    assert found[0][1] > found[1][1]
    retriever = store.as_retriever(search_kwargs={"k": 1, "filter": {"year": 2020}})
    assert [one.page_content for one in retriever.invoke("a flat tire")] == TEXTS[1:2]


async def test_a_retriever_takes_options_of_one_call():
    retriever = BertkitRetriever(BertkitVectorStore.from_texts(TEXTS), by="words")
    assert [one.page_content for one in await retriever.ainvoke("boil tire", k=1)] == TEXTS[2:]
    assert len(retriever.invoke("boil tire")) == 2


def test_other_embeddings_are_refused():
    with pytest.raises(InputError, match="got DeterministicFakeEmbedding"):
        BertkitVectorStore.from_texts(TEXTS, DeterministicFakeEmbedding(size=6))


def test_a_text_without_its_metadata_or_id_is_refused():
    store = BertkitVectorStore()
    for given in ({"metadatas": [{}]}, {"ids": ["1"]}):
        with pytest.raises(ValueError, match="zip"):
            store.add_texts(TEXTS, **given)


def test_a_reranker_orders_documents_by_the_value_of_their_pair(monkeypatch):
    class ByLength:
        def rank(self, query, texts, top_k):
            rows = enumerate(texts)
            found = [RankedPassage(row, -float(len(text)), text) for row, text in rows]
            return sorted(found, key=lambda one: -one.score)[:top_k]

    monkeypatch.setattr(Reranker, "take", lambda model, loading: ByLength())
    documents = [Document(text, metadata={"row": row}) for row, text in enumerate(TEXTS)]
    found = BertkitReranker(model="any", top_n=2).compress_documents(documents, "a tire")
    assert [one.metadata["row"] for one in found] == [2, 0]
    assert [one.metadata["relevance_score"] for one in found] == [-17, -25]
    assert "relevance_score" not in documents[0].metadata


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain_core.documents", None)
    monkeypatch.delitem(sys.modules, "bertkit.integrations.langchain")
    with pytest.raises(MissingExtraError, match=r"langchain_core.* is missing\); pip install"):
        import bertkit.integrations.langchain  # noqa: F401
