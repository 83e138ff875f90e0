"""The page at `/`, and the attention that it shows."""

import numpy as np
import pytest
from tests.unit.serving.running import running

from bertkit.interpret.inspected_model import InspectedModel
from bertkit.serving.routes.tasks import MAX_TOKENS_WITH_ATTENTION, build_page


def test_the_page_is_open_and_may_only_ask_its_server(models, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("secret")
    with running({"words": models["words"]}, key_file=keys) as client:
        answer = client.get("/")
        assert client.get("/v1/models").status == 401
        assert client.post("/v1/models/words/attention", {"inputs": "a cat"}).status == 401
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert policy == f"{build_page().policy}; frame-ancestors 'none'"
    assert "default-src 'none'; script-src 'sha256-" in policy
    assert "connect-src 'self'; base-uri 'none'; form-action 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.content == build_page().render().encode()


def test_attention_is_the_models(client, models):
    inspected = InspectedModel.load(models["words"], "cpu")
    body = {"inputs": ["the [MASK] saw", ["the cat", "a dog"]], "options": {"layer": 2}}
    answer = client.post("/v1/models/words/attention", body)
    inputs = ("the [MASK] saw",), ("the cat", "a dog")
    for found, texts in zip(answer.json["results"], inputs, strict=True):
        observed = inspected.observe(inspected.read(*texts, read_mask=True))
        assert found["tokens"] == observed.encoded.tokens
        assert found["segments"] == list(observed.encoded.encoding.token_type_ids)
        assert (found["layer"], found["num_layers"]) == (2, 2)
        np.testing.assert_allclose(found["weights"], observed.layers[1].weights, atol=6e-6)
    assert answer.json["results"][0]["tokens"][2] == "[MASK]"
    one = client.post("/v1/models/words/attention", {"inputs": "the cat"}).json["results"]
    assert one["layer"] == 1


@pytest.mark.parametrize(
    ("model", "body", "message"),
    [
        ("words", {"inputs": ""}, "the text is empty"),
        ("words", {"inputs": "a", "options": {"layer": 3}}, "words has layers 1 to 2"),
        ("words", {"inputs": "a", "options": {"head": 1}}, "head"),
        ("words", {"inputs": [["a", "b", "c"]]}, "inputs"),
        ("translator", {"inputs": "a"}, "translator is an encoder-decoder; this needs a BERT"),
        ("encoder", {"inputs": "a " * MAX_TOKENS_WITH_ATTENTION}, "258 tokens"),
    ],
)
def test_attention_that_is_not_there_is_told(client, model, body, message):
    answer = client.post(f"/v1/models/{model}/attention", body)
    assert answer.status == 400
    assert message in answer.json["error"]["message"]
