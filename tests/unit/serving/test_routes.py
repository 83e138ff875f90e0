"""Each route gives what the pipeline gives alone, in the form that clients expect."""

import asyncio
from typing import Any

import numpy as np
import pytest
from tests.closeness import assert_close, close
from tests.unit.inference.small_task import LABELS, TAGS, save_answerer, save_model
from tests.unit.serving.running import running
from tests.unit.serving.task_checks import check_task
from tests.waiting import TIMEOUT_SECONDS

from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.features import FeatureExtractor
from bertkit.inference.predictor import Predictor
from bertkit.nn.packed_ids import PackedIds
from bertkit.serving.app import list_endpoints
from bertkit.serving.endpoint import RequestContext
from bertkit.serving.errors import ServingError
from bertkit.serving.sharing.fair_queue import MOST_TOKENS
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.tag import TagSettings
from bertkit.tasks.tag.task import Tag

TEXTS = ["A cat sat.", "The dog saw a hat.", "It was a long day in the old town, and it rained."]


@pytest.fixture(scope="module")
def vectors():
    return Embedder.load(device="cpu")(TEXTS)


def test_vectors_have_length_one_unless_they_should_not(client, vectors):
    raw = client.post("/embed", {"inputs": TEXTS[0], "normalize": False}).json[0]
    assert abs(np.linalg.norm(raw) - 1) > 0.01
    assert_close(raw / np.linalg.norm(raw), vectors[0])


def test_embed_all_gives_a_vector_for_each_token(client, vectors):
    extract = FeatureExtractor.load(device="cpu").with_options(layers=[-1])
    found = client.post("/embed_all", {"inputs": TEXTS}).json
    for rows, text, vector in zip(found, TEXTS, vectors, strict=True):
        assert_close(rows, extract(text).features)
        mean = np.mean(rows, axis=0)
        assert_close(mean / np.linalg.norm(mean), vector)
    assert client.post("/embed_all", {"inputs": ["a"] * 33}).status == 422


def test_the_start_or_the_end_of_a_long_text_is_cut_off(client):
    long = "start " * 300 + "end " * 300
    body = {"inputs": long, "truncation_direction": "Left"}
    (left,) = client.post("/embed_all", body).json
    (expected,) = client.post("/embed_all", {"inputs": "end " * 254}).json
    assert_close(left, expected)
    (right,) = client.post("/embed_all", {"inputs": long}).json
    (expected,) = client.post("/embed_all", {"inputs": "start " * 254}).json
    assert_close(right, expected)
    assert client.post("/embed", {**body, "truncate": False}).status == 422
    refused = client.post("/v1/models/sentiment/predict", body)
    assert refused.status == 422
    assert "truncation_direction" in refused.json["error"]


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/embed", {"inputs": []}, 400, "give at least one"),
        ("/embed", {"inputs": ["a", ""]}, 400, "each needs a word"),
        (
            "/embed",
            {"inputs": "a", "prompt_name": "no"},
            422,
            "no prompt 'no'. Available prompts: [",
        ),
        ("/embed", {"inputs": ["a"] * 1025}, 422, "1,025 inputs"),
        ("/rerank", {"query": "a", "texts": []}, 400, "no texts"),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": []}}, 400, "no sentences"),
        ("/tokenize", {"inputs": []}, 400, "give at least one"),
        ("/decode", {"ids": []}, 400, "give at least one"),
        ("/decode", {"ids": [1] * 70_000}, 422, "more than about 65,536 tokens"),
        ("/similarity", {"inputs": {"source_sentence": "", "sentences": ["a"]}}, 400, "empty"),
        ("/predict", {"inputs": [["a"], ["", ""]]}, 400, "each needs a word"),
        ("/predict", {"inputs": ["a", "b", "c"]}, 422, "inputs"),
    ],
)
def test_refusals_are_those_of_text_embeddings_inference(client, path, body, status, message):
    answer = client.post(path, body)
    assert answer.status == status
    assert answer.json["error_type"] == ("Empty" if status == 400 else "Validation")
    assert message in answer.json["error"]


