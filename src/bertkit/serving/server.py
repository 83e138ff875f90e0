"""The server's process: it loads the models, listens, and ends when it is told to."""

import asyncio
import math
import os
import signal
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import uvicorn
import uvloop

from bertkit.base.errors import SettingsError
from bertkit.base.progress import announce
from bertkit.base.signals import HANGUPS, STOP_SIGNALS, find_handlers, handled_by
from bertkit.checkpoints.bundled import Part, find_bundled
from bertkit.checkpoints.formats import name_model
from bertkit.serving.app import build_app
from bertkit.serving.connection import Connection, Listener
from bertkit.serving.keys import ADMIN_VARIABLE, KEYS_VARIABLE, Keys
from bertkit.serving.logs import log_requests
from bertkit.serving.searcher import INDEX_SUFFIX
from bertkit.serving.service import ServedModel, Service
from bertkit.serving.settings import ServeSettings

# What is served if no model is named.
BUNDLED: Mapping[str, Part] = {"all-MiniLM-L6-v2": "vectors", "all-MiniLM-L6-v2-words": "words"}
KEEP_ALIVE_SECONDS = 30
RELOAD_SIGNALS = (signal.SIGUSR1,) if hasattr(signal, "SIGUSR1") else ()
STOP_SECONDS = 1.0  # seconds for what models compute for clients that have left
BACKLOG = 2048  # connections that wait until they are accepted


def make_runner() -> asyncio.Runner:
    """Return what runs a server: a loop in C."""
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def run_server(server: "ModelServer", serving: Coroutine[Any, Any, None]) -> None:
    """Run what serves until it ends, and end the threads of the models."""
    if server.service.settings.log_requests:
        log_requests()
    with make_runner() as runner:
        runner.run(serving)
        if not server.service.close(
            STOP_SECONDS
        ):  # a thread that works for nobody can't be stopped
            os._exit(0)


def name_models(models: Sequence[str]) -> dict[str, str]:
    """Return models and indexes by name: `NAME=PATH`, or that of their folder or file."""
    named: dict[str, str] = {}
    for one in models:
        name, path = split_name(one)
        name = name or name_model(Path(path)).removesuffix(INDEX_SUFFIX)
        if name in named:
            raise SettingsError(f"two models are named {name}; name one of them: NAME={path}")
        named[name] = path
    return named or {name: str(find_bundled(part)) for name, part in BUNDLED.items()}


def split_name(text: str) -> tuple[str, str]:
    """Return the name of `NAME=PATH`, empty if there is none, and the path."""
    name, is_named, path = text.partition("=")
    return (name, path) if is_named and "/" not in name else ("", text)


class ModelServer:
    """A server of models, from its start to its end.

    Attributes:
        service: its models; no new requests are taken once it is stopping.
        port: where it listens.
    """

    def __init__(
        self,
        models: Mapping[str, str],
        settings: ServeSettings,
        place: socket.socket | None = None,
        worker: str = "",
    ) -> None:
        served = [ServedModel(name, path, settings) for name, path in models.items()]
        self.service = Service(served, settings, worker)
        self._settings = settings
        self._socket = place or bind(settings)
        self.port: int = self._socket.getsockname()[1]
        keys = Keys.read(KEYS_VARIABLE, settings.key_file)
        self._is_open = not keys and not ip_address(self._socket.getsockname()[0]).is_loopback
        check_certificate(settings)
        config = uvicorn.Config(
            build_app(self.service, keys, Keys.read(ADMIN_VARIABLE)),
            http=Connection,
            ws="none",
            limit_concurrency=settings.max_connections,
            log_level="error",  # else whoever sends nonsense fills the log
            ssl_certfile=settings.ssl_certfile,
            access_log=False,
            log_config=None,
            lifespan="off",
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=math.ceil(settings.timeout),
        )
        self.listener = Listener(config)

    async def run(self, tell: Callable[[str], None] = announce) -> None:
        """Load the models and serve them; the port is open from the beginning, for `/health`.

        Args:
            tell: is called when all are loaded, with a line that says where the server is.
        """
        with self._socket, handled_signals(self):
            serving = asyncio.create_task(self.listener.serve(sockets=[self._socket]))
            loading = asyncio.create_task(self._load(tell))
            try:
                await asyncio.wait({serving, loading}, return_when=asyncio.FIRST_COMPLETED)
                if loading.done():
                    await loading
            except BaseException:
                self.stop()
                raise
            finally:
                await serving
                loading.cancel()

    async def _load(self, tell: Callable[[str], None]) -> None:
        await self.service.load()
        while not self.listener.started:
            await asyncio.sleep(0.01)
        models = self.service.models.values()
        names = ", ".join(f"{one.name} ({one.loaded.precision})" for one in models)
        if self._is_open:
            announce("warning: without --keys whoever reaches the server can use it")
        scheme = "https" if self._settings.ssl_certfile else "http"
        host = f"[{self._settings.host}]" if ":" in self._settings.host else self._settings.host
        tell(f"serving {names} on {scheme}://{host}:{self.port}")

    def stop(self) -> None:
        """Take no new requests, and end when the running ones are answered."""
        self.service.is_stopping = True
        self.listener.should_exit = True


def bind(settings: ServeSettings) -> socket.socket:
    """Return a socket that listens."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    place = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # without Nagle's wait
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((settings.host, settings.port))
        place.listen(BACKLOG)
    except (OSError, TypeError) as error:  # a TypeError for a host that no name can be
        place.close()
        cause = getattr(error, "strerror", None) or "this can't be a host"
        raise SettingsError(
            f"can't listen on {settings.host!r}, port {settings.port}: {cause}; choose another"
            " --port or --host"
        ) from None
    return place


def check_certificate(settings: ServeSettings) -> None:
    """Raise `SettingsError` if there is a certificate, but it or its key can't be used."""
    certificate = settings.ssl_certfile
    if certificate is None:
        return
    try:  # the password of an encrypted key would be asked for at the terminal
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, password=lambda: "")
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"{certificate} must be a certificate and its key in PEM, without a password; {error}"
        ) from None


@contextmanager
def handled_signals(server: ModelServer) -> Iterator[None]:
    """End a server when it is told to, and load its models again at SIGUSR1.

    The next signal ends it at once, whatever it does.
    """
    loop, before = asyncio.get_running_loop(), find_handlers((*STOP_SIGNALS, *RELOAD_SIGNALS))

    def stop(*_: object) -> None:
        for number in before.keys() - {*RELOAD_SIGNALS}:  # a terminal that closes hangs up twice
            signal.signal(number, signal.SIG_IGN if number in HANGUPS else signal.SIG_DFL)
        server.stop()

    def reload(*_: object) -> None:
        loop.call_soon_threadsafe(server.service.reload_soon)

    handlers = dict.fromkeys(STOP_SIGNALS, stop) | dict.fromkeys(RELOAD_SIGNALS, reload)
    with handled_by(handlers, before):
        yield
