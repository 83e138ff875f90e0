"""The server's process: it loads the models, listens, and ends when it is told to."""

import asyncio
import math
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn
import uvloop

from bertkit.base.errors import SettingsError
from bertkit.base.files import read_text
from bertkit.base.progress import announce
from bertkit.base.signals import STOP_SIGNALS
from bertkit.checkpoints.formats import name_model
from bertkit.checkpoints.hub import Part, find_bundled
from bertkit.serving.app import build_app
from bertkit.serving.models import ServedModel
from bertkit.serving.service import Service
from bertkit.serving.settings import ServeSettings

KEYS_VARIABLE = "BERTKIT_KEYS"
# What is served if no model is named.
BUNDLED: Mapping[str, Part] = {"all-MiniLM-L6-v2": "vectors", "all-MiniLM-L6-v2-words": "words"}
KEEP_ALIVE_SECONDS = 30


def serve(models: Sequence[str], settings: ServeSettings) -> None:
    """Serve models until a signal ends it; what is running is finished."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(ModelServer(name_models(models), settings).run())


def name_models(models: Sequence[str]) -> dict[str, str]:
    """Return the models by name: `NAME=PATH`, or the name of their folder."""
    named: dict[str, str] = {}
    for one in models:
        name, is_named, path = one.partition("=")
        if not is_named or "/" in name:
            name, path = name_model(Path(one)), one
        if name in named:
            raise SettingsError(f"two models are named {name}; name one of them: NAME={path}")
        named[name] = path
    return named or {name: str(find_bundled(part)) for name, part in BUNDLED.items()}


class Listener(uvicorn.Server):
    """uvicorn, but for signals: they are handled by the server of models."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


class ModelServer:
    """A server of models, from its start to its end.

    Attributes:
        service: its models; no new requests are taken once it is stopping.
        port: where it listens.
    """

    def __init__(self, models: Mapping[str, str], settings: ServeSettings) -> None:
        self.service = Service(
            [ServedModel(name, path, settings) for name, path in models.items()], settings
        )
        self._settings = settings
        self._socket = bind(settings)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            build_app(self.service, read_keys(settings.key_file)),
            access_log=False,
            log_config=None,
            lifespan="off",
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=math.ceil(settings.timeout),
        )
        self._listener = Listener(config)

    async def run(self, tell: Callable[[str], None] = announce) -> None:
        """Load the models and serve them; the port is open from the beginning, for `/health`.

        Args:
            tell: is called when all are loaded, with a line that says where the server is.
        """
        with self._socket:
            handle_signals(self)
            serving = asyncio.create_task(self._listener.serve(sockets=[self._socket]))
            try:
                await self.service.load()
                names = ", ".join(self.service.models)
                tell(f"serving {names} on http://{self._settings.host}:{self.port}")
            except BaseException:
                self.stop()
                await serving
                raise
            await serving
        self.service.close()

    def stop(self) -> None:
        """Take no new requests, and end when the running ones are answered."""
        self.service.is_stopping = True
        self._listener.should_exit = True


def bind(settings: ServeSettings) -> socket.socket:
    """Return a socket that listens."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    place = socket.socket(family)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((settings.host, settings.port))
    except OSError as error:
        place.close()
        raise SettingsError(
            f"can't listen on {settings.host}, port {settings.port}: {error.strerror}; choose"
            " another --port or --host"
        ) from None
    return place


def handle_signals(server: ModelServer) -> None:
    """End a server when it is told to, and load its models again at SIGUSR1.

    Outside the main thread signals can't be caught, so nothing happens.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, server.stop)
    if hasattr(signal, "SIGUSR1"):
        loop.add_signal_handler(signal.SIGUSR1, server.service.reload)


def read_keys(path: Path | None) -> list[str]:
    """Return the keys of a file, or else those of the environment, one a line."""
    text = os.environ.get(KEYS_VARIABLE, "") if path is None else read_text(path)
    keys = [line.strip() for line in text.splitlines() if line.strip()]
    if path is not None and not keys:
        raise SettingsError(f"{path} has no key; write one a line")
    return keys