def test_headers_tell_the_times_and_the_size_of_a_request(client):
    answer = client.post("/embed", {"inputs": TEXTS})
    assert answer.headers["x-compute-characters"] == str(sum(map(len, TEXTS)))
    assert answer.headers["x-compute-tokens"] == str(6 + 8 + 16)
    times = ("x-compute-time", "x-total-time", "x-queue-time", "x-inference-time")
    assert all(int(answer.headers[name]) >= 0 for name in times)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("encoder", {"embedding": {"pooling": "mean"}}),
        ("words", {"fill-mask": {}}),
        (
            "reranker",
            {"reranker": {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}},
        ),
    ],
)
def test_info_describes_a_model(client, name, kind):
    done = client.get("/v1/models/words").json["tasks"]
    assert done == ["fill-mask", "score", "next-sentence"]
    found = client.get(f"/v1/models/{name}/info").json
    assert found["model_type"] == kind
    assert found["model_id"] == found["served_model_name"] == name
    assert (found["sha"], found["docker_label"]) == (None, None)
    assert list(found) == [
        *("model_id", "model_sha", "model_dtype", "served_model_name", "model_type"),
        *("max_concurrent_requests", "max_input_length", "max_batch_tokens", "max_batch_requests"),
        *("max_client_batch_size", "auto_truncate", "tokenization_workers"),
        *("version", "sha", "docker_label"),
    ]


def test_a_models_own_address_does_what_it_is_for(client, vectors):
    assert_close(client.post("/", {"inputs": TEXTS}).json, vectors)
    asked = {"query": "the cat", "texts": ["a dog", "lost"]}
    whole = client.post("/rerank", asked).json
    assert client.post("/v1/models/reranker", asked).json == whole
    predicted = client.post("/v1/models/sentiment/predict", {"inputs": "the cat"}).json
    assert client.post("/v1/models/sentiment/invocations", {"inputs": "the cat"}).json == predicted
    asked = {"inputs": "the cat", "truncate": True}  # as clients of text-embeddings-inference ask
    assert client.post("/v1/models/sentiment", asked).json == predicted
    assert client.post("/v1/models/sentiment", {"inputs": "the cat"}).json == [predicted]
    scored = client.post("/v1/models/reranker", {"inputs": "a dog", "parameters": {}}).json
    assert [one["label"] for one in scored[0]] == ["LABEL_0"]
    (best, *_) = client.post("/v1/models/words", {"inputs": "the [MASK]"}).json
    assert best["sequence"] == f"the {best['token_str'].removeprefix('##')}"
    streamed = client.post("/v1/models/words", {"inputs": "the [MASK]", "stream": True})
    assert streamed.status == 422
    refused = client.post("/v1/models/chooser", {"inputs": "the cat"})
    assert "POST to /v1/models/chooser/choose" in refused.json["error"]


def test_predict_takes_a_text_a_pair_and_several(client, models):
    classify = Predictor.load(models["sentiment"], device="cpu")
    path = "/v1/models/sentiment/predict"
    one = client.post(path, {"inputs": "the cat saw"}).json
    expected = classify("the cat saw").probabilities
    assert {row["label"]: close(row["score"], "float32") for row in one} == expected
    assert [row["score"] for row in one] == sorted(expected.values(), reverse=True)
    pair = client.post(path, {"inputs": ["the cat", "a dog"]}).json
    expected = classify(("the cat", "a dog")).probabilities
    assert {row["label"]: close(row["score"], "float32") for row in pair} == expected
    several = client.post(path, {"inputs": [["the cat saw"], ["the cat", "a dog"]]}).json
    assert [[row["label"] for row in rows] for rows in several] == [
        [row["label"] for row in rows] for rows in (one, pair)
    ]


def test_raw_scores_are_logits(client):
    path, body = "/v1/models/sentiment/predict", {"inputs": "the cat saw"}
    shares = {one["label"]: one["score"] for one in client.post(path, body).json}
    raw = {
        one["label"]: one["score"] for one in client.post(path, body | {"raw_scores": True}).json
    }
    total = sum(np.exp(list(raw.values())))
    assert {label: np.exp(raw[label]) / total for label in raw} == close(shares, "float32")


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
def test_documents_are_returned_if_wanted_and_scores_as_they_are(client, path):
    documents = ["a dog", "the cat saw a hat", "lost"]
    body = {"model": "reranker", "query": "the cat", "documents": documents, "top_n": 2}
    results = client.post(path, body | {"return_documents": True}).json["results"]
    assert [documents.index(one["document"]["text"]) for one in results] == [
        one["index"] for one in results
    ]
    options = {"raw_scores": True, "return_text": True}
    raw = client.post("/rerank", {"query": "the cat", "texts": documents, **options}).json
    assert [documents.index(one["text"]) for one in raw] == [one["index"] for one in raw]
    assert [one["relevance_score"] for one in results] == close(
        [1 / (1 + np.exp(-one["score"])) for one in raw[:2]], "float32"
    )


QUESTION = {"question": "the cat", "context": "a dog saw a hat"}
CHOICES = {"context": "the cat", "choices": ["saw", "sat"]}


