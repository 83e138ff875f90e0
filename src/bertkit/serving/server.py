"""The server's process: it loads the models, listens, and ends when it is told to."""

import asyncio
import math
import os
import re
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast

import httptools
import orjson
import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from bertkit.base.errors import SettingsError
from bertkit.base.files import read_text
from bertkit.base.progress import announce
from bertkit.base.settings import select
from bertkit.base.signals import HANGUPS, STOP_SIGNALS
from bertkit.checkpoints.formats import name_model
from bertkit.checkpoints.hub import Part, find_bundled
from bertkit.retrieval.search_index import SearchIndex
from bertkit.retrieval.settings import SearchSettings
from bertkit.serving.app import build_app
from bertkit.serving.errors import (
    CrowdedError,
    LargeHeadError,
    LoadingError,
    MalformedError,
    ServingError,
    SlowRequestError,
    find_style,
    write_error,
)
from bertkit.serving.models import ServedModel
from bertkit.serving.service import Service
from bertkit.serving.settings import ServeSettings

Headers = Sequence[tuple[bytes, bytes]]

KEYS_VARIABLE, ADMIN_VARIABLE = "BERTKIT_KEYS", "BERTKIT_ADMIN_KEY"
# What is served if no model is named.
BUNDLED: Mapping[str, Part] = {"all-MiniLM-L6-v2": "vectors", "all-MiniLM-L6-v2-words": "words"}
KEEP_ALIVE_SECONDS = 30
RELOAD_SIGNALS = (signal.SIGUSR1,) if hasattr(signal, "SIGUSR1") else ()
PATIENCE = 1.0  # seconds for what models compute for clients that have left
BACKLOG = 2048  # connections that wait until they are accepted
HEAD_SECONDS = 10.0  # in which a request's line and headers must arrive
SEND_SECONDS = 30.0  # in which a client must read something of its answer
MAX_HEAD_BYTES, MAX_HEADERS = 32 << 10, 100  # of a request's line and headers
LARGE_HEAD = (
    f"a request may have {MAX_HEADERS} headers, and {MAX_HEAD_BYTES >> 10} KiB before its body"
)
MAX_PIPELINED = 16  # requests that were sent before the answer to an earlier one
UPGRADES = b"upgrade", b"connection", b"http2-settings"
KEY_FORM = "letters, digits and ._~+/-, then any ="
MAX_KEY_BYTES = 1 << 20  # of a file of keys
KEY = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # what may follow Bearer; Source: RFC 6750, 2.1


def serve(models: Sequence[str], settings: ServeSettings) -> None:
    """Serve models until a signal ends it; what is running is finished."""
    named = name_models(models)
    for name, corpus in name_corpora(settings.corpus, named).items():
        # Here a signal stops the building of an index, and the next start goes on with it.
        SearchIndex.open(named[name], corpus, select(SearchSettings, settings))
    server = ModelServer(named, settings)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(server.run())
        if not server.service.close(PATIENCE):  # a thread that works for nobody can't be stopped
            os._exit(0)


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


