"""Clients that people have speak to the server as to the one that they were written for."""

import base64

import cohere
import httpx
import numpy as np
import openai
import pytest
from cohere.core.request_options import RequestOptions
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError
from tests.closeness import assert_close, close
from tests.e2e.serving.clients import KEY, ask_as_node, ask_hub

from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.predictor import Predictor
from bertkit.serving.errors import Reason
from bertkit.serving.sharing.worker import Worker

TEXTS = ["A cat sat.", "The dog saw a hat."]


@pytest.fixture(scope="module")
def vectors():
    return Embedder.load(device="cpu")(TEXTS)


def embed_with_openai(client, given, **options):
    answer = client.embeddings.create(model="org/encoder", input=given, **options)
    return np.array([one.embedding for one in answer.data])


def test_openai_embeds_texts_in_all_forms(openai_client, vectors):
    assert_close(embed_with_openai(openai_client, TEXTS), vectors)
    assert_close(embed_with_openai(openai_client, TEXTS[0]), vectors[:1])
    floats = embed_with_openai(openai_client, TEXTS, encoding_format="float")
    assert_close(floats, vectors)
    answer = openai_client.embeddings.create(
        model="org/encoder", input=TEXTS, encoding_format="base64"
    )
    (first, _) = (base64.b64decode(one.embedding) for one in answer.data)
    assert_close(np.frombuffer(first, "<f4"), vectors[0])
    assert answer.usage.total_tokens == 6 + 8
    short = embed_with_openai(openai_client, TEXTS, dimensions=5)
    expected = vectors[:, :5] / np.linalg.norm(vectors[:, :5], axis=1, keepdims=True)
    assert_close(short, expected)


def test_openai_embeds_token_ids(openai_client, vectors):
    tokenizer = Embedder.load(device="cpu").text_encoder.tokenizer
    ids = [tokenizer.encode(text).ids for text in TEXTS]
    assert_close(embed_with_openai(openai_client, ids), vectors)
    assert_close(embed_with_openai(openai_client, ids[0]), vectors[:1])
    foreign = [[15339, 1917], [65]]  # what LangChain makes of "hello world" and "b"
    with pytest.raises(openai.BadRequestError, match="check_embedding_ctx_length=False"):
        embed_with_openai(openai_client, foreign)


def test_openai_lists_models(openai_client, models):
    assert [one.id for one in openai_client.models.list()] == ["org/encoder", *models]
    found = openai_client.models.retrieve("org/encoder")
    assert (found.id, found.object, found.owned_by) == ("org/encoder", "model", "bertkit")


def test_openai_raises_the_class_of_each_error(openai_client, server):
    with pytest.raises(openai.NotFoundError, match="there is no model 'org/other'"):
        openai_client.models.retrieve("org/other")
    with pytest.raises(openai.BadRequestError, match="the input is empty"):
        embed_with_openai(openai_client, [])
    with pytest.raises(openai.BadRequestError, match="dimensions is 385"):
        embed_with_openai(openai_client, TEXTS, dimensions=385)
    with (
        openai.OpenAI(base_url=f"{server}/v1", api_key="other", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError, match="wants one of its keys"),
    ):
        stranger.models.list()


def test_openai_comes_again_when_it_is_told_to(server, monkeypatch):
    refusals = [Reason.OVERLOAD.error("too many requests wait", 1)] * 2

    def refuse(*_):
        if refusals:
            raise refusals.pop()

    monkeypatch.setattr(Worker, "check", refuse)
    with openai.OpenAI(base_url=f"{server}/v1", api_key=KEY, max_retries=1) as client:
        patient = client.with_options(max_retries=0)
        with pytest.raises(openai.RateLimitError, match="too many requests wait") as refused:
            embed_with_openai(patient, TEXTS)
        assert refused.value.response.headers["retry-after"] == "1"
        assert embed_with_openai(client, TEXTS).shape == (2, 384)
    assert not refusals