@pytest.mark.parametrize(
    ("path", "one"),
    [
        ("words/score", "the cat"),
        ("words/next-sentence", ["the cat", "a dog"]),
        ("sentiment/classify", "the cat"),
        ("sentiment/classify", ["the cat", "a dog"]),
        ("reranker/regress", ["the cat", "a dog"]),
        ("entities/tag", "the cat saw a dog"),
        ("entities/tag", ["the", "cat"]),
        ("reader/answer", QUESTION),
        ("reader/answer", ["the cat", "a dog saw a hat"]),
        ("chooser/choose", CHOICES),
    ],
)
def test_each_task_gives_its_pipelines_result(client, path, one):
    check_task(client, path, one)


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("words/fill-mask", {"inputs": "the cat"}, "no [MASK]"),
        ("words/fill-mask", {"inputs": 3}, "inputs must be text"),
        ("words/fill-mask", {"inputs": []}, "inputs"),
        (
            "words/fill-mask",
            {"inputs": "a [MASK]", "options": {"k": 2}},
            "no setting k; it has top_k",
        ),
        ("words/fill-mask", {"inputs": "a [MASK]", "options": {"top_k": 0}}, "top_k"),
        ("words/fill-mask", {"inputs": "a [MASK]", "options": {"top_k": "2"}}, "options.top_k"),
        ("words/fill-mask", {"inputs": "a [MASK]", "top_k": 2}, "top_k"),
        ("words/next-sentence", {"inputs": [["the cat"]]}, "inputs"),
        ("words/classify", {"inputs": "the cat"}, "no model here does classify"),
        ("sentiment/classify", {"inputs": "a", "options": {"raw": True}}, "has no setting raw"),
        ("sentiment/classify", {"inputs": [["a", "b", "c"]]}, "inputs"),
        ("reader/answer", {"inputs": {"question": "the cat"}}, "context"),
        ("chooser/choose", {"inputs": {"context": "a", "choices": ["b"]}}, "choices"),
        (
            "words/fill-mask",
            {"inputs": "a [MASK] " * 100, "options": {"top_k": 9}},
            "has 202 tokens",
        ),
        (
            "words/fill-mask",
            {"inputs": ["[MASK]"] * 1001, "options": {"top_k": 100}},
            "100,100 words in all",
        ),
        ("single/classify", {"inputs": [["the cat", "a dog"]]}, "takes single texts"),
        (
            "entities/tag",
            {"inputs": ["a dog", "a cat " * 3000], "options": {"explain": True}},
            "explains texts of up to about 1,000 tokens",
        ),
        ("chooser/choose", {"inputs": CHOICES, "options": {"explain": True}}, "no setting explain"),
    ],
)
def test_what_a_task_does_not_take_is_refused(client, path, body, message):
    answer = client.post(f"/v1/models/{path}", body)
    assert answer.status in {400, 404}
    assert message in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("sentiment/classify", "the cat saw a dog."),
        ("sentiment/classify", ["the cat", "a dog"]),
        ("reranker/regress", ["the cat", "a dog"]),
        ("entities/tag", "a cat saw the dogs"),
        ("reader/answer", {"question": "the cat", "context": "a dog saw the hat"}),
    ],
)
def test_the_words_that_decided_are_given_if_they_are_asked_for(client, path, value):
    body = {"inputs": [value], "options": {"explain": True}}
    answer = client.post(f"/v1/models/{path}", body).json
    ((one, *_),) = [found["explanations"] for found in answer["results"]]
    texts = [value] if isinstance(value, str) else list(value)
    texts = list(value.values()) if isinstance(value, dict) else texts
    assert [word["text"] for word in one["words"]] == " ".join(texts).replace(".", "").split()
    assert any(word["weight"] for word in one["words"])
    usual = client.post(f"/v1/models/{path}", {"inputs": [value]}).json
    assert usual["usage"] == answer["usage"]
    assert "explanations" not in usual["results"][0]


@pytest.mark.parametrize(
    ("name", "path", "body"),
    [
        ("encoder", "/embed", {"inputs": "A cat."}),
        ("words", "/fill-mask", {"inputs": "the [MASK]"}),
        ("words", "/next-sentence", {"inputs": [["the cat", "a dog"]]}),
    ],
)
def test_numbers_that_are_not_finite_are_an_error(client, monkeypatch, name, path, body):
    engine = type(client.server.service.models[name].loaded.usual[1].engine)
    compute = engine.compute

    def spoil(*given: Any, **more: Any) -> Any:
        return [states * np.nan for states in compute(*given, **more)]

    monkeypatch.setattr(engine, "compute", spoil)
    answer = client.post(f"/v1/models/{name}{path}", body)
    assert answer.status == 424
    assert "the model failed" in str(answer.json["error"])


