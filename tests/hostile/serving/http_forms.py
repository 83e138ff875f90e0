"""Requests that are malformed, or that two readers of HTTP could understand in two ways.

Each has the statuses that it comes to, and whether the server closes the connection after them. The
request behind it must never be answered with what the first one hid.

Source: RFC 9112; "HTTP Desync Attacks", Kettle 2019, for the forms of smuggling.
"""

import json
from collections.abc import Iterator, Mapping

import pytest
from _pytest.mark import ParameterSet

BODY = json.dumps({"inputs": "the [MASK] saw"}).encode()
POST = b"POST /v1/models/words/fill-mask HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
GET = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
VALID = POST + LENGTH + b"\r\n" + BODY
Form = tuple[bytes, list[int], bool]


def list_forms() -> Iterator[ParameterSet]:
    """Yield each form, the first of each kind for `make test`: bytes, statuses, whether it ends."""
    for kind in list_kinds():
        for number, (name, form) in enumerate(kind.items()):
            yield pytest.param(*form, id=name, marks=[pytest.mark.exhaustive] * (number > 0))


def list_kinds() -> Iterator[Mapping[str, Form]]:
    """Yield the forms of each kind by name."""
    behind = LENGTH + b"\r\n" + BODY + GET
    heads = {name: POST + head + behind for name, head in BAD_LINES.items()}
    frames = {name: POST + head + b"\r\n" + CHUNKS + GET for name, head in BAD_FRAMES.items()}
    lengths = {
        name: POST + b"Content-Length: " + length + b"\r\n\r\n{}" + GET
        for name, length in BAD_LENGTHS.items()
    }
    chunks = {name: POST + CHUNKED + b"\r\n" + one + GET for name, one in BAD_CHUNKS.items()}
    requests = {name: request + GET for name, request in BAD_REQUESTS.items()}
    for kind in (heads, frames, lengths, chunks, requests):
        yield {name: (request, [400], True) for name, request in kind.items()}
    yield {name: (request, [431], True) for name, request in LARGE.items()}
    yield {
        "a length of 2^63": (POST + b"Content-Length: %d\r\n\r\n{}" % 2**63, [413], True),
        "a body of 3 MB": (
            POST + b"Content-Length: 3000000\r\n\r\n" + b"a" * 3_000_000 + GET,
            [413, 200],
            False,
        ),
    }
    yield GOOD