def name_corpora(corpora: Sequence[str], models: Mapping[str, str]) -> dict[str, str]:
    """Return the corpora by the names of their models: `NAME=FILE`, or of the first model."""
    named: dict[str, str] = {}
    for one in corpora:
        name, is_named, path = one.partition("=")
        if not is_named or "/" in name:
            name, path = next(iter(models)), one
        if name not in models or name in named:
            problem = "has two corpora" if name in named else "isn't served"
            raise SettingsError(f"--corpus {one}: the model {name} {problem}; write NAME=FILE")
        named[name] = path
    return named


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with limits that it leaves to a proxy, and errors in JSON.

    Attributes:
        head_since: when the connection began to wait for a request's line and headers; infinite
            while it doesn't, or rests between requests, which uvicorn limits itself.
    """

    url = b""
    head_since = math.inf
    _is_in_head = False
    _is_refused = False
    _head_size = 0
    _unsent, _unsent_since = 0, 0.0

    def connection_made(self, transport: Any) -> None:
        """Refuse a connection too many."""
        super().connection_made(transport)
        self.head_since = self.loop.time()
        limit, self.limit_concurrency = self.limit_concurrency, None  # uvicorn's isn't JSON
        if limit is not None and len(self.connections) > limit:
            self._refuse(CrowdedError(f"there are {limit:,} connections already; try again"))

    def data_received(self, data: bytes) -> None:
        """Read a part of a request, or several."""
        if self._is_refused:
            return
        self._unset_keepalive_if_required()
        self._head_size += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            cause = error.__context__
            unknown = MalformedError("this isn't a request of HTTP/1.1")
            self._refuse(cause if isinstance(cause, ServingError) else unknown)
        else:
            if self._is_in_head and self._head_size > MAX_HEAD_BYTES:
                self._refuse(LargeHeadError(LARGE_HEAD))
        if self.head_since == math.inf and (self._is_in_head or not self._is_answering):
            self.head_since = self.loop.time()

    def _feed(self, data: bytes) -> None:
        """Parse data; where it asks for another protocol, it is read as if it didn't.

        Java's client asks so by default, and what follows would be taken for the next request.
        """
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as pause:
            others = (one for one in self.headers if one[0] not in UPGRADES)
            lines = [self.parser.get_method() + b" " + self.url + b" HTTP/1.1"]
            lines += [name + b": " + value for name, value in others]
            self.parser = httptools.HttpRequestParser(self)
            self._feed(b"\r\n".join([*lines, b"", data[pause.args[0] :]]))

    @property
    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def on_message_begin(self) -> None:
        """Begin to count what the head takes."""
        super().on_message_begin()
        self._is_in_head, self._head_size = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those behind the body could change a request that was checked."""
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Check a head, and answer its request."""
        self._is_in_head, self.head_since = False, math.inf
        if refusal := check_head(self.url, self.headers, self.parser.get_http_version()):
            raise refusal
        if len(self.pipeline) >= MAX_PIPELINED:
            raise MalformedError("too many requests were sent before their answers")
        if not self.parser.should_upgrade():
            super().on_headers_complete()
        elif self.parser.get_method() == b"CONNECT":
            raise MalformedError("this server is no proxy")

    def on_message_complete(self) -> None:
        """End a request."""
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request; what is left of this one's body must come soon."""
        if not self.pipeline and self.cycle.more_body:
            self.head_since = self.loop.time()
        super().on_response_complete()

    def check_deadlines(self) -> None:
        """Close the connection if its client is too slow to send or to read."""
        now, size = self.loop.time(), self.transport.get_write_buffer_size()
        if now - self.head_since > HEAD_SECONDS and not self._is_answering:
            if self._is_in_head:
                self._refuse(SlowRequestError("the request didn't arrive in time"))
            self.transport.close()
        if not size or size != self._unsent:
            self._unsent_since = now
        elif now - self._unsent_since > SEND_SECONDS:
            self.transport.abort()
        self._unsent = size

    def shutdown(self) -> None:
        """End when what was received whole is answered."""
        if self._is_answering and self.cycle.more_body:
            self._refuse(LoadingError("the server is stopping"))
        super().shutdown()

    def _refuse(self, error: ServingError) -> None:
        """Answer what can't be read, and close the connection when answers before it are sent."""
        self._is_refused = True
        cycle = self.cycle
        if self.pipeline or (
            self._is_answering and (cycle.response_started or not cycle.more_body)
        ):
            cycle.keep_alive = False
            return
        status, content = write_error(error, find_style(self.url.decode("latin-1")))
        body = orjson.dumps(content)
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def check_head(url: bytes, headers: Headers, version: str) -> ServingError | None:
    """Return what is wrong with a request's line and headers: their size, or two meanings."""
    size = len(url) + sum(len(name) + len(value) for name, value in headers)
    if size > MAX_HEAD_BYTES or len(headers) > MAX_HEADERS:
        return LargeHeadError(LARGE_HEAD)
    names = [name for name, _ in headers]
    if version not in {"1.0", "1.1"} or names.count(b"host") > 1:
        return MalformedError("this isn't a request of HTTP/1.1 with one Host")
    if version == "1.1" and b"host" not in names:
        return MalformedError("the request has no Host")
    if any(value.lower() != b"chunked" for name, value in headers if name == b"transfer-encoding"):
        return MalformedError("Transfer-Encoding must be chunked")
    return None


