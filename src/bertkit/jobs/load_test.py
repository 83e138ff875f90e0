"""Load for a server: clients that each send a request when the one before is answered."""

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bertkit.base.errors import InputError, SettingsError, pluralize
from bertkit.base.files import read_text
from bertkit.reports.figures.line_chart import LineChart, Series
from bertkit.reports.report import Charts, Report, Table, write_report
from bertkit.reports.text import format_percent

QUANTILES = (0.5, 0.95, 0.99)
HEAD_END = b"\r\n\r\n"
OK, KEYLESS = 200, 401


@dataclass(frozen=True)
class Target:
    """Where requests go.

    Attributes:
        host, port: of the server.
        path: of the route, with its query.
        key: that is sent with each request, or empty.
    """

    host: str
    port: int
    path: str
    key: str = ""

    @classmethod
    def parse(cls, url: str, key: str = "") -> "Target":
        """Read the URL of a route; it is a SettingsError if it isn't http."""
        try:
            parts = urlsplit(url)
            port = parts.port or 80
        except ValueError:
            parts, port = urlsplit(""), 0
        if parts.scheme != "http" or not parts.hostname:
            raise SettingsError(
                f"{url!r:.80} isn't the URL of a route, such as http://host:8080/embed"
            )
        path = parts._replace(scheme="", netloc="", fragment="").geturl()
        return cls(parts.hostname, port, path or "/", key)

    def write(self, body: bytes) -> bytes:
        """Return the bytes of a POST."""
        key = f"Authorization: Bearer {self.key}\r\n" if self.key else ""
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n{key}"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


@dataclass
class LoadResult:
    """What a number of clients saw.

    Attributes:
        num_clients: that were there at once.
        seconds: how long.
        latencies: seconds of each request that was answered with 200, in order of their ends.
        statuses: how many requests ended with each status; 0 for a broken connection.
    """

    num_clients: int
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    @property
    def requests_per_second(self) -> float:
        """Requests that were answered with 200."""
        return len(self.latencies) / self.seconds

    def quantile(self, share: float) -> float:
        """Return the seconds that this share of requests took at most; NaN without a request."""
        if not self.latencies:
            return math.nan
        return sorted(self.latencies)[
            min(len(self.latencies) - 1, int(share * len(self.latencies)))
        ]

    def as_row(self) -> dict[str, Any]:
        """Return figures of the result, latencies in milliseconds."""
        quantiles = {f"p{100 * one:.0f}_ms": 1000 * self.quantile(one) for one in QUANTILES}
        refused = {str(status): count for status, count in self.statuses.items() if status != OK}
        return {
            "clients": self.num_clients,
            "requests_per_second": self.requests_per_second,
            **quantiles,
            "refused": dict(sorted(refused.items())),
        }


class LoadClient(asyncio.Protocol):
    """One connection of a client: it sends, waits for the answer, and sends again."""

    def __init__(self, requests: Iterator[bytes], result: LoadResult, stop: float) -> None:
        self.is_done = asyncio.get_running_loop().create_future()
        self._requests = requests
        self._result = result
        self._stop = stop
        self._received = bytearray()
        self._sent: float | None = None  # when, while it waits for the answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport: Any = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        """Collect an answer; when it is whole, note it and send the next request."""
        self._received += data
        end = self._received.find(HEAD_END)
        if end < 0:
            return
        head = self._received[:end].lower()
        _, is_stated, length = head.partition(b"content-length:")
        if not is_stated:
            self.is_done.set_exception(InputError("answers that are streams can't be measured"))
            self._transport.abort()
            return
        size = int(length.split(b"\r\n", 1)[0])
        if len(self._received) < end + len(HEAD_END) + size:
            return
        self._note(int(head.split(b" ", 2)[1]))
        self._received.clear()
        if time.monotonic() < self._stop and b"\r\nconnection: close" not in head:
            self._send()
        else:
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """End; an answer that is missing counts as a status of 0."""
        if self._sent is not None and time.monotonic() < self._stop:
            self._result.statuses[0] += 1
        if not self.is_done.done():
            self.is_done.set_result(None)

    def _send(self) -> None:
        self._sent = time.monotonic()
        self._transport.write(next(self._requests))

    def _note(self, status: int) -> None:
        self._result.statuses[status] += 1
        if status == OK and self._sent is not None:
            self._result.latencies.append(time.monotonic() - self._sent)
        self._sent = None


