"""Hostile clients: the server refuses them in its own form, and serves the others as before."""

import asyncio
import json
import random
import re
import socket
import threading
from contextlib import ExitStack

import pytest
from tests.hostile.serving.http_forms import BODY, CHUNKED, GET, POST, VALID, list_forms
from tests.hostile.serving.raw_http import NEVER, read_statuses, send, wait_until
from tests.unit.inference.small import save_small
from tests.unit.serving.running import running
from tests.waiting import TIMEOUT_SECONDS

from bertkit.serving import connection

FORMS = list(list_forms())
MUTATIONS = [300, pytest.param(5000, marks=pytest.mark.exhaustive)]
MAX_CONNECTIONS = 60
REFUSALS = {200, 400, 404, 405, 408, 413, 415, 422, 431}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small model."""
    folder = tmp_path_factory.mktemp("model") / "words"
    save_small(folder)
    return str(folder)


@pytest.fixture(scope="module")
def client(folder):
    """A server whose patience is short, with one model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "HEAD_SECONDS", 1.0)
        patch.setattr(connection, "SEND_SECONDS", 1.0)
        limits = {"timeout": 2.0, "payload_limit": 100_000, "max_connections": MAX_CONNECTIONS}
        with running({"words": folder}, **limits) as client:
            yield client


def count_model_threads():
    return sum(one.name.startswith("model ") for one in threading.enumerate())


@pytest.fixture(scope="module")
def usual(client):
    """The right answer, and the number of the threads of models, other tests' too."""
    results = client.post("/v1/models/words/fill-mask", BODY).json["results"]
    return results, count_model_threads()


@pytest.fixture(autouse=True)
def the_server_stays_well(client, usual):
    """After each test the answer is right, and nothing of its clients is left."""
    yield
    results, num_threads = usual
    (listener,) = client.server.listener.servers
    state = client.server.listener.server_state
    wait_until(lambda: not state.connections and not state.tasks)
    answers = []

    def is_answered():
        """Whether there is room again: connections that the system still holds come before it."""
        answers.append(client.post("/v1/models/words/fill-mask", BODY))
        assert answers[-1].status in {200, 503}, answers[-1].content
        return answers[-1].status == 200

    wait_until(is_answered)
    assert answers[-1].json["results"] == results
    wait_until(lambda: not state.connections and not state.tasks)
    assert len(asyncio.all_tasks(listener.get_loop())) <= 3  # it serves, and looks at signals
    assert count_model_threads() == num_threads


@pytest.mark.parametrize(("request_", "statuses", "is_closed"), FORMS)
def test_each_form_comes_to_its_own_answers(client, request_, statuses, is_closed):
    answers = send(client.server.port, request_, patience=TIMEOUT_SECONDS if is_closed else 0.15)
    assert answers.statuses == statuses, answers.content[-300:]
    assert answers.is_closed == is_closed
    if statuses[-1] >= 400:
        assert b"content-type: application/json" in answers.content
        assert b"x-request-id: " in answers.content
        assert isinstance(json.loads(answers.content.rpartition(b"\r\n\r\n")[2]), dict)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_request_may_come_in_any_pieces(client, size):
    request = VALID + GET
    parts = [request[start : start + size] for start in range(0, len(request), size)]
    assert send(client.server.port, *parts, wait=0).statuses == [200, 200]


def test_headers_behind_a_body_are_left_out(client):
    trailer = b"0\r\nAuthorization: Bearer key\r\nX-Request-Id: theirs\r\n\r\n"
    chunks = b"%x\r\n%s\r\n" % (len(BODY), BODY)
    answers = send(client.server.port, POST + CHUNKED + b"\r\n" + chunks + trailer + GET)
    assert answers.statuses == [200, 200]
    assert b"theirs" not in answers.content


