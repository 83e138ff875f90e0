"""Speaking to a server through a socket, byte by byte, as no client would."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

from tests.waiting import TIMEOUT_SECONDS

NEVER = Event()


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for what comes soon, or fail."""
    for _ in range(TIMEOUT_SECONDS * 50):
        if condition():
            return
        NEVER.wait(1 / 50)
    raise AssertionError(f"it didn't come within {TIMEOUT_SECONDS} s")


@dataclass(frozen=True)
class RawAnswers:
    """What came back.

    Attributes:
        statuses: of the answers, in order.
        content: all that came.
        is_closed: whether the server closed the connection, instead of waiting for more.
    """

    statuses: list[int]
    content: bytes
    is_closed: bool


def send(port: int, *parts: bytes, wait: float = 0.05, patience: float = 0.5) -> RawAnswers:
    """Send parts with a pause between them, and return the answers.

    Args:
        patience: seconds of silence after which the server is taken to wait for more.
    """
    content, is_closed = b"", False
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) as place:
        try:
            for number, part in enumerate(parts):
                NEVER.wait(wait if number else 0)
                place.sendall(part)
            place.settimeout(patience)
            while part := place.recv(1 << 16):
                content += part
            is_closed = True
        except TimeoutError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            is_closed = True
    return RawAnswers(read_statuses(content), content, is_closed)


def read_statuses(content: bytes) -> list[int]:
    """Return the statuses of consecutive answers, each with a Content-Length."""
    statuses = []
    while content:
        head, _, rest = content.partition(b"\r\n\r\n")
        version, status, *_ = head.split(b" ", 2)
        assert version == b"HTTP/1.1", content[:200]
        statuses.append(int(status))
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        length = int(fields.get(b"content-length", b"0"))
        assert len(rest) >= length, content[:200]
        content = rest[length:]
    return statuses
