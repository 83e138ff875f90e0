"""How a server starts, and the one line that says why it doesn't."""

import socket

import pytest
import uvloop
from tests.waiting import TIMEOUT_SECONDS

from bertkit.base.errors import SettingsError
from bertkit.cli.main import main
from bertkit.serving.server import ModelServer, bind, make_runner
from bertkit.serving.settings import ServeSettings


def read_start(server):
    """The line that a server tells once it is ready; then it ends."""
    said = []

    def tell(line):
        said.append(line)
        server.stop()

    with make_runner() as runner:
        runner.run(server.run(tell))
    assert server.service.close(TIMEOUT_SECONDS)
    (line,) = said
    return line


def fail_to_start(capsys, *words):
    """The one line that the command ends with."""
    assert main(["serve", *words]) == 2
    *before, line = capsys.readouterr().err.splitlines()
    assert all(one.startswith("computing on cpu") for one in before)
    return line


def test_a_port_that_another_program_has_is_told(capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        line = fail_to_start(capsys, "--port", port)
        assert f"can't listen on '127.0.0.1', port {port}: Address already in use; choose" in line


def test_two_servers_that_start_together_do_not_share_a_port():
    with (
        bind(ServeSettings(port=0)) as first,
        pytest.raises(SettingsError, match="already in use"),
    ):
        bind(ServeSettings(port=first.getsockname()[1]))


@pytest.mark.parametrize(
    ("host", "cause"),
    [
        ("no-such-host.invalid", "can't listen on 'no-such-host.invalid', port 0: "),
        ("192.0.2.1", "Cannot assign requested address; choose another --port or --host"),
        ("ü" * 70, "this can't be a host"),
        ("", "must have 1 or more characters"),
    ],
)
def test_a_host_that_is_not_here_is_told(capsys, host, cause):
    assert cause in fail_to_start(capsys, "--host", host, "--port", "0")


def test_no_permission_is_told(monkeypatch):
    def refuse(self, address):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(SettingsError, match="port 80: Permission denied; choose another --port"):
        ModelServer({}, ServeSettings(port=80))


def test_a_model_that_can_not_be_loaded_is_told_whatever_was_loaded_before(capsys, models):
    line = fail_to_start(capsys, models["words"], "none/", "--port", "0", "--device", "cpu")
    assert "none" in line


def test_what_waits_or_runs_is_counted(client):
    assert 'te_queue_size{model="words"} 0.0' in client.get("/metrics").content.decode()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_each_model_is_told_with_its_precision(models, precision):
    """An encoder's is its engine's, a decoder's that of its weights."""
    named = {name: models[name] for name in ("words", "translator", "writer") if name in models}
    settings = ServeSettings(port=0, device="cpu", engine="torch", precision=precision)
    server = ModelServer(named, settings)
    expected = ", ".join(f"{name} ({precision})" for name in named)
    assert read_start(server) == f"serving {expected} on http://127.0.0.1:{server.port}"


def test_a_server_runs_on_a_loop_in_c():
    with make_runner() as runner:  # that of `bertkit serve`, of these tests and of the benchmarks
        assert isinstance(runner.get_loop(), uvloop.Loop)


def test_an_address_of_ipv6_is_in_brackets():
    server = ModelServer({}, ServeSettings(host="::1", port=0))
    assert read_start(server) == f"serving  on http://[::1]:{server.port}"
