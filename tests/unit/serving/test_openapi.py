"""The description of the routes is OpenAPI 3.1, complete, and what the server answers."""

import re

import jsonschema
import pytest
from openapi_spec_validator import validate
from tests.unit.serving.small_models import HAS_DECODERS

from bertkit.serving.app import build_app, list_endpoints, list_paths
from bertkit.serving.keys import Keys
from bertkit.serving.openapi import describe_api
from bertkit.serving.routes.answers import JSON, TaskResults


@pytest.fixture(scope="module")
def api(client):
    """The description, as the server gives it."""
    return client.get("/openapi.json").json


def test_the_description_is_valid_and_has_each_route(client, api):
    validate(api)
    routes = build_app(client.server.service, Keys(), Keys()).routes
    described = {(method.upper(), path) for path, one in api["paths"].items() for method in one}
    assert described == {
        (method, re.sub(":[a-z]+}", "}", route.path))
        for route in routes
        for method in route.methods - {"HEAD"}
    }


def test_keys_are_described_where_there_are_any(api):
    secured = [path for path, one in api["paths"].items() if "security" in str(one)]
    assert secured == ["/v1/models/{model}/reload", "/v1/reload"]
    paths = list_paths(list_endpoints())
    described = describe_api(paths, has_keys=True)
    for path, endpoint in paths:
        operation = described["paths"][path][endpoint.method.lower()]
        assert ("security" in operation) == ("401" in operation["responses"]) != endpoint.is_open


REQUESTS = {
    "/v1/embeddings": {"input": ["a", "b"], "model": "encoder"},
    "/embeddings": {"input": "a", "model": "encoder", "encoding_format": "base64"},
    "/v1/models": None,
    "/v1/models/{model}": None,
    "/v1/rerank": {"model": "reranker", "query": "a", "documents": ["b"]},
    "/v2/rerank": {"query": "a", "documents": ["b"], "return_documents": True},
    "/embed": {"inputs": "a"},
    "/embed_all": {"inputs": ["a", "b"]},
    "/predict": {"inputs": [["a"], ["b", "c"]]},
    "/rerank": {"query": "a", "texts": ["b"], "return_text": True},
    "/similarity": {"inputs": {"source_sentence": "a", "sentences": ["b"]}},
    "/tokenize": {"inputs": "a"},
    "/decode": {"ids": [1, 2]},
    "/info": None,
    "/": {"inputs": "a"},
    "/invocations": {"inputs": ["a"]},
    "/openapi.json": None,
    "/v1/reload": {},
    "/v1/models/{model}/reload": {},
    "/v1/models/{model}/tokenize": {"inputs": ["a"], "add_special_tokens": False},
    "/v1/models/{model}/embed": {"inputs": 5},
    "/v1/models/{model}/tag": {"inputs": "a"},
}
if HAS_DECODERS:
    REQUESTS |= {
        "/v1/completions": {"model": "writer", "prompt": "the cat", "max_tokens": 3},
        "/v1/models/{model}/v1/completions": {"prompt": "the cat"},
    }


@pytest.mark.parametrize("path", REQUESTS)
def test_answers_are_as_described(client, api, path):
    body = REQUESTS[path]
    named = path.replace("{model}", "encoder")
    answer = client.get(named) if body is None else client.post(named, body)
    operation = api["paths"][path]["get" if body is None else "post"]
    described = operation["responses"][str(answer.status)]
    content = described["content"][answer.headers["content-type"]]
    jsonschema.validate(answer.json, {**content["schema"], "components": api["components"]})


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"input": []}),
        ("/v1/embeddings", {"input": [[]]}),
        ("/v2/rerank", {"query": "a", "documents": []}),
        ("/embed", {"inputs": []}),
        ("/embed_all", {"inputs": []}),
        ("/predict", {"inputs": []}),
        ("/rerank", {"query": "a", "texts": []}),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": []}}),
        ("/tokenize", {"inputs": []}),
        ("/decode", {"ids": []}),
        ("/decode", {"ids": [[]]}),
        ("/v1/models/sentiment/classify", {"inputs": []}),
        ("/v1/models/chooser/choose", {"inputs": {"context": "a", "choices": []}}),
    ],
)
def test_an_empty_list_is_refused_as_the_description_says(client, api, path, body):
    assert client.post(path, body).status in {400, 422}
    named = re.sub("/models/[a-z]+/", "/models/{model}/", path)
    (content,) = api["paths"][named]["post"]["requestBody"]["content"].values()
    schema = {**content["schema"], "components": api["components"]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, schema)


def test_each_typed_answer_is_tried():
    json = [one for one in list_endpoints() if JSON in one.media_types]
    assert {one.path for one in json if one.answer is not TaskResults} <= REQUESTS.keys()
