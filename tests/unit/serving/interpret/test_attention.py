"""The route of attention, which the page shows."""

import pytest
from tests.closeness import assert_close
from tests.unit.serving.small_models import HAS_DECODERS

from bertkit.base import extras
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.opening import choose_start
from bertkit.interpret.routes import MAX_TOKENS_WITH_ATTENTION
from bertkit.interpret.views.view import ViewInputs


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("words", ("the [MASK] saw",)),
        ("words", ("the cat", "a dog")),
        *((name, ("the cat saw",)) for name in ("sentiment", "single")),
    ],
)
def test_attention_is_the_models(client, models, name, texts):
    inspected = InspectedModel.load(models[name], "cpu")
    observed = inspected.observe(inspected.read(*texts))
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
        ("encoder", {"inputs": "a " * MAX_TOKENS_WITH_ATTENTION}, "258 tokens"),
    ],
)
def test_attention_that_is_not_there_is_told(client, model, body, message):
    answer = client.post(f"/v1/models/{model}/attention", body)
    assert answer.status == 400
    assert message in answer.json["error"]["message"]


def test_a_server_without_pytorch_says_what_attention_needs(client, monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    answer = client.post("/v1/models/words/attention", {"inputs": "the cat"})
    assert answer.status == 400
    message = "showing attention needs PyTorch, which isn't installed on the server"
    assert answer.json["error"]["message"] == message


@pytest.mark.skipif(not HAS_DECODERS, reason="it needs models of the wing of decoders")
def test_attention_is_that_of_a_bert_of_any_direction(client):
    answer = client.post("/v1/models/translator/attention", {"inputs": "a"})
    assert answer.status == 400
    assert "translator isn't a BERT" in answer.json["error"]["message"]
    answer = client.post("/v1/models/writer/attention", {"inputs": "the cat saw"})
    assert answer.json["results"]["num_layers"] == 2
