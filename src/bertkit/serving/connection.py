"""Connections: uvicorn's, with the limits that it leaves to a proxy, and errors in JSON."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import httptools
import uvicorn
from starlette.requests import Request
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from bertkit.serving.errors import Reason, ServingError
from bertkit.serving.responder import REFUSAL, refuse

HEAD_SECONDS = 10.0  # in which a request's line and headers must arrive
SEND_SECONDS = 30.0  # in which a client must read something of its answer
MAX_HEAD_BYTES, MAX_HEADERS = 32 << 10, 100  # of a request's line and headers
LARGE_HEAD = (
    f"a request may have {MAX_HEADERS} headers, and {MAX_HEAD_BYTES >> 10} KiB before its body"
)
MAX_PIPELINED = 16  # requests that were sent before the answer to an earlier one
UPGRADES = b"upgrade", b"connection", b"http2-settings"


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with limits that it leaves to a proxy, and errors in JSON.

    Attributes:
        head_since: when the connection began to wait for a request's line and headers; infinite
            while it doesn't, or rests between requests, which uvicorn limits itself.
    """

    head_since = math.inf
    _is_in_head = False
    _is_refused = False
    _head_size = 0
    _unsent, _unsent_since = 0, 0.0

    def connection_made(self, transport: Any) -> None:
        """Refuse connections over the limit."""
        super().connection_made(transport)
        super().on_message_begin()  # what is refused before has a scope, too
        self.head_since = self.loop.time()
        limit, self.limit_concurrency = self.limit_concurrency, None  # uvicorn's isn't JSON
        if limit is not None and len(self.connections) > limit:
            self._refuse(
                Reason.CROWDED.error(f"there are {limit:,} connections already; try again", 1)
            )

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
            unknown = Reason.MALFORMED.error("this isn't a request of HTTP/1.1")
            self._refuse(cause if isinstance(cause, ServingError) else unknown)
        else:
            if self._is_in_head and self._head_size > MAX_HEAD_BYTES:
                self._refuse(Reason.LARGE_HEAD.error(LARGE_HEAD))
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
            version = self.parser.get_http_version().encode()
            lines = [self.parser.get_method() + b" " + self.url + b" HTTP/" + version]
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
        """Answer a request, unless its head is too large or could be read in two ways."""
        self._is_in_head, self.head_since = False, math.inf
        version, names = self.parser.get_http_version(), [name for name, _ in self.headers]
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        codings = (value for name, value in self.headers if name == b"transfer-encoding")
        if size > MAX_HEAD_BYTES or len(names) > MAX_HEADERS:
            raise Reason.LARGE_HEAD.error(LARGE_HEAD)
        if version not in {"1.0", "1.1"} or names.count(b"host") > 1:
            raise Reason.MALFORMED.error("this isn't a request of HTTP/1.1 with one Host")
        if version == "1.1" and b"host" not in names:
            raise Reason.MALFORMED.error("the request has no Host")
        if any(coding.lower() != b"chunked" for coding in codings):
            raise Reason.MALFORMED.error("Transfer-Encoding must be chunked")
        if len(self.pipeline) >= MAX_PIPELINED:
            raise Reason.MALFORMED.error("too many requests were sent before their answers")
        if not self.parser.should_upgrade():
            super().on_headers_complete()
        elif self.parser.get_method() == b"CONNECT":
            raise Reason.MALFORMED.error("this server is no proxy")

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
                self._refuse(Reason.SLOW.error("the request didn't arrive in time"))
            self.transport.close()
        if not size or size != self._unsent:
            self._unsent_since = now
        elif now - self._unsent_since > SEND_SECONDS:
            self.transport.abort()
        self._unsent = size

    def shutdown(self) -> None:
        """End when what was received whole is answered."""
        if self._is_answering and self.cycle.more_body:
            self._refuse(Reason.LOADING.error("the server is stopping"))
        super().shutdown()

    def _refuse(self, error: ServingError) -> None:
        """Answer what can't be read, and close the connection when answers before it are sent.

        Where only the body can't be read, the application has the request, and answers it.
        """
        self._is_refused = True
        if self._is_answering:
            self.cycle.keep_alive = False
            if self.cycle.more_body:
                self.cycle.scope["state"][REFUSAL] = error
                self.cycle.message_event.set()
            return
        scope = {**self.scope, "path": self.url.decode("latin-1"), "app": self.config.app}
        answer = refuse(Request(scope), error)
        answer.headers["connection"] = "close"
        lines = [name + b": " + value + b"\r\n" for name, value in answer.raw_headers]
        head = b"".join([STATUS_LINE[answer.status_code], *lines, b"\r\n"])
        self.transport.write(head + bytes(answer.body))
        self.transport.close()


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
