"""Requests of a model, and a queue of their pieces that is fair between clients.

In it short requests pass long ones.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, Protocol, TypeAlias, runtime_checkable

from bertkit.base.errors import BertkitError
from bertkit.inference.pipeline import NamedInput, Pipeline

# A text, its token ids or words, a pair of texts, or named texts, such as a question's.
ModelInput: TypeAlias = str | Sequence[int] | Sequence[str] | Mapping[str, Any]
Results: TypeAlias = list[Any]  # of a pipeline, one for each input

MOST_TOKENS = 1 << 16  # read of an input, by its characters
CHARS_PER_TOKEN = 4
MAX_CLIENTS = 1000  # whose times are kept, apart from those that have had more than others


@runtime_checkable
class WritingOptions(Protocol):
    """Options of a pipeline that writes texts."""

    @property
    def num_rows(self) -> int:
        """The number of sequences that are written at a time for an input."""

    @property
    def written_tokens(self) -> int:
        """The tokens of all of them, at most, or usually where nothing limits them."""


@dataclass(eq=False)
class ModelRequest:
    """Inputs that a client has a model compute.

    It can be computed again, to go on with what its pipeline has begun.

    Attributes:
        compute: a pipeline with options, whose requests are computed together; or
            a function of one input, which is called in the thread of the model.
        inputs: of the pipeline, or of the function.
        client: who asks; the queue is fair between clients.
        truncates: whether inputs may be cut off.
        identity: of the request, for logs.
        most_tokens: that are read of an input; a longer one costs no more.
        written_tokens: that are written for an input, or read again to explain it, at most.
        num_tokens: those that the model read.
        num_unknown: of these, [UNK].
        num_left: pieces without a result.
        queued, begun, ended: times of `time.monotonic`.
        future: the results; it is done, or cancelled, when nobody waits any longer.
    """

    compute: Pipeline[Any, Any] | Callable[[Any], Any]
    inputs: Sequence[ModelInput]
    client: str
    truncates: bool = True
    identity: str = ""
    most_tokens: int = sys.maxsize
    written_tokens: int = 0
    num_tokens: int = 0
    num_unknown: int = 0
    queued: float = 0.0
    begun: float = 0.0
    ended: float = 0.0
    future: asyncio.Future[Results] = field(init=False)
    _results: Results = field(init=False)
    num_left: int = field(init=False)

    def cut(self, piece_tokens: int) -> list["RequestPiece"]:
        """Return pieces of consecutive inputs with about so many tokens each."""
        pieces, start, cost, so_far = [], 0, 0, 0
        for stop, one in enumerate(self.inputs):
            read = 0 if self.begun else min(self.most_tokens, estimate_tokens(one))
            more = read + self.written_tokens
            if cost and cost + more > piece_tokens:
                pieces.append(RequestPiece(self, slice(start, stop), cost, so_far))
                start, cost = stop, 0
            cost += more
            so_far += more
        pieces.append(RequestPiece(self, slice(start, len(self.inputs)), cost, so_far))
        self._results, self.num_left = [], len(pieces)
        return pieces

    @cached_property
    def named_inputs(self) -> list[NamedInput]:
        """The inputs as the pipeline reads them, each with its number in the request."""
        assert isinstance(self.compute, Pipeline)
        return list(self.compute.read(self.inputs))

    def take(self, piece: "RequestPiece") -> None:
        """Take the results of the next piece, or its error; in the thread of the event loop."""
        if isinstance(piece.results, BertkitError):
            self.refuse(piece.results)
            return
        if self.future.done():
            return
        self.num_tokens += piece.num_tokens
        self.num_unknown += piece.num_unknown
        self._results += piece.results
        self.num_left -= 1
        if not self.num_left:
            self.future.set_result(self._results)

    def refuse(self, error: BertkitError) -> None:
        """Let whoever waits get an error."""
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(eq=False)
class RequestPiece:
    """Consecutive inputs of a request; its pieces are computed in their order.

    Attributes:
        cost: in tokens, about.
        cost_so_far: of the request up to the end of the piece.
        num_tokens: that the model reads.
        num_unknown: of these, [UNK].
        results: of its inputs, or why there are none.
    """

    request: ModelRequest
    places: slice
    cost: int
    cost_so_far: int
    num_tokens: int = 0
    num_unknown: int = 0
    results: Results | BertkitError = field(default_factory=list)

    @property
    def inputs(self) -> Sequence[ModelInput]:
        """Its inputs."""
        return self.request.inputs[self.places]


def estimate_tokens(value: ModelInput) -> int:
    """Return about how many tokens an input has, before it is tokenized."""
    is_ids = isinstance(value, list) and value and isinstance(value[0], int)
    num_tokens = len(value) if is_ids else 1
    for text in find_texts(value):
        more_bytes = len(text.encode("utf-8", "surrogatepass")) - len(text)  # 2 of a Chinese one
        num_tokens += 1 + len(text) // CHARS_PER_TOKEN + more_bytes // 2
    return num_tokens


def find_texts(value: Any) -> Iterator[str]:
    """Yield the texts in an input, or in several."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple | Mapping):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from find_texts(one)


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
