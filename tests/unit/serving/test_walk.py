"""How far a request walks: the files of bertkit that run between the ASGI call and the answer."""

import asyncio
import json

import pytest
from tests.unit.inference.small import save_kind
from tests.waiting import TIMEOUT_SECONDS
from tests.walks import Walk, follow

from bertkit.models.bert.encoder import BertModel
from bertkit.serving.app import build_app
from bertkit.serving.keys import Keys
from bertkit.serving.service import ServedModel, Service
from bertkit.serving.settings import ServeSettings

BODY = json.dumps({"input": ["the cat saw a hat", "a dog"]}).encode()
SCOPE = {
    "type": "http",
    "method": "POST",
    "path": "/v1/embeddings",
    "query_string": b"",
    "headers": [(b"content-type", b"application/json")],
    "state": {},
}


async def ask(app):
    """The status and the body of the answer to a request for vectors."""
    waiting, sent = [{"type": "http.request", "body": BODY, "more_body": False}], []

    async def receive():
        return waiting.pop() if waiting else await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    await app(SCOPE, receive, send)
    start, end = sent
    return start["status"], json.loads(end["body"])


async def walk(folder, engine):
    """The files that run, in all threads, for the second request of a server."""
    settings = ServeSettings(device="cpu", engine=engine, precision="fp32")
    service = Service([ServedModel("m", str(folder), settings)], settings)
    app = build_app(service, Keys(), Keys())
    with follow(Walk(is_watched=False)) as walked:
        try:
            await service.load()
            first = await ask(app)
            walked.is_watched = True
            assert await ask(app) == first
            walked.is_watched = False
        finally:
            assert service.close(TIMEOUT_SECONDS)
    status, answer = first
    assert (status, len(answer["data"])) == (200, 2)
    return walked.files


@pytest.mark.parametrize("engine", ["openvino", "torch"])
def test_a_request_for_vectors_visits_at_most_16_files(tmp_path, engine):
    """PyTorch's engine runs the files of the encoder itself besides."""
    save_kind(tmp_path, BertModel)
    ran = asyncio.run(walk(tmp_path, engine))
    encoder = {name for name in ran if engine == "torch" and name.startswith(("models/", "nn/"))}
    assert {"serving/responder.py", "serving/sharing/worker.py", "inference/stream.py"} <= ran
    assert len(ran - encoder) <= 16, sorted(ran)
