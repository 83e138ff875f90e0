"""Several processes on one port: one that is killed is replaced, and all end together."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from threading import Timer

import pytest
from tests.faults.serving.served import READY, serving
from tests.hostile.serving.raw_http import wait_until
from tests.unit.inference.small import save_small
from tests.waiting import TIMEOUT_SECONDS

from bertkit.checkpoints.bundled import find_bundled
from bertkit.cli.main import main
from bertkit.retrieval.index import Index

BOTH = re.compile(r"\(worker 2 of 2\)")
AGAIN = re.compile(r"worker (\d) ended by itself(.|\n)*serving .*\(worker \1 of 2\)")
ALL_ENDED = re.compile(r"(worker \d ended by itself(.|\n)*){3}")
LOADED_TWICE = re.compile(r"(words was loaded again(.|\n)*){2}")
SEARCH, DOCUMENTS = "/v1/indexes/notes/search", "/v1/indexes/notes/documents"
FILL = "/v1/models/words/fill-mask"


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "words"
    save_small(folder)
    return str(folder)


def find_workers(pid):
    """The workers of a server, by their process ids."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in children if b"spawn_main" in read_command(one)]


def read_command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def find_labels(server):
    """The workers that some requests came to."""
    pages = [server.ask("/metrics")[1] for _ in range(20)]
    return {one for page in pages for one in re.findall(r'worker="(\d)"', page)}


def count_works(server):
    """How many requests wait or run, by worker."""
    pages = [server.ask("/metrics")[1] for _ in range(10)]
    pattern = r'te_queue_size\{model="encoder",worker="(\d)"\} (.*)'
    return {worker: float(num) for page in pages for worker, num in re.findall(pattern, page)}


def fill(server, text="the [MASK] saw a dog"):
    return server.ask(FILL, {"inputs": text})


def test_workers_share_the_port_and_one_that_is_killed_is_replaced(words):
    with serving(words, "--workers", "2") as server:
        server.read_until(BOTH)
        status, answer = fill(server)
        assert status == 200
        wait_until(lambda: find_labels(server) == {"1", "2"})
        os.kill(find_workers(server.process.pid)[0], signal.SIGKILL)
        assert [fill(server) for _ in range(20)] == [(200, answer)] * 20  # by the other one
        server.read_until(AGAIN)
        wait_until(lambda: find_labels(server) == {"1", "2"})
        for one in find_workers(server.process.pid):
            os.kill(one, signal.SIGKILL)
        server.read_until(ALL_ENDED)
        server.send(signal.SIGTERM)  # before they are started again
        assert server.wait() == 0
        assert server.messages.count("(worker ") == 3
        with pytest.raises(OSError, match="refused"):
            server.ask("/health")
        assert "Traceback" not in server.messages


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_all_workers_end_when_the_running_requests_are_answered(words, number, tmp_path):
    encoder, gate = f"encoder={find_bundled('vectors')}", tmp_path / "gate"
    serve_both = serving(encoder, "--workers", "2", gate=gate)
    with serve_both as server, ThreadPoolExecutor(4) as pool:
        server.read_until(BOTH)
        gate.touch()
        asking = [pool.submit(server.ask, "/embed", {"inputs": "a cat"}) for _ in range(4)]
        wait_until(lambda: sum(count_works(server).values()) == 4)
        if number == signal.SIGINT:  # a terminal sends it to all
            for one in find_workers(server.process.pid):
                os.kill(one, number)
        server.send(number)
        wait_until(server.is_refusing)
        gate.unlink()
        answered = [one.result() for one in asking]
        assert [status for status, _ in answered] == [200] * 4
        assert server.wait() == 0


