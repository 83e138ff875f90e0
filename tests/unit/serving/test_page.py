"""The page at `/`, and the attention that it shows."""

import pytest
from tests.closeness import assert_close
from tests.unit.serving.running import running

from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.opening import choose_start
from bertkit.interpret.routes import MAX_TOKENS_WITH_ATTENTION
from bertkit.interpret.views.view import ViewInputs


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
    allowed, _, rest = policy.partition("; connect-src 'self'; ")
    assert allowed.startswith("default-src 'none'; script-src 'sha256-")
    assert rest == "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    assert "unsafe" not in policy
    in_page = policy.removesuffix("; frame-ancestors 'none'")
    assert f'content="{in_page}"' in answer.content.decode()
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("words", ("the [MASK] saw",)),
        ("words", ("the cat", "a dog")),
        *((name, ("the cat saw",)) for name in ("writer", "sentiment", "single")),
    ],
)
def test_attention_is_the_models(client, models, name, texts):
    inspected = InspectedModel.load(models[name], "cpu")
    observed = inspected.observe(inspected.read(*texts, read_mask=True))
    inputs = texts[0] if len(texts) == 1 else [texts]
    body = {"inputs": inputs, "options": {"layer": 2}}
    answer = client.post(f"/v1/models/{name}/attention", body)
    found = answer.json["results"] if len(texts) == 1 else answer.json["results"][0]
    assert found["tokens"] == observed.encoded.tokens
    assert found["segments"] == list(observed.encoded.encoding.token_type_ids)
    assert (found["layer"], found["num_layers"]) == (2, 2)
    assert_close(found["weights"], observed.layers[1].weights, within=2e-5)  # five digits
    start = choose_start(ViewInputs(inspected, observed))
    body = {"inputs": inputs, "options": {"layer": None}}
    opened = client.post(f"/v1/models/{name}/attention", body).json["results"]
    first = opened if len(texts) == 1 else opened[0]
    assert first["start"] == {"head": start.head, "token": start.token}
    assert first["layer"] == (start.layer or 1)
    plain = client.post(f"/v1/models/{name}/attention", {"inputs": inputs}).json["results"]
    assert (plain if len(texts) == 1 else plain[0])["layer"] == 1


@pytest.mark.parametrize(
    ("model", "body", "message"),
    [
        ("words", {"inputs": ""}, "the text is empty"),
        ("words", {"inputs": "a", "options": {"layer": 3}}, "words has layers 1 to 2"),
        ("words", {"inputs": "a", "options": {"head": 1}}, "head"),
        ("words", {"inputs": [["a", "b", "c"]]}, "inputs"),
        ("words", {"inputs": ["a", "b"]}, "inputs"),
        ("translator", {"inputs": "a"}, "translator isn't a BERT; this shows the attention of one"),
        ("encoder", {"inputs": "a " * MAX_TOKENS_WITH_ATTENTION}, "258 tokens"),
    ],
)
def test_attention_that_is_not_there_is_told(client, model, body, message):
    answer = client.post(f"/v1/models/{model}/attention", body)
    assert answer.status == 400
    assert message in answer.json["error"]["message"]
