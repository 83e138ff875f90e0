"""What clients that send load see of a server."""

import json
import math
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from tests.unit.serving.running import running

from bertkit.base.errors import InputError, SettingsError
from bertkit.checkpoints.hub import find_bundled
from bertkit.cli.main import main
from bertkit.jobs.load_test import LoadResult, Target, drive_each, make_bodies


@pytest.fixture(scope="module")
def client():
    """A server of the encoder that comes with bertkit."""
    with running({"encoder": str(find_bundled("vectors"))}) as client:
        yield client


def test_clients_are_answered_in_turns(client):
    target = Target.parse(f"http://127.0.0.1:{client.server.port}/embed")
    bodies = make_bodies(target.path, None, 3)
    assert len(set(bodies)) > 10
    one, four = drive_each(target, bodies, [1, 4], 1.0)
    for result in (one, four):
        assert len(result.latencies) == result.statuses[200] > result.num_clients
        assert set(result.statuses) == {200}
        assert 0 < result.quantile(0.5) <= result.quantile(0.99) < 60
    assert four.as_row()["clients"] == 4


def test_refusals_are_counted_and_have_no_latency(client):
    target = Target.parse(f"http://127.0.0.1:{client.server.port}/embed")
    (result,) = drive_each(target, [b'{"inputs": ""}'], [2], 0.2)
    assert set(result.statuses) == {400}
    assert result.latencies == []
    assert math.isnan(result.quantile(0.5))
    assert result.as_row()["refused"] == {"400": result.statuses[400]}


def test_a_key_is_sent(tmp_path):
    keys = tmp_path / "keys.txt"
    keys.write_text("secret\n")
    with running({"encoder": str(find_bundled("vectors"))}, key_file=keys) as client:
        url = f"http://127.0.0.1:{client.server.port}/embed"
        body = b'{"inputs": "the cat"}'
        (right,) = drive_each(Target.parse(url, "secret"), [body], [1], 0.1)
        with pytest.raises(InputError, match="asks for a key; give it with --key"):
            drive_each(Target.parse(url, "public"), [body], [1], 0.1)
    assert set(right.statuses) == {200}


def test_the_command_prints_a_table_or_json_and_draws_a_page(client, tmp_path, capsys):
    url = f"http://127.0.0.1:{client.server.port}/embed"
    page = tmp_path / "load.html"
    words = ["benchmark", "serve", url, "--clients", "1", "2", "--seconds", "0.1"]
    assert main([*words, "--output", str(page)]) == 0
    heads, *rows = capsys.readouterr().out.splitlines()
    assert heads.split()[:2] == ["clients", "requests/s"]
    assert [row.split()[0] for row in rows] == ["1", "2"]
    assert "latency over throughput" in page.read_text(encoding="utf-8")
    assert main([*words, "--json"]) == 0
    assert [row["clients"] for row in json.loads(capsys.readouterr().out)] == [1, 2]


def test_quantiles_are_of_the_requests():
    result = LoadResult(1, 2.0, [0.04, 0.01, 0.03, 0.02])
    assert result.quantile(0.5) == 0.03
    assert result.quantile(0.99) == 0.04
    assert result.requests_per_second == 2.0


def test_a_connection_that_the_server_closes_is_replaced():
    paths = []

    class Closing(BaseHTTPRequestHandler):
        def do_POST(self):
            paths.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            self.wfile.write(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Closing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        target = Target.parse(f"http://127.0.0.1:{server.server_port}/embed?a=b")
        (result,) = drive_each(target, make_bodies(target.path, None, 3), [1], 0.3)
        server.shutdown()
        thread.join(60)
    assert set(result.statuses) == {503}
    assert result.statuses[503] == len(paths) > 1
    assert set(paths) == {"/embed?a=b"}


def test_wrong_addresses_are_told():
    with pytest.raises(SettingsError, match="isn't the URL of a route"):
        Target.parse("localhost:8080")
    for url in ("http://localhost:99999/embed", "http://[::1/"):
        with pytest.raises(SettingsError, match="isn't the URL of a route"):
            Target.parse(url)
    with pytest.raises(SettingsError, match="0 clients can't ask"):
        drive_each(Target.parse("http://127.0.0.1:9/embed"), [b"{}"], [0], 1)
    with pytest.raises(SettingsError, match="give a --body"):
        make_bodies("/rerank", None, 3)
    with pytest.raises(InputError, match=r"nobody answers on 127\.0\.0\.1, port 9"):
        drive_each(Target.parse("http://127.0.0.1:9/embed"), [b"{}"], [1], 1)