def change(request, draw):
    """A request with some bytes changed, left out, repeated or put in."""
    content = bytearray(request)
    for _ in range(draw.randint(1, 4)):
        place, size = draw.randrange(len(content)), draw.choice([1, 1, 2, 8, 40])
        kind = draw.randrange(4)
        if kind == 0:
            content[place] = draw.randrange(256)
        elif kind == 1:
            del content[place : place + size]
        elif kind == 2:
            content[place:place] = content[place : place + size]
        else:
            content[place:place] = draw.choice([b"\r\n", b"\n", b"\0", b":", b" ", b"0", b"\xff"])
        content = content or bytearray(b"x")
    return bytes(content)


@pytest.mark.parametrize("num_mutations", MUTATIONS)
def test_changed_requests_are_answered_or_refused(client, num_mutations):
    draw = random.Random(5)
    requests = [VALID, GET, POST + CHUNKED + b"\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"]
    requests += [form.values[0] for form in FORMS if len(form.values[0]) < 1000]
    found = set()
    for _ in range(num_mutations):
        with socket.create_connection(("127.0.0.1", client.server.port), TIMEOUT_SECONDS) as place:
            place.sendall(change(draw.choice(requests), draw))
            place.shutdown(socket.SHUT_WR)
            content = b""
            try:
                while part := place.recv(1 << 16):
                    content += part
            except ConnectionResetError:
                pass
        found.update(read_statuses(content.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")))
    assert {400} <= found <= REFUSALS


ODD = ["", None, True, -1, 10**30, 1e308, "\0", "\ud83d", [], {}, [[]], "a" * 3000, "\u202e", [1]]


def alter(value, draw):
    """JSON with one value in it replaced, left out or added."""
    if draw.random() < 0.3 or not isinstance(value, dict | list) or not value:
        return draw.choice(ODD)
    if isinstance(value, list):
        place = draw.randrange(len(value))
        changed = [alter(value[place], draw)] * draw.randrange(3)
        return value[:place] + changed + value[place + 1 :]
    key = draw.choice([*value, "new"])
    if draw.random() < 0.2:
        return {name: one for name, one in value.items() if name != key}
    return {**value, key: alter(value.get(key), draw)}


@pytest.mark.parametrize("num_mutations", MUTATIONS)
def test_changed_bodies_are_answered_or_refused(client, folder, num_mutations):
    draw = random.Random(6)
    bodies = {
        "/v1/models/words/fill-mask": {"inputs": ["the [MASK] saw"], "options": {"top_k": 2}},
        "/v1/models/words/score": {"inputs": ["the cat", "a dog"], "truncate": False},
        "/v1/models/words/tokenize": {"inputs": ["the"], "add_special_tokens": True},
        "/v1/models/words/decode": {"ids": [[1, 2]], "skip_special_tokens": True},
        "/v1/embeddings": {"input": ["a"], "model": "words", "dimensions": 2},
        "/v1/rerank": {"query": "a", "documents": ["b", {"text": "c"}], "top_n": 1},
        "/similarity": {"inputs": {"source_sentence": "a", "sentences": ["b"]}},
    }
    place = socket.create_connection(("127.0.0.1", client.server.port), TIMEOUT_SECONDS)
    with place, place.makefile("rb") as stream:
        for _ in range(num_mutations):
            path = draw.choice(list(bodies))
            content = json.dumps(alter(bodies[path], draw)).encode()
            if draw.random() < 0.2:
                content = change(content, draw)
            head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            head += b"Content-Length: %d\r\n\r\n"
            place.sendall(head % (path.encode(), len(content)) + content)
            status = int(stream.readline().split()[1])
            fields = dict(line.lower().split(b": ") for line in iter(stream.readline, b"\r\n"))
            answer = stream.read(int(fields[b"content-length"]))
            assert status in REFUSALS, (path, content[:500], answer)
            assert isinstance(json.loads(answer), dict | list)
            assert folder.encode() not in answer


def test_a_slow_head_and_silence_end_the_connection(client):
    with ExitStack() as stack:
        places = [
            stack.enter_context(socket.create_connection(("127.0.0.1", client.server.port)))
            for _ in range(4)
        ]
        for place, begun in zip(places, (b"", b"\r\n", VALID[:30], GET + VALID[:50]), strict=True):
            place.settimeout(TIMEOUT_SECONDS)
            place.sendall(begun)
        ends = [b"".join(iter(lambda one=one: one.recv(9999), b"")) for one in places]
    assert list(map(read_statuses, ends)) == [[], [], [408], [200, 408]]


@pytest.mark.parametrize("framing", [b"Content-Length: 50\r\n\r\n{", CHUNKED + b"\r\n1\r\n{\r\n"])
def test_a_slow_body_ends_the_connection(client, framing):
    answers = send(client.server.port, POST + framing, patience=TIMEOUT_SECONDS)
    assert answers.statuses == [408]
    assert answers.is_closed


def test_bodies_that_are_too_large_together_are_refused(client):
    head = POST + b"Content-Length: 100000\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(MAX_CONNECTIONS - 5):
            place = stack.enter_context(
                socket.create_connection(("127.0.0.1", client.server.port), TIMEOUT_SECONDS)
            )
            place.sendall(head + b" " * 99_000)
        wait_until(lambda: client.server.service.num_bytes > 3_000_000)
        assert client.server.service.num_bytes <= 33 * 100_000
        answers = send(client.server.port, head + b" " * 99_000, patience=TIMEOUT_SECONDS)
        assert answers.statuses[:1] == [429]
        assert b"retry-after: 1" in answers.content
    wait_until(lambda: client.server.service.num_bytes == 0)


def test_a_body_that_nobody_waits_for_may_not_last(client):
    head = b"POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", client.server.port), TIMEOUT_SECONDS) as place:
        place.sendall(head)
        assert b" 404 " in place.recv(9999)
        wait_until(lambda: is_cut_off(place))


