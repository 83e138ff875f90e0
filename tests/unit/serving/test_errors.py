"""A path that no route has is refused in the form of those whose clients ask for such paths."""

import pytest


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("/v2/embed", {"message", "detail"}),
        ("/v2/chat", {"message", "detail"}),
        ("/v1/rerank/other", {"message", "detail"}),
        ("/v1/classify", {"message", "detail"}),
        ("/v1/tokenize", {"message", "detail"}),
        ("/v1/chat/completions", {"error"}),
        ("/v1/embeddings/other", {"error"}),
        ("/v1", {"error"}),
        ("/embed_sparse", {"error", "error_type"}),
        ("/embed/", {"error", "error_type"}),
        ("/v3/embed", {"error", "error_type"}),
    ],
)
def test_an_unknown_path_is_refused_in_the_form_of_its_clients(client, path, keys):
    answer = client.post(path, {"model": "encoder"})
    assert answer.status == 404
    assert answer.json.keys() == keys


def test_an_unknown_path_has_a_code(client):
    assert client.get("/none").json["error_type"] == "UnknownRoute"
    assert client.get("/v1/none").json["error"]["code"] == "UnknownRoute"


@pytest.mark.parametrize(
    ("method", "path", "allowed", "keys"),
    [
        ("GET", "/embed", "POST", {"error", "error_type"}),
        ("GET", "/v2/rerank", "POST", {"message", "detail"}),
        ("GET", "/v1/embeddings", "POST", {"error"}),
        ("GET", "/v1/models/some/tag", "POST", {"error"}),
        ("POST", "/v1/models/org/some/info", "GET, HEAD", {"error"}),
    ],
)
def test_another_method_is_refused_in_the_form_of_its_route(client, method, path, allowed, keys):
    answer = client.ask(method, path, None, {})
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    assert answer.json.keys() == keys
    assert f"the route doesn't take {method}; it takes {allowed}" in answer.content.decode()