def test_an_empty_text_has_a_vector(openai_client):
    # LangChain asks for it to fill gaps.
    assert embed_with_openai(openai_client, "").shape == (1, 384)


def test_the_hubs_client_embeds_and_compares(server, vectors):
    for client in (ask_hub(server, "org/encoder"), InferenceClient(server, token=KEY)):
        found = client.feature_extraction(TEXTS, normalize=True, truncate=True)
        assert_close(found, vectors)
        found = client.sentence_similarity(TEXTS[0], other_sentences=TEXTS)
        assert_close(found, vectors @ vectors[0])


def test_the_hubs_client_classifies(server, models):
    client = ask_hub(server, "sentiment")
    expected = Predictor.load(models["sentiment"], device="cpu")("the cat saw").probabilities
    found = client.text_classification("the cat saw")
    assert {one.label: close(one.score, "float32") for one in found} == expected
    (best,) = client.text_classification("the cat saw", top_k=1, function_to_apply="softmax")
    assert best.label == max(expected, key=expected.__getitem__)
    raw = client.text_classification("the cat saw", function_to_apply="none")
    assert sum(one.score for one in raw) != close(1, within=1e-3)
    with pytest.raises(HfHubHTTPError, match="takes softmax or none"):
        client.text_classification("the cat saw", function_to_apply="sigmoid")


def test_the_hubs_client_finds_entities(server, models):
    client, text = ask_hub(server, "entities"), "the cat saw a dog , the hat"
    expected = Predictor.load(models["entities"], device="cpu")(text)
    found = client.token_classification(text, aggregation_strategy="simple")
    assert [(one.entity_group, one.word, one.start, one.end) for one in found] == [
        (one.type, one.text, one.start, one.stop) for one in expected.entities
    ]
    words = client.token_classification(text, aggregation_strategy="none", ignore_labels=[])
    assert [(one.entity, one.word) for one in words] == [
        (one.tag, one.text) for one in expected.words
    ]
    with pytest.raises(HfHubHTTPError, match="stride"):
        client.token_classification(text, stride=4)


def test_the_hubs_client_answers_questions(server, models):
    client = ask_hub(server, "reader")
    expected = Predictor.load(models["reader"], device="cpu")(("the cat", "a dog saw a hat"))
    found = client.question_answering("the cat", "a dog saw a hat")
    assert (found.answer, found.start, found.end) == (expected.text, expected.start, expected.stop)
    assert found.score == close(expected.probability, "float32")
    several = client.question_answering("the cat", "a dog saw a hat", top_k=2)
    assert [one.answer for one in several] == [one.text for one in expected.n_best[:2]]
    with pytest.raises(HfHubHTTPError, match="max_answer_len"):
        client.question_answering("the cat", "a dog", max_answer_len=3)


def test_the_hubs_client_fills_blanks(server, models):
    client = ask_hub(server, "words")
    fill = FillMask.load(models["words"], device="cpu")
    (expected,) = fill("the [MASK] saw", top_k=2).blanks
    found = client.fill_mask("the [MASK] saw", top_k=2)
    assert [(one.token, one.token_str) for one in found] == [
        (one.token_id, one.token) for one in expected
    ]
    assert found[0].sequence == fill("the [MASK] saw").filled
    (one,) = client.fill_mask("the [MASK] saw", targets=["cat"])
    assert (one.token_str, one.sequence) == ("cat", "the cat saw")
    first, second = client.fill_mask("the [MASK] [MASK] saw", top_k=1)
    assert first[0]["sequence"] == f"the {first[0]['token_str'].removeprefix('##')} [MASK] saw"
    assert second[0]["sequence"] == f"the [MASK] {second[0]['token_str'].removeprefix('##')} saw"
    with pytest.raises(HfHubHTTPError, match=r"no \[MASK\]"):
        client.fill_mask("the cat saw")


