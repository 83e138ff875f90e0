"""Signals to a real server: it ends when it should, and answers what it promised."""

import http.client
import signal
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.faults.serving.served import READY, STUCK, serving
from tests.hostile.serving.raw_http import wait_until
from tests.unit.inference.small import save_small

from bertkit.checkpoints.bundled import find_bundled

HALF = b"POST /embed HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "words"
    save_small(folder)
    return f"encoder={find_bundled('vectors')}", str(folder)


@pytest.fixture
def asker():
    with ThreadPoolExecutor(4) as pool:
        yield pool.submit


@pytest.fixture
def gate(tmp_path):
    return tmp_path / "gate"


def begin(server, asker, gate):
    """A request that is computed while there is a gate."""
    gate.touch()
    asking = asker(server.ask, "/embed", {"inputs": ["a cat"] * 40})
    wait_until(lambda: server.count_works() == 1)
    return asking


def test_sigterm_answers_what_runs_and_waits_for_nobody_else(models, asker, gate):
    with serving(*models, gate=gate) as server:
        idle = server.connect()
        idle.request("GET", "/health")
        assert idle.getresponse().read() == b""
        half = socket.create_connection(("127.0.0.1", server.port))
        half.sendall(HALF + b'content-length: 20\r\n\r\n{"inputs"')
        head = socket.create_connection(("127.0.0.1", server.port))
        head.sendall(HALF)
        running = begin(server, asker, gate)
        server.send(signal.SIGTERM)
        assert half.recv(1000).startswith(b"HTTP/1.1 503 ")
        assert head.recv(1000) == b""
        gate.unlink()
        status, vectors = running.result()
        assert (status, len(vectors)) == (200, 40)
        assert server.wait() == 0
        assert idle.sock.recv(1) == b""
        for one in (idle, half, head):
            one.close()
        with pytest.raises(OSError, match="refused"):
            server.ask("/health")
        assert "Traceback" not in server.messages


def test_a_terminal_that_closes_ends_it_too_and_may_hang_up_twice(models, asker, gate):
    with serving(*models, gate=gate) as server:
        running = begin(server, asker, gate)
        server.send(signal.SIGHUP)
        wait_until(server.is_refusing)
        server.send(signal.SIGHUP)
        gate.unlink()
        assert running.result()[0] == 200
        assert server.wait() == 0


def test_nohup_keeps_it_and_an_interrupt_ends_it(models):
    with serving(*models, ignored=[signal.SIGHUP]) as server:
        server.send(signal.SIGHUP)
        assert server.ask("/embed", {"inputs": "a cat"})[0] == 200
        server.send(signal.SIGINT)
        assert server.wait() == 0
        assert "Traceback" not in server.messages


def test_sigusr1_loads_what_stands_in_the_folders_by_then(tmp_path):
    folder = tmp_path / "words"
    save_small(folder)
    with serving(str(folder)) as server:
        before = fill(server)
        save_small(folder, num_hidden_layers=1)
        assert fill(server) == before
        server.send(signal.SIGUSR1)
        wait_until(lambda: fill(server) != before)
        assert fill(server)[0] == 200


def fill(server):
    return server.ask("/v1/models/words/fill-mask", {"inputs": "the [MASK] saw a dog"})


def test_the_second_signal_ends_it_at_once(models, asker, gate):
    with serving(*models, gate=gate) as server:
        running = begin(server, asker, gate)
        server.send(signal.SIGTERM)
        wait_until(server.is_refusing)
        server.send(signal.SIGTERM)
        with pytest.raises((OSError, http.client.HTTPException)):
            running.result()
        assert server.wait() == -signal.SIGTERM


def test_a_signal_while_models_are_loaded_ends_it(models):
    with serving(*models, is_stuck=True) as server:
        server.read_until(STUCK)
        server.send(signal.SIGTERM)
        assert server.wait() == 0
        assert "Traceback" not in server.messages
        assert not READY.search(server.messages)