def test_a_request_that_is_refused_before_it_waits_ends_quietly(client, caplog):
    answer = client.post("/v1/models/words/score", {"inputs": "the " * MOST_TOKENS * 2})
    assert answer.status == 400
    assert "shorten or divide it" in answer.json["error"]["message"]
    assert client.get("/health").status == 200  # the request before has ended
    assert "Traceback" not in caplog.text


def test_a_long_text_is_refused_only_if_it_is_read_to_its_end(tmp_path):
    folders = {
        "classify": save_model(
            tmp_path / "windows",
            Classify(ClassifySettings(max_length=16, long_texts="windows"), LABELS),
        ),
        "tag": save_model(
            tmp_path / "beginning", Tag(TagSettings(max_length=16, long_texts="truncate"), TAGS)
        ),
        "answer": save_answerer(tmp_path / "whole"),
    }
    text = "the " * MOST_TOKENS
    with running(folders) as client:
        for task, one, tokens in (("tag", text, 16), ("classify", text, 32 * 16)):
            answer = client.post(f"/v1/models/{task}/{task}", {"inputs": one})
            assert answer.json["usage"]["total_tokens"] == tokens
            pipelines = client.server.service.models[task].loaded.pipelines
            assert pipelines[task].most_tokens == tokens  # what it costs, at most
        answer = client.post("/v1/models/answer/answer", {"inputs": {**QUESTION, "context": text}})
        assert answer.status == 400
        assert "shorten or divide it" in answer.json["error"]["message"]


def test_paths_are_unique():
    paths = [(one.method, one.path) for one in list_endpoints()]
    assert len(paths) == len(set(paths))


def test_tokens_have_their_bytes(client):
    answer = client.post("/v1/models/encoder/tokenize", {"inputs": "Über café!"})
    (tokens,) = answer.json
    assert [one["text"] for one in tokens] == ["[CLS]", "Über", "café", "!", "[SEP]"]
    assert [one["special"] for one in tokens] == [True, False, False, False, True]
    assert [(one["start"], one["stop"]) for one in tokens[1:-1]] == [(0, 5), (6, 11), (11, 12)]
    ids = [one["id"] for one in tokens]
    path = "/v1/models/encoder/decode"
    assert client.post(path, {"ids": ids}).json == ["uber cafe!"]
    whole = client.post(path, {"ids": [ids], "skip_special_tokens": False}).json
    assert whole == ["[CLS] uber cafe! [SEP]"]
    bare = {"inputs": ["Über café!"], "add_special_tokens": False}
    assert client.post("/v1/models/encoder/tokenize", bare).json == [tokens[1:-1]]


def test_token_ids_that_no_text_has_are_embedded_as_they_are(client):
    embedder = Embedder.load(device="cpu")
    tokenizer = embedder.text_encoder.tokenizer
    inner = ["##ing", "[UNK]", "rain", "[SEP]", "[MASK]", "##s"]
    ids = [tokenizer.token_to_id(token) for token in ("[CLS]", *inner, "[SEP]")]
    (states,) = embedder.engine(PackedIds.from_single([ids]))
    mean = states.mean(axis=0)
    expected = mean / np.linalg.norm(mean)
    data = client.post("/v1/embeddings", {"input": [ids], "model": "encoder"}).json["data"]
    assert_close(data[0]["embedding"], expected)
    assert_close(client.post("/embed", {"inputs": ids}).json[0], expected)
    (rows,) = client.post("/embed_all", {"inputs": ids}).json
    assert_close(rows, states)
    unknown = client.post("/embed", {"inputs": ["rain \N{UMBRELLA}", [*ids[:1], ids[3], 100, 102]]})
    assert_close(*unknown.json, "float32")


def test_errors_of_the_hubs_routes_repeat_no_texts(client):
    body = {"inputs": ["ok", {"password": "hunter2"}]}
    for path in ("/", "/invocations", "/v1/models/words"):
        answer = client.post(path, body)
        assert answer.status == 422
        assert b"hunter2" not in answer.content


def test_a_request_has_one_time_for_all_that_it_asks(client):
    service = client.server.service
    call = RequestContext(service, "a", "/", "1", begun=-1e9, model="words")  # long ago
    loop = service.models["words"].worker.loop
    with pytest.raises(ServingError, match="took longer than"):
        asyncio.run_coroutine_threadsafe(call.run(len, ["text"]), loop).result(TIMEOUT_SECONDS)
