"""Every route needs a key, bodies are bounded, and errors repeat no texts."""

import http.client
import re
import ssl
import subprocess

import pytest
from starlette.routing import Route
from tests.unit.serving.running import running
from tests.waiting import little_computing

from bertkit.base.errors import DamagedFileError, MissingFileError, SettingsError
from bertkit.serving.app import build_app, list_endpoints
from bertkit.serving.keys import KEYS_VARIABLE, Keys
from bertkit.serving.responder import MAX_VALUES
from bertkit.serving.server import check_certificate
from bertkit.serving.settings import ServeSettings

KEY = "sk-1aB.c_d~e+f/g=="
OPEN = {("GET", path) for path in ("/", "/health", "/openapi.json", "/ping", "/ready")}
ADMIN = {(method, "/v1/indexes/some/documents") for method in ("POST", "DELETE")}
SECRET = "the patient's name"


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """A server with two keys and no models."""
    path = tmp_path_factory.mktemp("keys") / "keys.txt"
    path.write_bytes(f"\ufeff# team A\r\n  {KEY} \r\n\r\nother\r\n".encode())
    with running({}, key_file=path, payload_limit=100_000) as client:
        yield client


def list_routes(client):
    """The method and a path of each route of the application, with a model's name."""
    routes = build_app(client.server.service, Keys(), Keys()).routes
    assert all(isinstance(route, Route) for route in routes)
    return [
        (method, re.sub("{[a-z:]+}", "some", route.path))
        for route in routes
        for method in sorted(route.methods - {"HEAD"})
    ]


def test_every_route_needs_a_key_but_those_of_health(locked):
    for method, path in list_routes(locked):
        body = None if method == "GET" else b"{}"
        json = {"content-type": "application/json"}
        answer = locked.ask(method, path, body, json)
        is_admin = path.endswith("/reload") or (method, path) in ADMIN
        needed = 403 if is_admin else 401  # no key is right without the admin's
        assert (answer.status == needed) == ((method, path) not in OPEN), path
        if answer.status == 401:
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "Authorization: Bearer KEY" in answer.content.decode()
        answer = locked.ask(method, path, body, json | {"authorization": f"Bearer {KEY}"})
        assert answer.status != 401, path
        assert answer.status < 500 or path == "/ready"


@pytest.mark.parametrize(
    ("value", "is_taken"),
    [
        (f"Bearer {KEY}", True),
        (f"bearer  {KEY} ", True),
        ("Bearer other", True),
        (KEY, True),
        (f"Basic {KEY}", False),
        ("Bearer wrong", False),
        (f"Bearer {KEY[:-1]}", False),
        (f"Bearer {KEY}x", False),
        ("Bearer # team A", False),
        ("Bearer", False),
        ("Bearer ", False),
        ("", False),
        ("Bearer schlüssel", False),
        ("Bearer " + "x" * 10_000, False),
    ],
)
def test_only_a_whole_key_is_taken(locked, value, is_taken):
    answer = locked.ask("GET", "/metrics", None, {"authorization": value.encode("latin-1")})
    assert (answer.status == 200) == is_taken
    assert KEY not in answer.content.decode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no key"),
        (b"\n  \n# only this\n", "has no key"),
        (b"good\nsch\xc3\xbcssel\n", "line 2 of"),
        (b"two words\n", "line 1 of"),
    ],
)
def test_a_file_of_keys_without_good_ones_is_refused(tmp_path, monkeypatch, content, message):
    path = tmp_path / "keys"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=message) as caught:
        Keys.read(KEYS_VARIABLE, path)
    assert "words" not in str(caught.value)
    monkeypatch.setenv("BERTKIT_KEYS", content.decode())
    with pytest.raises(SettingsError, match=message):
        Keys.read(KEYS_VARIABLE)


def test_a_file_of_keys_must_be_readable_and_small(tmp_path):
    with pytest.raises(MissingFileError):
        Keys.read(KEYS_VARIABLE, tmp_path / "none")
    (tmp_path / "large").write_bytes(b"a\n" * 600_000)
    with pytest.raises(DamagedFileError, match="more than"):
        Keys.read(KEYS_VARIABLE, tmp_path / "large")
    (tmp_path / "latin").write_bytes(b"k\xfcy")
    with pytest.raises(DamagedFileError, match="UTF-8"):
        Keys.read(KEYS_VARIABLE, tmp_path / "latin")


