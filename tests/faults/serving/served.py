"""A server in a child process, which runs the real command."""

import http.client
import json
import multiprocessing.connection
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import Any

from tests.faults.children import PROCESSES, one_at_a_time
from tests.waiting import TIMEOUT_SECONDS

from bertkit.base.progress import announce

READY = re.compile(r"serving .* on http://[^ ]*:(\d+)")


STUCK = re.compile("this takes for ever")
GATE = "BERTKIT_TEST_GATE"


def load_for_ever(model: object) -> None:
    """Load a model whose files never come."""
    announce("this takes for ever")
    Event().wait()


def hold_computing() -> None:
    """Let encoders compute only while the file that the environment names isn't there."""
    from bertkit.inference.engines.openvino_engine import OpenVinoEngine
    from bertkit.inference.engines.torch_engine import TorchEngine

    gate = Path(os.environ[GATE])

    def held(compute: Callable[..., Any]) -> Callable[..., Any]:
        def wait_and_compute(*arguments: object, **options: object) -> Any:
            while gate.exists():
                Event().wait(0.02)
            return compute(*arguments, **options)

        return wait_and_compute

    TorchEngine.place = held(TorchEngine.place)  # type: ignore[method-assign]
    OpenVinoEngine.compute = held(OpenVinoEngine.compute)  # type: ignore[method-assign]


def run_held_worker(*arguments: Any) -> None:
    """Do what a worker does, but compute only when the gate is open."""
    from bertkit.serving.workers import run_worker

    hold_computing()
    run_worker(*arguments)


def run_command(
    words: Sequence[str],
    writing: Any,
    ignored: Sequence[int],
    gate: Path | None,
    *,
    is_stuck: bool,
    variables: Mapping[str, str],
) -> None:
    """Run the command in this process, which was forked for that, and end as it ends."""
    from bertkit.cli.main import main
    from bertkit.serving import workers
    from bertkit.serving.service import ServedModel

    os.environ.update(variables)
    if is_stuck:
        ServedModel.load = load_for_ever  # type: ignore[assignment]
    if gate:
        os.environ[GATE] = str(gate)
        workers.run_worker = run_held_worker
        hold_computing()
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    os.dup2(writing.fileno(), sys.stderr.fileno())
    os.dup2(writing.fileno(), sys.stdout.fileno())
    sys.exit(main(words))


@dataclass
class ServerProcess:
    """A running server.

    Attributes:
        process: the child.
        messages: what it has written.
        port: where it listens; 0 before it is ready.
    """

    process: Any
    reading: int
    messages: str = ""
    port: int = 0

    def read_until(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Read its messages until one has a pattern."""
        while not (found := pattern.search(self.messages)):
            is_there = multiprocessing.connection.wait([self.reading], TIMEOUT_SECONDS)
            content = os.read(self.reading, 1 << 16) if is_there else b""
            assert content, self.messages
            self.messages += content.decode()
        return found

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.process.pid, number)

    def wait(self) -> int:
        """Wait for its end and return its exit code."""
        assert multiprocessing.connection.wait([self.process.sentinel], TIMEOUT_SECONDS)
        with one_at_a_time:
            self.process.join()
        while content := os.read(self.reading, 1 << 16):
            self.messages += content.decode()
        return int(self.process.exitcode)

    def connect(self) -> http.client.HTTPConnection:
        """Return a new connection."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS)

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Return the status and the body of an answer on a connection of its own."""
        connection = self.connect()
        try:
            if body is None:
                connection.request("GET", path)
            else:
                sent = {"content-type": "application/json", **headers}
                connection.request("POST", path, json.dumps(body), sent)
            answer = connection.getresponse()
            content = answer.read().decode()
            is_json = answer.headers.get_content_type() == "application/json"
            return answer.status, json.loads(content) if is_json else content
        finally:
            connection.close()

    def is_refusing(self) -> bool:
        """Whether it takes no new requests."""
        try:
            return self.ask("/ready")[0] == HTTPStatus.SERVICE_UNAVAILABLE
        except (OSError, http.client.HTTPException):
            return True

    def count_works(self) -> float:
        """Return the number of requests that wait or run."""
        return sum(map(float, re.findall(r"te_queue_size\{.*\} (.*)", self.ask("/metrics")[1])))


@contextmanager
def serving(
    *words: str,
    ignored: Sequence[int] = (),
    gate: Path | None = None,
    is_stuck: bool = False,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[ServerProcess]:
    """A server, which is killed at the end of the block if it is still there.

    Args:
        words: of the command.
        ignored: signals that are ignored when it starts.
        gate: a file; while it is there, encoders wait, so that requests last as long as a test
            wants, on any machine.
        is_stuck: whether its models are never loaded.
        variables: of its environment, beside those of the process that it is forked from.
    """
    reading, writing = multiprocessing.Pipe(duplex=False)
    command = ["serve", *words, "--port", "0", "--device", "cpu"]
    process = PROCESSES.Process(
        target=run_command,
        args=(command, writing, ignored, gate),
        kwargs={"is_stuck": is_stuck, "variables": dict(variables)},
    )
    with one_at_a_time:
        process.start()
    writing.close()
    server = ServerProcess(process, reading.fileno())
    try:
        if not is_stuck:
            server.port = int(server.read_until(READY)[1])
        yield server
    finally:
        process.kill()
        with one_at_a_time:
            process.join()
        process.close()
        reading.close()
