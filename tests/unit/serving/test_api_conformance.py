"""Schemathesis asks what the OpenAPI page describes: each answer must be as the page says.

The page names any text as a model and as an input; here it names models that do the task, and has a
request for each operation that must succeed.
"""

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import ignored_auth, positive_data_acceptance
from tests.unit.serving.running import running

from bertkit.checkpoints.bundled import find_bundled
from bertkit.serving.app import list_endpoints, list_paths
from bertkit.serving.openapi import describe_api

pytestmark = pytest.mark.exhaustive  # `test_openapi.py` has a request of each typed route
MOST_UNANSWERED = 6  # what every model is asked that isn't for it
ADMIN_KEY = "of-the-admin"
TEXT, PAIR = "the cat saw a dog", ["the cat", "saw a dog"]
TEXTS = {"inputs": TEXT}
BODIES = {  # by the end of an operation's path
    "answer": {"inputs": {"question": TEXT, "context": "a dog saw the hat"}},
    "completions": {"prompt": TEXT, "max_tokens": 4},
    "choose": {"inputs": {"context": TEXT, "choices": ["a hat", "lost"]}},
    "decode": {"ids": [5, 6, 7]},
    "embeddings": {"input": [TEXT, "lost"]},
    "fill-mask": {"inputs": "the [MASK] saw"},
    "next-sentence": {"inputs": [PAIR]},
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


def describe():
    """The API, with models and requests of the server below."""
    description = describe_api(list_paths(list_endpoints()), has_keys=False)
    for path, operations in description["paths"].items():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = {"enum": [find_longest(MODELS, path, "encoder")]}
            if body := operation.get("requestBody"):
                content = body["content"]["application/json"]
                content["examples"] = {"one": {"value": find_longest(BODIES, path, TEXTS)}}
    return description


def find_longest(named, path, usual):
    ends = [end for end in named if path.endswith(end)]
    return named[max(ends, key=len)] if ends else usual


api = schemathesis.openapi.from_dict(describe())
answered = set()


@pytest.fixture(scope="module")
def server(models, corpus):
    """A server that does all tasks, and may be told to load its models again."""
    named = {"encoder": str(find_bundled("vectors")), **models}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERTKIT_ADMIN_KEY", ADMIN_KEY)
        with running(named, corpus=(f"encoder={corpus}",)) as client:
            yield client


def build_test(method, path):
    """A test of one operation."""

    @api.include(method=method.upper(), path=path).parametrize()
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
for named_path, operations in api.raw_schema["paths"].items():
    for method in operations:
        globals()[f"test_{method}_{named_path.strip('/')}"] = build_test(method, named_path)


def test_most_operations_were_answered():
    labels = {one.ok().label for one in api.get_all_operations()}
    assert answered <= labels
    assert len(labels - answered) <= MOST_UNANSWERED, sorted(labels - answered)