def test_without_keys_the_environment_counts(monkeypatch):
    monkeypatch.delenv("BERTKIT_KEYS", raising=False)
    assert not Keys.read(KEYS_VARIABLE)
    monkeypatch.setenv("BERTKIT_KEYS", "one\ntwo")
    keys = Keys.read(KEYS_VARIABLE)
    assert [keys.find(f"Bearer {one}") for one in ("one", "two")] == ["key 1", "key 2"]


DEEP = b'{"inputs": ' + b"[" * 5000 + b"]" * 5000 + b"}"


@pytest.mark.parametrize("path", ["/embed", "/v1/models/some/tag", "/v1/embeddings", "/v1/rerank"])
@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", {}, 422),
        (b"nonsense", {}, 422),
        (b'\xef\xbb\xbf{"inputs": "a"}', {}, 422),
        (b'{"inputs": "\xff"}', {}, 422),
        (b'{"inputs": [NaN]', {}, 422),
        (b'{"inputs": ' + b"9" * 5000 + b"}", {}, 422),
        (DEEP, {}, 422),
        (b"[]", {}, 422),
        (b"null", {}, 422),
        (b'{"inputs": "a"}', {"content-type": "text/plain"}, 415),
        (b'{"inputs": "a"}', {"content-type": "application/json; charset=latin-1"}, 415),
        (b'{"inputs": "a"}', {"content-type": ""}, 415),
        (b'{"inputs": "a"}', {"content-encoding": "gzip"}, 415),
        (b'{"inputs": "' + b"a" * 100_000 + b'"}', {}, 413),
    ],
)
def test_a_bad_body_is_refused_in_the_form_of_its_route(locked, path, body, headers, status):
    key = {"authorization": f"Bearer {KEY}"}
    answer = locked.post(path, body, **{"content-type": "application/json", **headers}, **key)
    nested = path.startswith("/v1") and path != "/v1/rerank"
    assert answer.status == (400 if nested and status == 422 else status), answer.content
    assert answer.headers["content-type"] == "application/json"
    assert "x-request-id" in answer.headers
    error = answer.json["error"]["message"] if nested else answer.json
    assert isinstance(error, str) or error.get("error") or error["detail"] == error["message"]


def test_a_body_in_chunks_is_bounded_too(locked):
    parts = iter([b'{"inputs": "'] + [b"a" * 10_000] * 20)
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    answer = locked.ask("POST", "/embed", parts, headers)
    assert answer.status == 413
    assert answer.json["error"] == "the body has more than 100,000 bytes"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embed", {"inputs": {"a": SECRET}}),
        ("/embed", {"inputs": [1, SECRET]}),
        ("/predict", {"inputs": [[SECRET, SECRET, SECRET]]}),
        ("/rerank", {"query": [SECRET], "texts": 1}),
        ("/v1/embeddings", {"input": "a", "encoding_format": SECRET}),
        ("/v1/models/some/tag", {"inputs": SECRET, "options": SECRET}),
        ("/v1/embeddings", f'{{"input": "{SECRET}'.encode()),
    ],
)
def test_errors_repeat_no_texts(locked, path, body):
    answer = locked.post(path, body, authorization=f"Bearer {KEY}")
    assert answer.status in {400, 422}
    assert SECRET not in answer.content.decode()


def test_a_fault_of_the_server_shows_nothing(locked, monkeypatch, caplog):
    def fail(metrics, **_):
        raise RuntimeError(f"{SECRET} in /srv/models")

    monkeypatch.setattr(type(locked.server.service.metrics), "write", fail)
    answer = locked.get("/metrics", authorization=f"Bearer {KEY}", x_request_id="mine")
    assert answer.status == 424
    for text in (answer.content.decode(), caplog.text):
        assert SECRET not in text
        assert "/srv" not in text
        assert KEY not in text
    assert "request mine failed: RuntimeError at test_locks.py:" in caplog.text


