"""What the application does with a request, whatever its route."""

import http.client
import json
import threading
from contextlib import closing

import pytest
from tests.hostile.serving.raw_http import wait_until
from tests.unit.serving.running import running
from tests.waiting import TIMEOUT_SECONDS, little_computing

from bertkit.inference.fill_mask import FillMask

FILL = "/v1/models/words/fill-mask"
TEXT = "the [MASK] saw"


def test_what_a_client_that_left_asked_for_is_not_computed(models, monkeypatch):
    computed, is_computing, may_go_on = [], threading.Event(), threading.Event()
    compute_window = FillMask.compute_window

    def compute_when_told(self, window):
        computed.append(window)
        is_computing.set()
        assert may_go_on.wait(TIMEOUT_SECONDS)
        return compute_window(self, window)

    with running({"words": models["words"]}, deterministic=True) as client:  # a batch an input
        monkeypatch.setattr(FillMask, "compute_window", compute_when_told)
        leaving = http.client.HTTPConnection("127.0.0.1", client.server.port, TIMEOUT_SECONDS)
        with closing(leaving):
            headers = {"content-type": "application/json"}
            leaving.request("POST", FILL, json.dumps({"inputs": [TEXT] * 9}), headers)
            assert is_computing.wait(TIMEOUT_SECONDS)
        try:
            wait_until(lambda: b'te_queue_size{model="words"} 0' in client.get("/metrics").content)
        finally:
            may_go_on.set()
        assert client.post(FILL, {"inputs": TEXT}).status == 200
    assert len(computed) == 1 + 1


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json; charset=utf-8; version=1",
        "application/json; version=1; charset=UTF-8",
        'Application/JSON;charset="utf8"',
        "application/json; charset=",
        'application/json; a="' + '";"' * 8000,
        f"application/json; charset*{'9' * 5000}=x",
        "application/json; charset*0=; charset*=1",
        "application/vnd.api+json",
    ],
)
def test_a_content_type_may_have_parameters(client, content_type):
    assert client.post(FILL, {"inputs": TEXT}, content_type=content_type).status == 200


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"a cat \ud83d b", "a cat \ufffd b"),
        (r"\ude00\ud83d\ude00\uD83D", "\ufffd\U0001f600\ufffd"),
        (r"\\ud83d \\\ud83d", "\\ud83d \\\ufffd"),
    ],
)
def test_half_a_character_is_one_that_is_unknown(client, written, meant):
    half = client.post("/embed", f'{{"inputs": "{written}"}}'.encode())
    whole = client.post("/embed", {"inputs": meant})
    assert (half.status, half.json) == (200, whole.json)


def test_halves_of_characters_take_no_long_time(client):
    content = b'{"inputs": "' + rb"\\\ud83d" * 20_000 + b'"}'
    with little_computing():
        assert client.post("/embed", content).status in {200, 413, 422}
    assert client.post("/embed", rb'{"inputs": "\ud83d"').status == 422


@pytest.mark.parametrize("encoding", ["identity", "IDENTITY", " Identity "])
def test_a_body_as_it_is_may_say_so_in_any_letters(client, encoding):
    answer = client.post(FILL, {"inputs": TEXT}, content_encoding=encoding)
    assert answer.status == 200
    assert client.post(FILL, {"inputs": TEXT}, content_encoding="GZIP").status == 415