async def drive(
    target: Target, bodies: Sequence[bytes], num_clients: int, seconds: float
) -> LoadResult:
    """Let clients ask for some seconds, each with one request at a time.

    Args:
        target: where to.
        bodies: of the requests, which are sent in turn.
        num_clients: at once.
        seconds: after which nothing new is sent.

    Raises:
        InputError: nobody listens there, or answers.
    """
    result, begun = LoadResult(num_clients), time.monotonic()
    start = partial(LoadClient, cycle(map(target.write, bodies)), result, begun + seconds)
    loop = asyncio.get_running_loop()

    async def ask() -> None:
        while time.monotonic() < begun + seconds:  # a connection that is closed is replaced
            try:
                _, client = await loop.create_connection(start, target.host, target.port)
            except OSError as error:
                place = f"{target.host}, port {target.port}"
                raise InputError(f"nobody answers on {place}: {error.strerror}") from None
            await client.is_done

    if num_clients < 1 or seconds <= 0:
        raise SettingsError(f"{num_clients} clients can't ask for {seconds:g} s; take 1 or more")
    try:
        everyone = asyncio.gather(*(ask() for _ in range(num_clients)))
        await asyncio.wait_for(everyone, 10 * seconds + 60)
    except TimeoutError:
        raise InputError(f"the server left requests unanswered for {10 * seconds:g} s") from None
    result.seconds = time.monotonic() - begun
    return result


def drive_each(
    target: Target,
    bodies: Sequence[bytes],
    nums_clients: Iterable[int],
    seconds: float,
) -> list[LoadResult]:
    """Return the result of each number of clients, one after the other."""
    results = []
    for num_clients in nums_clients:
        results.append(asyncio.run(drive(target, bodies, num_clients, seconds)))
        if KEYLESS in results[-1].statuses:
            raise InputError("the server asks for a key; give it with --key")
    return results


TAKE_TEXTS = "embeddings", "embed", "predict", "classify", "score", "tag", "generate", "translate"
SAMPLE = "it rained all day in the old town and the river rose until the bridge was under water"
HEADS = ["clients", "requests/s", *(f"p{100 * one:.0f} ms" for one in QUANTILES), "refused"]
NUM_TEXTS = 50  # different ones, which begin with another word each


def make_bodies(path: str, body: Path | None, num_words: int) -> list[bytes]:
    """Return the bodies of requests: that of a file, or texts for a route of vectors."""
    if body is not None:
        return [read_text(body).encode()]
    name = "input" if path.partition("?")[0].endswith("embeddings") else "inputs"
    if not path.partition("?")[0].endswith(TAKE_TEXTS):
        raise SettingsError(f"texts alone aren't a request of {path}; give a --body")
    words = SAMPLE.split() * (NUM_TEXTS + num_words)
    texts = (" ".join(words[start : start + num_words]) for start in range(NUM_TEXTS))
    return [json.dumps({name: text}).encode() for text in texts]


def tabulate(results: Sequence[LoadResult]) -> str:
    """Return the figures as lines of a table."""
    cells = [HEADS, *map(list_cells, results)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.rjust, row, widths)) for row in cells)


def list_cells(result: LoadResult) -> list[str]:
    """Return the cells of a row."""
    num_clients, *figures, refused = result.as_row().values()
    described = ", ".join(f"{count:,} × {status}" for status, count in refused.items())
    return [f"{num_clients:,}", *(f"{one:,.1f}" for one in figures), described or "–"]


def draw(url: str, results: Sequence[LoadResult], output: Path) -> None:
    """Write a page with latency over throughput."""
    series = [
        Series(
            f"{format_percent(share, 0)} of the requests",
            [(one.requests_per_second, 1000 * one.quantile(share)) for one in results],
        )
        for share in QUANTILES
    ]
    best = max(results, key=lambda one: one.requests_per_second)
    chart = LineChart("latency over throughput", "requests a second", "milliseconds", series)
    title = (
        f"{best.requests_per_second:,.0f} requests a second with"
        f" {pluralize(best.num_clients, 'client')}"
    )
    summary = f"Half of them were answered within {1000 * best.quantile(0.5):,.0f} ms."
    table = Table(HEADS, list(map(list_cells, results)))
    write_report(output, Report(title, summary, [Charts([chart]), table], url))