def test_a_million_wrong_values_are_refused_at_once(client):
    few = b'{"inputs": [' + b",".join([b"{}"] * (MAX_VALUES // 2 - 1)) + b"]}"
    answer = client.post("/embed", few)
    assert answer.status == 422
    assert len(answer.content) < 1000
    many = b'{"inputs": [' + b",".join([b"1"] * (MAX_VALUES + 1)) + b"]}"
    answer = client.post("/embed", many)
    assert answer.status == 413
    assert "divide it" in answer.json["error"]


@pytest.mark.parametrize("where", ["{%s}", '{"inputs": "a", "options": {%s}}'])
def test_very_many_keys_are_refused_at_once(client, where):
    keys = ",".join(f'"k{number}": 1' for number in range(MAX_VALUES // 2))
    with little_computing():
        answer = client.post("/v1/models/words/score", (where % keys).encode())
    assert answer.status == 400
    assert "300,000 keys, and the server takes 1,000" in answer.json["error"]["message"]


def list_lists(schema):
    """The lists in a pydantic schema that have no bound, and are read to their end if wrong."""
    if isinstance(schema, list | tuple):
        return [one for part in schema for one in list_lists(part)]
    if not isinstance(schema, dict) or "JsonValue" in str(schema.get("ref")):  # takes all
        return []
    is_one = schema.get("type") == "list" and not (
        schema.get("fail_fast") or "max_length" in schema
    )
    return [schema] * is_one + [one for part in schema.values() for one in list_lists(part)]


BODIES = dict.fromkeys(one.body for one in list_endpoints() if one.body is not None)


@pytest.mark.parametrize("body", BODIES)
def test_lists_are_checked_up_to_their_first_error(body):
    assert not list_lists(body.__pydantic_core_schema__)


@pytest.mark.parametrize("given", ["a\tb", "x" * 81, "é", ""])
def test_a_request_has_the_name_that_its_client_gave_if_it_is_plain(client, given):
    assert client.get("/health", x_request_id="mine-1").headers["x-request-id"] == "mine-1"
    answer = client.ask("GET", "/health", None, {"x-request-id": given.encode("latin-1")})
    assert len(answer.headers["x-request-id"]) == 32


def test_pages_of_other_origins_are_allowed_only_if_asked(locked, client):
    preflight = {
        "origin": "https://example.org",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, content-type, x-stainless-os",
    }
    assert locked.ask("OPTIONS", "/embed", None, preflight).status == 405
    assert "access-control-allow-origin" not in client.get("/health", **preflight).headers
    with running({}, cors_allow_origin=("https://example.org",)) as other:
        answer = other.ask("OPTIONS", "/embed", None, preflight)
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == "https://example.org"
        allowed = answer.headers["access-control-allow-headers"]
        assert allowed == preflight["access-control-request-headers"]
        answer = other.ask("OPTIONS", "/embed", None, preflight | {"origin": "https://evil.org"})
        assert "access-control-allow-origin" not in answer.headers
    for wrong in ("example.org", "https://example.org/"):
        with pytest.raises(ValueError, match="is no origin such as"):
            ServeSettings(cors_allow_origin=(wrong,))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A file with a certificate of 127.0.0.1 and its key."""
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    command += " -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text((folder / "cert.pem").read_text() + (folder / "key.pem").read_text())
    return both


def test_the_server_speaks_tls(certificate):
    with running({}, ssl_certfile=certificate) as client:
        context = ssl.create_default_context(cafile=str(certificate))
        port = client.server.port
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200
        connection.close()


def test_a_certificate_without_its_key_is_refused(certificate, tmp_path):
    encrypted = tmp_path / "encrypted.pem"
    command = ["openssl", "rsa", "-aes128", "-passout", "pass:x", "-out", encrypted]
    command += ["-in", certificate.with_name("key.pem")]
    subprocess.run(command, check=True, capture_output=True)
    alone = certificate.with_name("cert.pem")
    encrypted.write_text(alone.read_text() + encrypted.read_text())
    for one in (alone, tmp_path / "none", encrypted):
        with pytest.raises(
            SettingsError, match="must be a certificate and its key in PEM, without"
        ):
            check_certificate(ServeSettings(ssl_certfile=one))


@pytest.mark.parametrize(("host", "is_warned"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_an_open_server_warns(capfd, monkeypatch, host, is_warned):
    monkeypatch.delenv("BERTKIT_KEYS", raising=False)
    with running({}, host=host):
        pass
    assert ("warning: without --keys" in capfd.readouterr().err) == is_warned
