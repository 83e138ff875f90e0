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
        ("/v3/embed", {"error", "error_type"}),
    ],
)
def test_an_unknown_path_is_refused_in_the_form_of_its_clients(client, path, keys):
    answer = client.post(path, {"model": "encoder"})
    assert answer.status == 404
    assert answer.json.keys() == keys


def test_another_method_is_refused_in_the_form_of_its_route(client):
    for path, keys in (("/v2/rerank", {"message", "detail"}), ("/v1/embeddings", {"error"})):
        answer = client.get(path)
        assert (answer.status, answer.json.keys()) == (405, keys)