class Listener(uvicorn.Server):
    """uvicorn, but signals are handled by the server of models, and connections have deadlines."""

    async def on_tick(self, counter: int) -> bool:
        """Look at the connections each second."""
        if counter % 10 == 0:
            for one in list(self.server_state.connections):
                cast("Connection", one).check_deadlines()
        return await super().on_tick(counter)

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
        corpora = name_corpora(settings.corpus, models)
        served = [
            ServedModel(name, path, settings, corpora.get(name)) for name, path in models.items()
        ]
        self.service = Service(served, settings)
        self._settings = settings
        self._socket = bind(settings)
        self.port: int = self._socket.getsockname()[1]
        keys = read_keys(settings.key_file)
        self._is_open = not keys and not ip_address(self._socket.getsockname()[0]).is_loopback
        check_certificate(settings)
        config = uvicorn.Config(
            build_app(self.service, keys, read_admin_key()),
            http=Connection,
            ws="none",
            limit_concurrency=settings.max_connections,
            log_level="error",  # else whoever sends nonsense fills the log
            ssl_certfile=settings.ssl_certfile,
            ssl_keyfile=settings.ssl_keyfile,
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
        with self._socket, handled_signals(self):
            serving = asyncio.create_task(self._listener.serve(sockets=[self._socket]))
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
        while not self._listener.started:
            await asyncio.sleep(0.01)
        names = ", ".join(self.service.models)
        if self._is_open:
            announce("warning: without --keys whoever reaches the server can use it")
        scheme = "https" if self._settings.ssl_certfile else "http"
        host = f"[{self._settings.host}]" if ":" in self._settings.host else self._settings.host
        tell(f"serving {names} on {scheme}://{host}:{self.port}")

    def stop(self) -> None:
        """Take no new requests, and end when the running ones are answered."""
        self.service.is_stopping = True
        self._listener.should_exit = True


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
    certificate, key = settings.ssl_certfile, settings.ssl_keyfile
    if certificate is None and key is None:
        return
    if certificate is None:
        raise SettingsError("--ssl-keyfile needs the certificate, too: --ssl-certfile FILE")
    try:  # the password of an encrypted key would be asked for at the terminal
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: "")
    except (OSError, ValueError) as error:
        names = certificate if key is None else f"{certificate} and {key}"
        raise SettingsError(
            f"{names} must be a certificate and its key in PEM, without a password; {error}"
        ) from None


@contextmanager
def handled_signals(server: ModelServer) -> Iterator[None]:
    """End a server when it is told to, and load its models again at SIGUSR1.

    The next signal ends it at once. Outside the main thread signals can't be caught, so nothing
    happens.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    numbers = [one for one in STOP_SIGNALS if one not in HANGUPS or not is_ignored(one)]
    before = {one: signal.getsignal(one) for one in (*numbers, *RELOAD_SIGNALS)}

    def stop() -> None:
        for number in numbers:  # a terminal that closes often hangs up twice
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN if number in HANGUPS else signal.SIG_DFL)
        server.stop()

    for number in before:
        is_reload = number in RELOAD_SIGNALS
        loop.add_signal_handler(number, server.service.reload_soon if is_reload else stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def is_ignored(number: signal.Signals) -> bool:
    """Whether a signal is ignored, as SIGHUP is under `nohup`."""
    return signal.getsignal(number) is signal.SIG_IGN


def read_admin_key() -> str | None:
    """Return the key of whoever runs the server, from the environment."""
    key = os.environ.get(ADMIN_VARIABLE)
    if key is not None and not KEY.fullmatch(key):
        raise SettingsError(f"{ADMIN_VARIABLE} isn't a key: {KEY_FORM}; or leave it out")
    return key


def read_keys(path: Path | None) -> list[str]:
    """Return the keys of a file, or else those of the environment, one a line.

    Empty lines and those that begin with # are left out.
    """
    if path is None and KEYS_VARIABLE not in os.environ:
        return []
    source = KEYS_VARIABLE if path is None else str(path)
    text = os.environ[KEYS_VARIABLE] if path is None else read_text(path, limit_bytes=MAX_KEY_BYTES)
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    keys = [(number, line) for number, line in lines if line and not line.startswith("#")]
    for number, key in keys:
        if not KEY.fullmatch(key):
            raise SettingsError(f"line {number} of {source} isn't a key: {KEY_FORM}")
    if not keys:
        raise SettingsError(f"{source} has no key; write one a line, or leave it out")
    return [key for _, key in keys]