def test_the_hubs_client_for_node_gets_the_forms_that_it_checks(server):
    path = "/v1/models/"
    (labels,) = ask_as_node(server, path + "sentiment", {"inputs": "the cat saw"})
    assert {"label", "score"} == labels[0].keys()
    pair = {"inputs": {"text": "the cat", "text_pair": "a dog"}}
    (found,) = ask_as_node(server, path + "sentiment", pair)
    (expected, other) = ask_as_node(
        server, path + "sentiment", {"inputs": [["the cat", "a dog"], "the cat"]}
    )
    assert found == close(expected, "float32")
    assert found != close(other, "float32")
    tags = ask_as_node(server, path + "entities", {"inputs": "the cat saw a dog"})
    assert all({"entity_group", "word", "score", "start", "end"} == one.keys() for one in tags)


@pytest.mark.parametrize("strategy", ["average", "max"])
def test_the_hubs_client_is_told_that_words_are_tagged_by_their_first_token(server, strategy):
    with pytest.raises(HfHubHTTPError, match=f"{strategy} isn't supported"):
        ask_hub(server, "entities").token_classification("a", aggregation_strategy=strategy)


def test_the_hubs_client_shows_errors(server):
    with pytest.raises(HfHubHTTPError, match="there is no model 'none'"):
        ask_hub(server, "none").fill_mask("the [MASK]")
    with pytest.raises(HfHubHTTPError, match="targets"):
        ask_hub(server, "words").fill_mask("the [MASK]", targets=[])


@pytest.mark.parametrize("kind", [cohere.Client, cohere.ClientV2])
def test_cohere_orders_documents(server, models, kind):
    score = Predictor.load(models["reranker"], device="cpu")
    documents = ["a dog", "the cat saw a hat", "lost"]
    asked = {"model": "reranker", "query": "the cat", "documents": documents}
    values = [score(("the cat", one)).value for one in documents]
    order = sorted(range(3), key=lambda index: -values[index])
    expected = [1 / (1 + np.exp(-values[index])) for index in order[:2]]
    with httpx.Client() as connection:
        client = kind(api_key=KEY, base_url=server, httpx_client=connection)
        found = client.rerank(**asked, top_n=2).results
        with pytest.raises(cohere.NotFoundError) as refused:
            client.rerank(
                **{**asked, "model": "none"}, request_options=RequestOptions(max_retries=0)
            )
    assert [one.index for one in found] == order[:2]
    assert [one.relevance_score for one in found] == close(expected, "float32")
    assert "there is no model 'none'" in refused.value.body["message"]


def ask(server, path, body, authorization=f"Bearer {KEY}"):
    """The answer to a body of LangChain's or LlamaIndex's, neither of which is imported here."""
    return httpx.post(f"{server}{path}", json=body, headers={"authorization": authorization})


def test_bodies_of_langchains_rerankers_for_cohere_and_jina_are_taken(server):
    asked = {"query": "the cat", "documents": ["a dog", "lost"], "model": "reranker"}
    cohere_body = {**asked, "top_n": 1, "max_tokens_per_doc": None}
    assert len(ask(server, "/v2/rerank", cohere_body).json()["results"]) == 1
    jina = ask(server, "/v1/rerank", {**asked, "top_n": None}).json()
    assert {one["index"] for one in jina["results"]} == {0, 1}
    refused = ask(server, "/v1/rerank", {**asked, "model": "org/encoder"})
    assert "no model here does rerank or regress" in refused.json()["detail"]


def test_bodies_of_llamaindexs_reranker_are_taken_with_a_bare_key(server):
    texts = ["a dog", "lost", "a dog"]
    found = ask(server, "/rerank", {"query": "the cat", "texts": texts}, KEY).json()
    assert len(found) == len(texts)
    places = [one["index"] for one in found]
    assert places.index(0) + 1 == places.index(2)  # of equal scores the first comes first
    assert ask(server, "/rerank", {"query": "the", "texts": texts}, "other").status_code == 401
    embedded = ask(server, "/embed", {"inputs": TEXTS, "truncate": True}).json()
    assert np.shape(embedded) == (2, 384)
