"""Routes of what writes texts, whole and word by word."""

import http.client
import json
import threading
from contextlib import closing, contextmanager

import pytest
from tests.unit.serving.task_checks import check_task
from tests.waiting import TIMEOUT_SECONDS

from bertkit.decoders.generation.generator import Generator


@pytest.mark.parametrize("path", ["translator/translate", "writer/generate"])
def test_each_task_gives_its_pipelines_result(client, path):
    check_task(client, path, "the cat")


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("translator/translate", {"inputs": "a", "options": {"beams": 0}}, "beams"),
        ("translator/translate", {"inputs": "a", "options": {"beams": 17}}, "at most 16 beams"),
        ("writer/generate", {"inputs": "the cat " * 100}, "tokens"),
        ("writer/generate", {"inputs": ["the cat"], "stream": True}, "stream is for one text"),
        (
            "writer/generate",
            {"inputs": "the cat", "stream": True, "options": {"beams": 3}},
            "beams",
        ),
    ],
)
def test_what_a_task_does_not_take_is_refused(client, path, body, message):
    answer = client.post(f"/v1/models/{path}", body)
    assert answer.status == 400
    assert message in answer.json["error"]["message"]


def test_a_text_is_continued_word_by_word(client, models):
    streamed = client.post("/v1/models/writer", {"inputs": ["the cat"], "stream": True})
    assert streamed.status == 422
    generate = Generator.load(models["writer"], device="cpu")
    body = {"inputs": "the cat", "options": {"min_tokens": 8}, "stream": True}
    answer = client.post("/v1/models/writer/generate", body)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    *events, end = answer.content.decode().removesuffix("\n\n").split("\n\n")
    assert end == "data: [DONE]"
    words = [json.loads(event.removeprefix("data: "))["text"] for event in events]
    assert len(words) > 1
    assert "".join(words) == generate("the cat", min_tokens=8).answers[0].text


def test_a_stream_with_its_usage_is_refused(client):
    body = {"prompt": "the cat", "model": "writer", "stream": True, "max_tokens": 1}
    for usage, status in ((True, 400), (False, 200)):
        answer = client.post(
            "/v1/completions", {**body, "stream_options": {"include_usage": usage}}
        )
        assert answer.status == status
        assert (b"stream_options.include_usage" in answer.content) == usage


@contextmanager
def streaming(client):
    """A connection on which a stream was asked for."""
    with closing(
        http.client.HTTPConnection("127.0.0.1", client.server.port, TIMEOUT_SECONDS)
    ) as connection:
        body = json.dumps({"inputs": "the cat", "stream": True})
        headers = {"content-type": "application/json"}
        connection.request("POST", "/v1/models/writer/generate", body, headers)
        yield connection


@pytest.mark.parametrize("num_bytes", [0, 8], ids=["at once", "after a word"])
def test_nothing_more_is_written_when_the_client_has_left(client, monkeypatch, num_bytes):
    stopped = threading.Event()

    def write_on(*_):
        try:
            while not stopped.wait(0.005):  # the first word comes when the client has left
                yield "word "
        finally:
            stopped.set()

    monkeypatch.setattr(Generator, "stream_words", write_on)
    read_sample = client.server.service.metrics.registry.get_sample_value
    left = "te_request_failure_total", {"err": "dropped", "model": "writer"}
    before = read_sample(*left) or 0
    with streaming(client) as connection:
        if num_bytes:
            with connection.getresponse() as response:
                assert response.read(num_bytes) == b'data: {"'
    assert stopped.wait(TIMEOUT_SECONDS)
    assert client.post("/v1/models/writer/score", {"inputs": "the cat"}).status == 200
    assert read_sample(*left) == before + 1


def test_others_are_answered_between_the_words_of_a_stream(client, monkeypatch):
    may_end = threading.Event()

    def write_on(*_):
        while not may_end.wait(0.001):
            yield "word "

    monkeypatch.setattr(Generator, "stream_words", write_on)
    read_sample = client.server.service.metrics.registry.get_sample_value
    read = "te_request_input_length_sum", {"model": "writer"}
    before = read_sample(*read) or 0
    with streaming(client) as connection, connection.getresponse() as answer:
        assert answer.readline() == b'data: {"text":"word "}\n'
        assert client.post("/v1/models/writer/score", {"inputs": "the cat"}).status == 200
        may_end.set()
        assert answer.read().endswith(b"data: [DONE]\n\n")
    scored = client.post("/v1/models/writer/score", {"inputs": "the cat"})
    num_scored = 2 * scored.json["usage"]["total_tokens"]
    assert read_sample(*read) - before - num_scored == 3  # [CLS] and two words, once