BAD_LINES = {
    "a folded header": b"X: a\r\n b\r\n",
    "a carriage return in a value": b"X: a\rb\r\n",
    "a NUL in a value": b"X: a\0b\r\n",
    "a space in a name": b"X Y: a\r\n",
    "a header without a colon": b"XY\r\n",
    "a header without a name": b": a\r\n",
    "two hosts": b"Host: y\r\n",
    "a second length": LENGTH,
    "another length": b"Content-Length: 3\r\n",
}
BAD_FRAMES = {
    "a length and chunks": b"Content-Length: 5\r\n" + CHUNKED,
    "chunks and a length": CHUNKED + b"Content-Length: 5\r\n",
    "an unknown coding": b"Transfer-Encoding: xchunked\r\n",
    "the coding identity": b"Transfer-Encoding: identity\r\n",
    "gzip before chunks": b"Transfer-Encoding: gzip, chunked\r\n",
    "gzip after chunks": b"Transfer-Encoding: chunked, gzip\r\n",
    "chunks twice": CHUNKED + CHUNKED,
    "a space before the colon": b"Transfer-Encoding : chunked\r\n",
    "a tab before the coding, and a length": b"Transfer-Encoding:\tchunked\r\n" + LENGTH,
    "a vertical tab before the coding": b"Transfer-Encoding: \x0bchunked\r\n",
}
BAD_LENGTHS = {
    "a list of lengths": b"2, 2",
    "a length with a plus": b"+2",
    "a negative length": b"-1",
    "a hexadecimal length": b"0x2",
    "a length of 10^21": b"1" + b"0" * 21,
    "an empty length": b"",
    "a length with a space": b"2 2",
}
BAD_CHUNKS = {
    "a size that is no number": b"zz\r\n{}\r\n0\r\n\r\n",
    "a size with 0x": b"0x2\r\n{}\r\n0\r\n\r\n",
    "a negative size": b"-2\r\n{}\r\n0\r\n\r\n",
    "a size of 17 digits": b"f" * 17 + b"\r\n{}\r\n0\r\n\r\n",
    "a size with a space": b"2 \r\n{}\r\n0\r\n\r\n",
    "a chunk without its end": b"2\r\n{}0\r\n\r\n",
    "chunks with bare line feeds": b"2\n{}\n0\n\n",
}
BAD_REQUESTS = {
    "bare line feeds": VALID.replace(b"\r\n", b"\n"),
    "no host": VALID.replace(b"Host: x\r\n", b""),
    "CONNECT": b"CONNECT example.org:80 HTTP/1.1\r\nHost: x\r\n\r\n",
    "HTTP/0.9": b"GET /health\r\n\r\n",
    "HTTP/1.9": b"GET /health HTTP/1.9\r\nHost: x\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an unknown method": b"FOO /health HTTP/1.1\r\nHost: x\r\n\r\n",
    "a method in small letters": b"get /health HTTP/1.1\r\nHost: x\r\n\r\n",
    "a path that isn't ASCII": "GET /hé HTTP/1.1\r\nHost: x\r\n\r\n".encode(),
    "a path without a slash": b"GET health HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303"),
    "nonsense": b"\x00\xff" * 50,
}
LARGE = {
    "a header of 40 kB": POST + b"X: " + b"a" * 40_000 + b"\r\n" + LENGTH + b"\r\n" + BODY,
    "a header without an end": POST + b"X: " + b"a" * 1_000_000,
    "100 headers more": POST + b"X: a\r\n" * 100 + LENGTH + b"\r\n" + BODY,
    "a path of 70 kB": b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
}
UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAE\r\n"
ANSWERED = {  # with the request behind them
    "a request as it should be": VALID,
    "chunks": POST + CHUNKED + b"\r\n" + CHUNKS,
    "chunks with an extension": POST + CHUNKED + b"\r\n" + CHUNKS.replace(b"\r\n", b";a=b\r\n", 1),
    "an upgrade, as Java asks for it": POST + UPGRADE + LENGTH + b"\r\n" + BODY,
    "an upgrade to a web socket": GET[:-2] + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    "a body of a GET": GET[:-2] + b"Content-Length: 5\r\n\r\nhello",
}
LIKE_A_REQUEST = POST + b"Content-Length: %d\r\n\r\n" % len(GET) + GET
OLD_CHUNKS = POST.replace(b"1.1", b"1.0") + CHUNKED + b"\r\n" + CHUNKS
ELSEWHERE = b"GET http://example.org/health HTTP/1.1\r\nHost: x\r\n\r\n"
GOOD: dict[str, Form] = {
    **{name: (request + GET, [200, 200], False) for name, request in ANSWERED.items()},
    "a body that looks like a request": (LIKE_A_REQUEST + GET, [400, 200], False),
    "chunks in HTTP/1.0": (OLD_CHUNKS + GET, [200], True),
    "an address of another server": (ELSEWHERE, [200], False),
    "a path out of its folder": (GET.replace(b"health", b"../../etc/passwd"), [404], False),
    "a path of NUL": (GET.replace(b"health", b"v1/models/%00%ff%0a"), [404], False),
    "an asterisk": (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", [404], False),
    "empty lines before it": (b"\r\n\r\n" + GET, [200], False),
    "a request after the last one": (GET[:-2] + b"Connection: close\r\n\r\n" + GET, [200], True),
    "nonsense after it": (VALID + b"\0\0\0nonsense", [200], True),
    "100 requests at once": (GET * 100, [200] * 17, True),
}