def is_cut_off(place):
    """Whether a byte more can't be sent."""
    try:
        place.sendall(b"a")
    except ConnectionError:
        return True
    return False


@pytest.fixture
def slow_reader(client):
    """A connection that asked for 10 answers of 2 MB each, of which some are on their way."""
    with socket.create_connection(("127.0.0.1", client.server.port), TIMEOUT_SECONDS) as place:
        body = json.dumps({"inputs": ["a b c d " * 20] * 500}).encode()
        head = POST.replace(b"fill-mask", b"tokenize") + b"Content-Length: %d\r\n\r\n" % len(body)
        place.sendall((head + body) * 10)
        state = client.server.listener.server_state
        wait_until(
            lambda: any(one.transport.get_write_buffer_size() for one in list(state.connections))
        )
        yield place


def test_a_client_that_reads_nothing_is_left(client, slow_reader):
    wait_until(lambda: not client.server.listener.server_state.connections)


def test_a_client_that_reads_slowly_gets_all(slow_reader):
    with slow_reader.makefile("rb", 1 << 16) as stream:
        for _ in range(10):
            assert b" 200 " in stream.readline()
            fields = dict(line.lower().split(b": ") for line in iter(stream.readline, b"\r\n"))
            length = int(fields[b"content-length"])
            assert len(stream.read(length // 2)) == length // 2
            NEVER.wait(0.3)
            assert len(stream.read(length - length // 2)) == length - length // 2


def test_connections_too_many_are_refused_and_the_others_served(client):
    with ExitStack() as stack:
        for _ in range(MAX_CONNECTIONS - 1):
            stack.enter_context(socket.create_connection(("127.0.0.1", client.server.port)))
        assert send(client.server.port, GET).statuses == [200]
        stack.enter_context(socket.create_connection(("127.0.0.1", client.server.port)))
        answers = send(client.server.port, b"", patience=TIMEOUT_SECONDS)
        assert answers.statuses == [503]
        assert b"retry-after: 1" in answers.content
        assert answers.is_closed


def test_clients_that_leave_at_any_moment_leave_nothing(client):
    draw = random.Random(7)
    for _ in range(300):
        with socket.create_connection(("127.0.0.1", client.server.port)) as place:
            place.sendall((VALID * 3)[: draw.randrange(3 * len(VALID))])
            if draw.random() < 0.5:  # reset
                place.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def test_metrics_name_no_client(client):
    assert not re.search(rb"127\.0\.0\.1|inputs", client.get("/metrics").content)
