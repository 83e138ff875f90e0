"""Haystack's own tests of document stores, and what they leave open."""

import pytest

pytest.importorskip("haystack")

from haystack import Document, Pipeline
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.errors import FilterError
from haystack.testing.document_store import DocumentStoreBaseTests

from bertkit.base.errors import InputError
from bertkit.integrations import haystack
from bertkit.integrations.haystack import BertkitDocumentStore, BertkitHybridRetriever, write_filter


class TestDocumentStore(DocumentStoreBaseTests):
    @pytest.fixture
    def document_store(self):
        return BertkitDocumentStore()

    @staticmethod
    def assert_documents_are_equal(received, expected):
        """An index computes its vectors itself, and keeps none that a document brings along."""
        assert received == [Document(id=e.id, content=e.content, meta=e.meta) for e in expected]

    def test_write_documents(self, document_store):
        """What Haystack leaves to a store: an id that exists is an error."""
        assert document_store.write_documents([Document(id="1", content="test doc")]) == 1
        with pytest.raises(DuplicateDocumentError, match="has a document with the id 1"):
            document_store.write_documents([Document(id="1", content="another")])


def test_a_document_without_a_text_is_refused():
    with pytest.raises(InputError, match="each with a text"):
        BertkitDocumentStore().write_documents([Document(meta={"a": 1})])


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (("meta.a b", "==", "it's"), "\"a b\" = 'it''s'"),
        (("meta.a", "!=", True), "\"a\" != 'true'"),
        (("meta.a", "not in", [1, None]), 'not ("a" = 1 or not "a" like \'%\')'),
        (("meta.a", ">=", "2024-05-31"), "\"a\" >= '2024-05-31'"),
    ],
)
def test_a_filter_of_haystack_is_one_of_bertkit(given, written):
    condition = dict(zip(("field", "operator", "value"), given, strict=True))
    assert write_filter(condition) == written
    assert write_filter({"operator": "NOT", "conditions": [condition]}) == f"not ({written})"


@pytest.mark.parametrize(
    "given", [("a", "~", "b"), ("a", "in", []), ("a", "==", {}), ("a", "<", True), ("a", "", 1)]
)
def test_what_is_no_comparison_is_refused(given):
    with pytest.raises(FilterError):
        write_filter(dict(zip(("field", "operator", "value"), given, strict=True)))
    with pytest.raises(FilterError, match="XOR"):
        write_filter({"operator": "XOR", "conditions": []})


def test_a_pipeline_with_an_index_is_saved_and_loaded(tmp_path):
    store = BertkitDocumentStore(str(tmp_path / "notes.bertkit"), normalize=True)
    assert store.count_documents() == 0
    texts = {"en": "Take the wheel off.", "de": "Das Rad abnehmen."}
    store.write_documents([Document(content=texts[lang], meta={"lang": lang}) for lang in texts])
    pipeline = Pipeline()
    chosen = {"field": "meta.lang", "operator": "==", "value": "de"}
    retriever = BertkitHybridRetriever(store, chosen, top_k=1, options={"by": "vectors"})
    pipeline.add_component("retriever", retriever)
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=[haystack.__name__])
    for more, lang in ({}, "de"), ({"filters": {**chosen, "value": "en"}}, "en"):
        asked = {"retriever": {"query": "a wheel", **more}}
        (found,) = loaded.run(asked)["retriever"]["documents"]
        assert (found.content, found.meta) == (texts[lang], {"lang": lang})
        assert found.score is not None
