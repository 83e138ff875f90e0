"""Routes of indexes: search, and adding and deleting while others search."""

import gc
import http.client
import json
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from tests.closeness import close
from tests.hostile.serving.raw_http import wait_until
from tests.unit.serving.conftest import TEXTS
from tests.unit.serving.running import running
from tests.waiting import TIMEOUT_SECONDS

from bertkit.base.errors import BertkitError
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.retrieval.index import BATCH_DOCUMENTS, Index
from bertkit.serving.endpoint import JSON

ADMIN = {"authorization": "Bearer of-the-admin"}
ROW = {"id": "1", "text": "A cat sat.", "lang": "en"}
SEARCH, DOCUMENTS = "/v1/indexes/notes/search", "/v1/indexes/notes/documents"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of an index, whose file others may change, and which it lets the tests change."""
    path = tmp_path_factory.mktemp("served") / "notes.bertkit"
    with Index(path) as index:
        index.add([ROW], id="id", text="text")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERTKIT_ADMIN_KEY", "of-the-admin")
        with running({"notes": str(path)}, max_batch_tokens=2048) as client:
            yield client, path


@pytest.fixture
def written(server):
    """The server and its file, with one document in the index."""
    client, path = server
    yield client, path
    assert delete(client, ids=find_ids(client)).status == 200
    assert add(client, ROW).status == 200


def find_ids(client, **body):
    answer = client.post(SEARCH, {"query": "a kitten", "top_k": 100, **body})
    assert answer.status == 200, answer.content
    return [hit["id"] for hit in answer.json["results"]]


def add(client, *rows):
    return client.post(DOCUMENTS, {"rows": [*rows]}, **ADMIN)


def delete(client, **body):
    return client.send("DELETE", DOCUMENTS, body, **ADMIN)


def test_passages_are_found_as_by_the_index_itself(client, notes):
    queries = ["a kitten", "the weather was wet"]
    with Index(notes) as index:
        expected = index.search(queries, top_k=2)
    answer = client.post(SEARCH, {"query": queries, "top_k": 2}).json
    assert (answer["model"], answer["usage"]["total_tokens"] > 0) == ("notes", True)
    for hits, others in zip(answer["results"], expected, strict=True):
        assert [(hit["id"], hit["text"], hit["fields"]) for hit in hits] == [
            (hit.id, hit.text, hit.fields) for hit in others
        ]
        assert [hit["score"] for hit in hits] == close([hit.score for hit in others], "float32")
    one = client.post(SEARCH, {"query": queries[0], "top_k": 2}).json["results"]
    assert [hit["id"] for hit in one] == [hit.id for hit in expected[0]]


def test_a_refused_write_changes_nothing_and_an_empty_text_deletes(written):
    client, _ = written
    refused = add(client, {"id": "m1", "text": "x" * 300_000}, {"id": "m1", "text": "again"})
    assert refused.status == 400
    assert find_ids(client) == ["1"]
    answer = add(client, {"id": "1", "text": ""}, {"text": "a badger digs"})
    assert (answer.json["deleted"], answer.json["added"]) == (1, 1)
    (made,) = find_ids(client)
    assert len(made) == 16


def test_a_search_has_filters_and_a_way(client):
    assert find_ids(client, where={"page": 1}) == find_ids(client, where="page = 1") == ["n/1"]
    (hit,) = client.post(SEARCH, {"query": "DOG!", "by": "words"}).json["results"]
    assert (hit["id"], hit["vector"]) == ("n/2", None)
    assert len(find_ids(client, by="vectors", by_document=True)) == len(TEXTS)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"query": " "}, "query"),
        ({"query": []}, "query"),
        ({"query": "a", "top_k": 0}, "top_k"),
        ({"query": "a", "top_k": 1001}, "top_k"),
        ({"query": "a", "by": "luck"}, "by"),
        ({"query": "a", "rerank": "/models/any"}, "rerank"),
        ({"query": "a", "where": "page = "}, "column"),
        ({"query": "a", "where": {"color": "red"}}, "page"),
        ({"query": ["a"] * 11, "top_k": 1000}, "11,000 texts in all, and 10,000 is the limit"),
    ],
)
def test_a_search_that_has_no_meaning_is_refused(client, body, problem):
    answer = client.post(SEARCH, body)
    assert answer.status == 400
    assert problem in answer.json["error"]["message"]


def test_an_index_has_names_of_its_own(client):
    ((name, info),) = client.get("/v1/indexes").json.items()
    assert (name, info["documents"], info["dimension"]) == ("notes", len(TEXTS), 384)
    assert info["fields"] == {"page": len(TEXTS)}
    found = client.get(f"{DOCUMENTS}/n/0").json
    assert (found["fields"], found["passages"][0]["text"]) == ({"page": 0}, TEXTS[0])
    assert client.get(f"{DOCUMENTS}/n/7").json["error"]["code"] == "UnknownDocument"
    for name in ("encoder", "other"):
        answer = client.post(f"/v1/indexes/{name}/search", {"query": "a"})
        assert (answer.status, name in str(answer.json)) == (404, True)


def test_texts_are_embedded_by_the_model_of_an_index(client):
    body = {"input": "A cat.", "model": "notes"}
    found = client.post("/v1/embeddings", body).json["data"][0]["embedding"]
    assert found == close(Embedder.load(device="cpu")("A cat."), "float32")


def test_the_next_search_finds_what_was_added_and_not_what_was_deleted(written):
    client, path = written
    added = add(client, {"id": "2", "text": "A kitten slept.", "lang": "de", "year": 2020})
    assert (added.status, added.json["added"], added.json["embedded"]) == (200, 1, 1)
    assert find_ids(client) == ["2", "1"]
    assert add(client, {"id": "1", "text": "Rain fell."}).json["replaced"] == 1
    with Index(path) as index:  # of another program
        index.add(["Snow fell."])
        assert len(index) == len(find_ids(client)) == 3
        assert delete(client, where="lang = 'de'").json == {"deleted": 1}
        assert index.get("2") is None
    assert delete(client, ids=["1", "9"]).json == {"deleted": 1}
    assert len(find_ids(client)) == 1


def test_whoever_runs_the_server_changes_its_indexes(written, client):
    locked, _ = written
    row = {"rows": [{"text": "Snow."}]}
    assert locked.post(DOCUMENTS, row).status == 401
    assert locked.send("DELETE", DOCUMENTS, {"where": "a = 1"}).status == 401
    assert client.post(DOCUMENTS, row, **ADMIN).status == 403  # it has no such key
    assert find_ids(locked) == ["1"]


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("POST", {"rows": []}),
        ("POST", {"rows": [{"id": "1"}]}),
        ("POST", {"rows": [{"text": 1}]}),
        ("POST", {"rows": [{"id": "1", "text": "a"}, {"id": "1", "text": "b"}]}),
        ("POST", {"rows": [{"text": "a"}] * (BATCH_DOCUMENTS + 1)}),
        ("DELETE", {}),
        ("DELETE", {"ids": ["1"], "where": "a = 1"}),
        ("DELETE", {"where": "a ="}),
    ],
)
def test_a_change_that_has_no_meaning_is_refused(written, method, body):
    client, _ = written
    assert client.send(method, DOCUMENTS, body, **ADMIN).status == 400
    assert find_ids(client) == ["1"]


def test_two_clients_that_write_at_once_both_do(written):
    client, path = written

    def write(first):
        return [
            add(client, {"id": str(n), "text": f"Cat number {n}."}).status
            for n in range(first, first + 5)
        ]

    with ThreadPoolExecutor() as pool:
        assert [*pool.map(write, (10, 20))] == [[200] * 5] * 2
    with Index(path) as index:
        assert len(index) == 11


@pytest.fixture
def gate(monkeypatch):
    """Two events: several texts at once are embedded, and their embedding may go on."""
    compute, events = Embedder.compute_vectors, (threading.Event(), threading.Event())

    def compute_when_told(self, encoded):
        if encoded.num_texts > 1 and not events[0].is_set():
            events[0].set()
            assert events[1].wait(TIMEOUT_SECONDS)
        return compute(self, encoded)

    monkeypatch.setattr(Embedder, "compute_vectors", compute_when_told)
    return events


def test_searches_pass_a_long_change(written, gate):
    client, _ = written
    is_embedding, may_go_on = gate
    rows = [{"id": str(n), "text": f"cat {n} " + "sat " * 99} for n in range(50)]
    with ThreadPoolExecutor() as pool:
        adding = pool.submit(add, client, *rows)
        assert is_embedding.wait(TIMEOUT_SECONDS)
        searching = pool.submit(find_ids, client)
        wait_until(lambda: client.server.service.models["notes"].worker.num_requests == 2)
        may_go_on.set()
        assert searching.result() == ["1"]  # before the change is whole
        assert adding.result().json["embedded"] == len(rows)


def test_a_change_goes_on_without_its_client_and_the_next_waits_for_it(written, gate):
    client, _ = written
    is_embedding, may_go_on = gate
    leaving = http.client.HTTPConnection("127.0.0.1", client.server.port, TIMEOUT_SECONDS)
    with closing(leaving), ThreadPoolExecutor() as pool:
        rows = {"rows": [{"id": "2", "text": "A dog."}, {"id": "3", "text": "A hat."}]}
        leaving.request("POST", DOCUMENTS, json.dumps(rows), {"content-type": JSON, **ADMIN})
        assert is_embedding.wait(TIMEOUT_SECONDS)
        leaving.close()
        adding = pool.submit(add, client, {"id": "4", "text": "A fox."})
        wait_until(lambda: b'err="dropped"' in client.get("/metrics").content)
        may_go_on.set()
        assert adding.result().json["added"] == 1
    assert sorted(find_ids(client)) == ["1", "2", "3", "4"]


def test_a_change_that_fails_changes_nothing(written, monkeypatch, caplog):
    client, path = written

    def fail(self, encoded):
        raise RuntimeError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(Embedder, "compute_vectors", fail)
        assert add(client, {"id": "2", "text": "A dog."}).status == 424
    assert find_ids(client) == ["1"]
    assert str(path) not in caplog.text


def test_an_index_is_opened_again_with_its_model(written):
    client, _ = written
    model = client.server.service.models["notes"]
    before = weakref.ref(model.loaded.pipelines["search"].served)
    assert client.post("/v1/models/notes/reload", {}, **ADMIN).json == {"loaded": ["notes"]}
    assert find_ids(client) == ["1"]
    assert add(client, {"id": "2", "text": "A dog."}).status == 200
    gc.collect()
    assert before() is None


@pytest.mark.parametrize("content", [None, b"SQLite format 3\0", b"a text"])
def test_only_the_file_of_an_index_is_served(tmp_path, content):
    path = tmp_path / "notes.bertkit"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BertkitError, match=path.name), running({"notes": str(path)}):
        pass
    assert path.exists() == (content is not None)
