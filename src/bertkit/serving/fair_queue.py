"""A queue that is fair between clients, and in which short requests pass long ones."""

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar


class QueuedPiece(Protocol):
    """What waits: a part of a client's request."""

    cost: int  # in tokens, about
    cost_so_far: int  # of the parts of its request up to this one

    @property
    def client(self) -> str:
        """Whose it is."""


AnyPiece = TypeVar("AnyPiece", bound=QueuedPiece)


@dataclass
class Client(Generic[AnyPiece]):
    """A client with pieces that wait; `time` grows by the cost of each piece that is taken."""

    time: float
    waiting: list[tuple[float, int, AnyPiece]] = field(default_factory=list)


class FairQueue(Generic[AnyPiece]):
    """Pieces of requests, of which the client comes first that has had the least.

    A client that comes anew begins at the time of the client that was served last, so that it
    neither waits for others' long requests nor catches up on what it didn't ask for. Among the
    pieces of one client that comes first which has the least of its own request before it. It isn't
    safe for threads.

    Source: Goyal, Vin and Cheng 1996, "Start-time Fair Queueing".
    """

    def __init__(self) -> None:
        self._clients: dict[str, Client[AnyPiece]] = {}
        self._turns: list[tuple[float, int, str]] = []
        self._time = 0.0
        self._count = 0
        self._num_waiting = 0
        self.cost = 0  # of all that waits

    def __len__(self) -> int:
        return self._num_waiting

    def push(self, piece: AnyPiece) -> None:
        """Let a piece wait."""
        self._count += 1
        client = self._clients.get(piece.client)
        if client is None:
            client = self._clients[piece.client] = Client(self._time)
            heappush(self._turns, (client.time, self._count, piece.client))
        heappush(client.waiting, (client.time + piece.cost_so_far, self._count, piece))
        self.cost += piece.cost
        self._num_waiting += 1

    def pop(self) -> AnyPiece:
        """Take the next piece; there must be one."""
        self._time, _, name = heappop(self._turns)
        client = self._clients[name]
        _, _, piece = heappop(client.waiting)
        client.time += piece.cost
        if client.waiting:
            self._count += 1
            heappush(self._turns, (client.time, self._count, name))
        else:
            del self._clients[name]
        self.cost -= piece.cost
        self._num_waiting -= 1
        return piece
