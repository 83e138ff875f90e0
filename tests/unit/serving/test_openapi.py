"""The description of the routes is OpenAPI 3.1, complete, and what the server answers.

It names any text as a model and as an input; here are models that do each task, and a request for
each operation that must succeed. Schemathesis asks more, and much that must be refused.
"""

import re

import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from openapi_spec_validator import validate
from schemathesis.checks import ignored_auth, positive_data_acceptance
from tests.unit.serving.running import running

from bertkit.checkpoints.bundled import find_bundled
from bertkit.inference.settings import FillOptions
from bertkit.serving.app import build_app, list_endpoints, list_paths
from bertkit.serving.keys import Keys
from bertkit.serving.openapi import describe_api
from bertkit.tasks.classify import ClassifyAnswers

MOST_UNANSWERED = 6  # what every model is asked that isn't for it
ADMIN_KEY = "of-the-admin"
TEXT, PAIR = "the cat saw a dog", ["the cat", "saw a dog"]
TEXTS = {"inputs": TEXT}
BODIES = {  # that must be answered, by the end of an operation's path
    "answer": {"inputs": {"question": TEXT, "context": "a dog saw the hat"}},
    "completions": {"prompt": TEXT, "max_tokens": 4},
    "choose": {"inputs": {"context": TEXT, "choices": ["a hat", "lost"]}},
    "decode": {"ids": [5, 6, 7]},
    "embeddings": {"input": [TEXT, "lost"]},
    "fill-mask": {"inputs": "the [MASK] saw"},
    "next-sentence": {"inputs": [PAIR]},
    "search": {"query": TEXT, "where": {"page": 1}},
    "documents": {"rows": [{"id": "n/0", "text": TEXT, "page": 0}]},
    "similarity": {"inputs": {"source_sentence": TEXT, "sentences": ["a dog", "lost"]}},
    "v1/rerank": {"query": TEXT, "documents": ["a dog", "lost"]},
    "v2/rerank": {"query": TEXT, "documents": [{"text": "a dog"}], "return_documents": True},
    "/rerank": {"query": TEXT, "texts": ["a dog", "lost"]},
    "": TEXTS,
}
MODELS = {  # which of them do a task, by the end of its path; the encoder does what isn't here
    "answer": "reader",
    "choose": "chooser",
    "classify": "sentiment",
    "completions": "writer",
    "fill-mask": "words",
    "generate": "writer",
    "next-sentence": "words",
    "predict": "sentiment",
    "regress": "reranker",
    "rerank": "reranker",
    "score": "words",
    "summarize": "translator",
    "tag": "entities",
    "translate": "translator",
}


PLACES = {"index": "notes", "document": "n/0"}


def name_path(path, model):
    return re.sub(r"\{(\w+)\}", lambda found: PLACES.get(found[1], model), path)


def find_longest(named, path, usual):
    ends = [end for end in named if path.endswith(end)]
    return named[max(ends, key=len)] if ends else usual


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


@pytest.mark.parametrize(
    ("body", "options"),
    [("FillMask", FillOptions), ("Classify", ClassifyAnswers)],
)
def test_the_options_of_a_task_are_those_of_its_pipeline(api, body, options):
    schemas = api["components"]["schemas"]
    described = schemas[f"{body}Body"]["properties"]["options"]
    name = described["$ref"].rpartition("/")[2]
    assert schemas[name]["properties"].keys() == options.model_fields.keys()


def test_keys_are_described_where_there_are_any(api):
    secured = [path for path, one in api["paths"].items() if "security" in str(one)]
    documents = "/v1/indexes/{index}/documents"
    assert secured == ["/v1/models/{model}/reload", "/v1/reload", documents]
    paths = list_paths(list_endpoints())
    described = describe_api(paths, has_keys=True)
    for path, endpoint in paths:
        operation = described["paths"][path][endpoint.method.lower()]
        assert ("security" in operation) == ("401" in operation["responses"]) != endpoint.is_open


def list_operations():
    """The method, path, model and body of each operation but those that replace models."""
    for path, endpoint in list_paths(list_endpoints()):
        if not endpoint.is_admin:
            model = find_longest(MODELS, path, "encoder")
            body = find_longest(BODIES, path, TEXTS) if endpoint.body else None
            yield endpoint.method, path, model, body


@pytest.mark.parametrize(("method", "path", "model", "body"), list(list_operations()))
def test_answers_are_as_described(client, api, method, path, model, body):
    named = name_path(path, model)
    answer = client.get(named) if body is None else client.post(named, body)
    is_done = not path.endswith("summarize")  # which none of the models does
    assert answer.status == (200 if is_done else 404), answer.content
    described = api["paths"][path][method.lower()]["responses"][str(answer.status)]
    content = described["content"]
    if answer.headers["content-type"] == "application/json":
        schema = content["application/json"]["schema"]
        jsonschema.validate(answer.json, {**schema, "components": api["components"]})
    else:
        assert answer.headers["content-type"].partition(";")[0] in content


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


def describe():
    """The API, with models and requests of the server below."""
    description = describe_api(list_paths(list_endpoints()), has_keys=False)
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            for parameter in operation.get("parameters", ()):
                usual = find_longest(MODELS, path, "encoder")
                parameter["schema"] = {"enum": [PLACES.get(parameter["name"], usual)]}
            if body := operation.get("requestBody"):
                value = (
                    {"ids": ["none"]} if method == "delete" else find_longest(BODIES, path, TEXTS)
                )
                body["content"]["application/json"]["examples"] = {"one": {"value": value}}
    return description


described_api = schemathesis.openapi.from_dict(describe())
answered = set()


@pytest.fixture(scope="module")
def server(models, notes):
    """A server that does all tasks, and may be told to load its models again."""
    named = {"encoder": str(find_bundled("vectors")), "notes": notes, **models}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERTKIT_ADMIN_KEY", ADMIN_KEY)
        with running(named) as client:
            yield client


def build_test(method, path):
    """A test of one operation."""

    @pytest.mark.exhaustive
    @described_api.include(method=method.upper(), path=path).parametrize()
    @settings(max_examples=5, derandomize=True, deadline=None, suppress_health_check=HealthCheck)
    def check_answers(case, server):
        answer = case.call_and_validate(
            base_url=f"http://127.0.0.1:{server.server.port}",
            headers={"authorization": f"Bearer {ADMIN_KEY}"},
            # A text without [MASK] fits the description; keys are held by `test_locks.py`.
            excluded_checks=[positive_data_acceptance, ignored_auth],
        )
        if answer.status_code < 300:
            answered.add(case.operation.label)

    return check_answers


# One function each, since all tests of one function have one name, which xdist runs once.
for named_path, operations in described_api.raw_schema["paths"].items():
    for method in operations:
        globals()[f"test_{method}_{named_path.strip('/')}"] = build_test(method, named_path)


@pytest.mark.exhaustive
def test_most_operations_were_answered():
    labels = {one.ok().label for one in described_api.get_all_operations()}
    assert answered <= labels
    assert len(labels - answered) <= MOST_UNANSWERED, sorted(labels - answered)
