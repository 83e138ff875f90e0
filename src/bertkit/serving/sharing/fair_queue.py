"""A queue that is fair between clients, and in which short requests pass long ones."""

from collections import Counter
from heapq import heapify, heappop, heappush, heapreplace

from bertkit.serving.sharing.request import ModelRequest, RequestPiece

MAX_CLIENTS = 1000  # whose times are kept, apart from those that have had more than others


class FairClock:
    """How much each client has had, in tokens; the queues of one model share it.

    Attributes:
        now: how much a client has had that always waited for something.
        num_waiting: clients that wait, in each queue.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.num_waiting = 0
        self.times: dict[str, float] = {}

    def find(self, client: str) -> float:
        """Return what a client has had since it was counted."""
        return self.times.get(client, 0.0)

    def serve(self, client: str, time: float, cost: int) -> None:
        """Note that a client has had something at its time; new clients may keep arriving."""
        self.now = max(time, self.now + cost / self.num_waiting)
        self.times[client] = time + cost
        if len(self.times) > MAX_CLIENTS:
            self.times = {name: time for name, time in self.times.items() if time > self.now}


class FairQueue:
    """Pieces of requests, of which the client comes first that has had the least.

    A client that comes anew begins at the time of the clock, so that it neither waits for others'
    long requests nor catches up on what it didn't ask for. Among the pieces of one client that
    comes first which has the least of its own request before it. It isn't safe for threads.

    Source: Goyal, Vin and Cheng 1996, "Start-time Fair Queueing".

    Attributes:
        kind: of what computes the pieces.
        costs: of what waits, by client.
    """

    def __init__(self, clock: FairClock, kind: type = object) -> None:
        self.kind = kind
        self.clock = clock
        self.waiting: dict[str, list[tuple[float, int, RequestPiece]]] = {}
        self._turns: list[tuple[float, int, str]] = []
        self._count = 0
        self.costs = Counter[str]()

    def __bool__(self) -> bool:
        return bool(self.waiting)

    def push(self, piece: RequestPiece) -> None:
        """Let a piece wait."""
        self._count += 1
        client = piece.request.client
        time = max(self.clock.now, self.clock.find(client))
        if client not in self.waiting:
            self.clock.num_waiting += 1
            self.waiting[client] = []
            heappush(self._turns, (time, self._count, client))
        heappush(self.waiting[client], (time + piece.cost_so_far, self._count, piece))
        self.costs[client] += piece.cost

    def estimate(self, own: int) -> int:
        """Return about what is served before a client that waits for so much in all."""
        return sum(min(cost, own) for cost in self.costs.values())

    def find_time(self) -> float:
        """Return the time of the client that comes first; there must be one."""
        while (time := self.clock.find(self._turns[0][2])) > self._turns[0][0]:
            _, count, client = self._turns[0]
            heapreplace(self._turns, (time, count, client))  # it was served in another queue
        return self._turns[0][0]

    def pop(self) -> RequestPiece:
        """Take the next piece; there must be one."""
        time = self.find_time()
        client = heappop(self._turns)[2]
        _, _, piece = heappop(self.waiting[client])
        self.clock.serve(client, time, piece.cost)
        self.costs[client] -= piece.cost
        if self.waiting[client]:
            self._count += 1
            turn = time + piece.cost  # which the clock may have forgotten
            heappush(self._turns, (turn, self._count, client))
        else:
            self._forget(client)
        return piece

    def remove(self, request: ModelRequest) -> bool:
        """Remove the pending pieces of a request without charging them.

        Returns whether any others wait.
        """
        client = request.client
        left = [one for one in self.waiting.get(client, ()) if one[2].request is not request]
        if left:
            heapify(left)
            self.waiting[client] = left
            self.costs[client] = sum(piece.cost for _, _, piece in left)
        elif client in self.waiting:
            self._turns = [one for one in self._turns if one[2] != client]
            heapify(self._turns)
            self._forget(client)
        return bool(self)

    def _forget(self, client: str) -> None:
        del self.waiting[client], self.costs[client]
        self.clock.num_waiting -= 1