@pytest.mark.exhaustive
def test_workers_started_from_a_shell_hear_signals_and_requests_through_their_parent(words):
    command = [sys.executable, "-m", "bertkit", "serve", words, "--port", "0", "--workers", "2"]
    keys = {**os.environ, "BERTKIT_ADMIN_KEY": "key"}
    with subprocess.Popen(
        [*command, "--log-requests"], stderr=subprocess.PIPE, text=True, env=keys
    ) as process:
        timer = Timer(TIMEOUT_SECONDS, process.kill)  # lines that don't come are waited for
        timer.start()
        try:
            line = next(line for line in process.stderr if BOTH.search(line))
            blocked = list(map(find_blocked, find_workers(process.pid)))
            assert blocked == [{signal.SIGINT, signal.SIGHUP}] * 2
            connection = http.client.HTTPConnection("127.0.0.1", READY.search(line)[1])
            key = {"authorization": "Bearer key"}
            connection.request("POST", "/v1/models/words/reload", b"", key)
            assert json.loads(connection.getresponse().read()) == {"loaded": ["words"]}
            connection.close()
            lines = (line for line in process.stderr if "words was loaded again" in line)
            assert len(list(islice(lines, 2))) == 2
            process.send_signal(signal.SIGINT)
            assert process.wait(TIMEOUT_SECONDS) == 0
        finally:
            timer.cancel()
            process.kill()


def test_workers_clients_and_other_programs_write_one_index(tmp_path):
    key = {"BERTKIT_ADMIN_KEY": "key"}
    path = tmp_path / "notes.bertkit"
    index = Index(path)
    index.add(["A cat sat."])

    def write(client):
        rows = ([{"id": f"{client}-{n}", "text": f"Cat {n} of {client}."}] for n in range(5))
        return [server.ask(DOCUMENTS, {"rows": one}, authorization="Bearer key")[0] for one in rows]

    command = str(path), "--workers", "2"
    with serving(*command, variables=key) as server, ThreadPoolExecutor(2) as pool:
        server.read_until(BOTH)
        writing = [pool.submit(write, client) for client in range(2)]
        for n in range(5):
            index.add([f"A dog was number {n}."])
        assert [one.result() for one in writing] == [[200] * 5] * 2
        assert find_labels(server) == {"1", "2"}
        for _ in range(10):  # whichever worker answers
            _, found = server.ask(SEARCH, {"query": "cat", "top_k": 100})
            assert len({hit["id"] for hit in found["results"]}) == len(index) == 1 + 2 * 5 + 5
        index.close()
        server.send(signal.SIGTERM)
        assert server.wait() == 0
    assert [one.name for one in tmp_path.iterdir()] == [path.name]  # without a log beside it


def find_blocked(pid):
    """The signals that a process blocks."""
    (mask,) = re.findall(r"SigBlk:\s(\w+)", Path(f"/proc/{pid}/status").read_text())
    return {one for one in signal.valid_signals() if int(mask, 16) >> (one - 1) & 1}


def test_sigusr1_to_the_parent_lets_all_workers_load_their_models_again(tmp_path):
    folder = tmp_path / "words"
    save_small(folder)
    with serving(str(folder), "--workers", "2", "--log-requests") as server:
        server.read_until(BOTH)
        _, before = fill(server)
        save_small(folder, num_hidden_layers=1)
        server.send(signal.SIGUSR1)
        server.read_until(LOADED_TWICE)
        answers = [fill(server) for _ in range(20)]
        assert answers == [answers[0]] * 20
        assert answers[0] != (200, before)


@pytest.mark.exhaustive
def test_workers_end_with_their_parent(words):
    with serving(words, "--workers", "2") as server:
        server.read_until(BOTH)
        workers = find_workers(server.process.pid)
        assert len(workers) == 2
        server.send(signal.SIGKILL)
        wait_until(lambda: not any(b"spawn_main" in read_command(one) for one in workers))
        with pytest.raises((OSError, http.client.HTTPException)):
            server.ask("/health")


@pytest.mark.exhaustive
def test_a_model_that_can_not_be_loaded_is_told_once(capfd):
    words = ["serve", "none/", "--port", "0", "--device", "cpu", "--workers", "2"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert capfd.readouterr().err.count("none") == 1
