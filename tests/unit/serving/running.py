"""A server in a thread of the tests, and a client that speaks HTTP to it."""

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.waiting import TIMEOUT_SECONDS

from bertkit.serving.server import ModelServer, make_runner
from bertkit.serving.settings import ServeSettings


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.content)


@dataclass(frozen=True)
class Client:
    """Asks a server; each request has a connection of its own."""

    server: ModelServer

    def get(self, path: str, **headers: str) -> Answer:
        """The answer to a GET."""
        return self.ask("GET", path, None, headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        """The answer to a body as JSON, or as it is if it is bytes."""
        return self.send("POST", path, body, **headers)

    def send(self, method: str, path: str, body: Any, **headers: str) -> Answer:
        """The answer to a body of another method, as of a POST."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask(method, path, content, {"content-type": "application/json", **headers})

    def ask(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        """The answer to a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, TIMEOUT_SECONDS)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, content, named)
            response = connection.getresponse()
            names = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, names, response.read())
        finally:
            connection.close()


@contextmanager
def running(models: Mapping[str, str], **settings: Any) -> Iterator[Client]:
    """A server that is ready, until the block ends; then it ends, too."""
    server = ModelServer(models, ServeSettings(port=0, device="cpu", **settings))
    is_ready, problems = threading.Event(), []

    def serve() -> None:
        try:
            with make_runner() as runner:  # the loop that users get
                runner.run(server.run(lambda _: is_ready.set()))
            assert server.service.close(TIMEOUT_SECONDS)
        except BaseException as error:  # noqa: BLE001 - raised in the test's own thread
            problems.append(error)
        finally:
            is_ready.set()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        assert is_ready.wait(TIMEOUT_SECONDS)
        if problems:
            raise problems[0]
        yield Client(server)
    finally:
        server.stop()
        thread.join(TIMEOUT_SECONDS)
        assert not thread.is_alive()
