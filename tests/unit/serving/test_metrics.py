"""What a server counts and logs, read by Prometheus's own parser and as JSON."""

import io
import json
import logging
import re
from collections import Counter

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from tests.hostile.serving.raw_http import send
from tests.unit.inference.small import save_small
from tests.unit.serving.running import running

from bertkit.serving.logs import LOGGERS, JsonFormatter, log_requests
from bertkit.serving.metrics import ServerMetrics

SECRET = "of-the-test"
KEY = {"authorization": f"Bearer {SECRET}"}
TEXT = "the cat saw a dog"
FILL = "/v1/models/words/fill-mask"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of one model, with a key, that nobody else asks."""
    folder = tmp_path_factory.mktemp("models")
    save_small(folder / "words")
    (folder / "keys").write_text(SECRET)
    settings = {"key_file": folder / "keys", "log_requests": True}
    with running({"words": str(folder / "words")}, **settings) as client:
        yield client


def read_metrics(client):
    """The families of /metrics by name, and the samples by name and labels."""
    content = client.get("/metrics", **KEY).content.decode()
    families = list(text_string_to_metric_families(content))
    samples = [one for family in families for one in family.samples]
    values = {
        (one.name.removesuffix("_total"), *sorted(one.labels.items())): one.value for one in samples
    }
    return {one.name: one for one in families}, Counter(values)


def test_the_counts_are_those_of_the_requests(server):
    _, before = read_metrics(server)
    masked = TEXT.replace("cat", "[MASK]")
    for _ in range(3):
        assert server.post(FILL, {"inputs": [masked, masked]}, **KEY).status == 200
    assert server.post(FILL, {"inputs": masked}).status == 401
    assert server.post(FILL, {"inputs": [1]}, **KEY).status == 400
    assert server.post(FILL, {"inputs": [masked] * 1025}, **KEY).status == 400
    assert server.post("/v1/embeddings", {"input": TEXT}, **KEY).status == 404
    families, after = read_metrics(server)
    more = {key: value for key, value in (after - before).items() if value}

    path = ("route", "/v1/models/{model}/fill-mask")
    words, unknown = ("model", "words"), ("model", "")
    assert more["te_request_success", words, path] == 3
    assert more["te_request_count", words, path] == 4
    assert more["te_request_count", unknown, path] == 2
    assert more["te_request_failure", ("err", "validation"), words] == 1
    assert more["te_request_failure", ("err", "validation"), unknown] == 1
    assert more["te_request_failure", ("err", "unauthorized"), unknown] == 1
    assert more["te_request_failure", ("err", "model_type"), unknown] == 1
    for name in ("duration", "queue_duration", "inference_duration", "input_length"):
        assert more[f"te_request_{name}_count", words] == 3
    assert more["te_request_input_length_sum", words] == more["te_batch_next_tokens_sum", words]
    assert more["te_batch_next_size_sum", words] == 3
    assert after["te_queue_size", words] == 0
    assert families["te_request_count"].type == "counter"
    assert families["te_request_duration"].type == "histogram"
    assert not [name for name in families if name.endswith(("_total", "_created"))]


@pytest.mark.parametrize(
    ("accept", "is_open"),
    [
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0;q=0.6,*/*;q=0.1", True),
        ("Application/OpenMetrics-Text; q=0.5, text/plain; q=0.4, */*", True),
        ("application/openmetrics-text, text/plain", False),
        ("application/openmetrics-text;q=0.1,text/plain", False),
        ("application/openmetrics-text;q=0", False),
        ("text/plain;version=0.0.4,*/*;q=0.1", False),
        ("", False),
    ],
)
def test_the_form_that_a_client_prefers_is_written(server, accept, is_open):
    answer = server.get("/metrics", accept=accept, **KEY)
    form = "application/openmetrics-text" if is_open else "text/plain"
    assert answer.headers["content-type"].startswith(f"{form};")


def test_an_openmetrics_parser_reads_the_same_numbers_under_the_same_names(server):
    # As Prometheus asks, which prefers OpenMetrics' form.
    accept = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5"
    assert server.post(FILL, {"inputs": "the [MASK]"}, **KEY).status == 200
    answer = server.get("/metrics", accept=accept, **KEY)
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0;")
    found = {
        (one.name, *sorted(one.labels.items())): one.value
        for family in openmetrics.text_string_to_metric_families(answer.content.decode())
        for one in family.samples
    }
    families, expected = read_metrics(server)
    assert found.keys() == expected.keys()
    counted = [key for key in found if key[0] == "te_request_success"]
    assert counted
    assert all(found[key] <= expected[key] for key in counted)
    assert families.keys() == {name for name in families if name.startswith("te_")}


CHUNKED = (
    f"POST {FILL} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SECRET}\r\n"
    "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"
)


@pytest.mark.parametrize(
    ("request_", "status", "kind", "route"),
    [
        ("GET /none HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\n\r\n", 404, "UnknownRoute", ""),
        ("PUT /embed HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\n\r\n", 405, "Validation", ""),
        ("GET / HTTP/1.1\r\nX-Request-Id: mine\r\n\r\n", 400, "Validation", ""),
        ("nonsense", 400, "Validation", ""),
        (f"{CHUNKED}zz\r\n", 400, "Validation", "/v1/models/{model}/fill-mask"),
    ],
)
def test_what_is_refused_before_a_route_is_counted_once(server, log, request_, status, kind, route):
    _, before = read_metrics(server)
    answers = send(server.server.port, request_.encode())
    assert answers.statuses == [status]
    _, after = read_metrics(server)
    more = {key: value for key, value in (after - before).items() if value}
    unknown = ("model", "")
    assert more.pop(("te_request_count", unknown, ("route", route))) == 1
    assert more.pop(("te_request_failure", ("err", kind.lower()), unknown)) == 1
    line = next(one for one in log() if one["route"] != "/metrics")
    assert (line["status"], line["failure"], line["route"]) == (status, kind, route)
    assert f"x-request-id: {line['id']}\r\n".encode() in answers.content
    assert (line["id"] == "mine") == ("mine" in request_)


def test_each_metric_is_in_the_guide(server, request):
    families, _ = read_metrics(server)
    guide = (request.config.rootpath / "docs/guide/serve.md").read_text()
    assert [name for name in families if f"`{name}`" not in guide] == []


@pytest.fixture
def log():
    """The lines of the log so far, as objects."""
    before = [(one.level, list(one.handlers)) for one in LOGGERS]
    written = io.StringIO()
    log_requests(written)
    yield lambda: [json.loads(one) for one in written.getvalue().splitlines()]
    for logger, (level, handlers) in zip(LOGGERS, before, strict=True):
        logger.handlers, logger.propagate = handlers, True
        logger.setLevel(level)


def test_each_request_is_a_line_without_its_text_and_key(server, log):
    headers = {"x_request_id": "one-of-mine"}
    assert server.post(FILL, {"inputs": f"{TEXT} [MASK]"}, **KEY, **headers).status == 200
    assert server.post(FILL, {"inputs": TEXT}, authorization="Bearer wrong").status == 401
    assert server.get("/health").status == 200
    first, second = log()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}", first.pop("time"))
    assert 0 < first.pop("milliseconds") < 60_000
    assert first == {
        "level": "info",
        "message": "request",
        "id": "one-of-mine",
        "route": "/v1/models/{model}/fill-mask",
        "model": "words",
        "status": 200,
        "tokens": 8,
        "client": "key 1",
        "failure": "",
    }
    assert (second["status"], second["failure"], second["client"]) == (401, "Unauthorized", "")
    written = json.dumps([first, second])
    assert not [one for one in (SECRET, "wrong", "cat") if one in written]


def test_a_failure_is_logged_with_the_request(server, log, monkeypatch):
    pipeline = server.server.service.models["words"].loaded.pipelines["fill-mask"]

    def fail(self, window):
        raise RuntimeError(TEXT)

    monkeypatch.setattr(type(pipeline), "compute_window", fail)
    answer = server.post(FILL, {"inputs": f"{TEXT} [MASK]"}, **KEY)
    assert answer.status == 424
    cause, line = log()
    assert cause["level"] == "warning"
    assert cause["message"].startswith(f"request {answer.headers['x-request-id']} failed: ")
    assert (line["id"], line["failure"]) == (answer.headers["x-request-id"], "Backend")
    assert TEXT not in json.dumps([cause, line])


def test_nothing_is_logged_unless_asked(client, log):
    assert client.post(FILL, {"inputs": f"{TEXT} [MASK]"}).status == 200
    assert log() == []


def test_an_exception_is_one_line():
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        about = type(error), error, error.__traceback__
    record = logging.LogRecord("a", logging.ERROR, "", 1, "%s failed", ("one",), about)
    line = json.loads(JsonFormatter().format(record))
    assert line["message"] == "one failed"
    assert line["cause"].endswith("ValueError: two\nlines")


def test_the_metrics_of_a_worker_name_it():
    metrics = ServerMetrics("2")
    metrics.note_request("wor} ds", "/embed", "", None, 0.0)
    metrics.duration.labels("words").observe(1.0)
    metrics.queue.labels("words").set(3)
    families = list(text_string_to_metric_families(metrics.write().decode()))
    samples = [one for family in families for one in family.samples]
    assert {one.labels["worker"] for one in samples} == {"2"}
    assert sum(one.labels["model"] == "wor} ds" for one in samples) == 2
