"""A request of a model, and the pieces that it is computed in."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from bertkit.base.errors import BertkitError

MOST_TOKENS = 1 << 16  # of an input, by its characters
CHARS_PER_TOKEN = 4


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
        most_tokens: of an input; longer ones are cut off or refused.
        written_tokens: that are written for an input, at most.
        num_tokens: those that the model read.
        num_unknown: of these, [UNK].
        num_left: pieces without a result.
        queued, begun, ended: times of `time.monotonic`.
        future: the results; it is done, or cancelled, when nobody waits any longer.
    """

    compute: Any
    inputs: Sequence[Any]
    client: str
    truncates: bool = True
    identity: str = ""
    most_tokens: int = MOST_TOKENS + 1
    written_tokens: int = 0
    num_tokens: int = 0
    num_unknown: int = 0
    queued: float = 0.0
    begun: float = 0.0
    ended: float = 0.0
    future: "asyncio.Future[list[Any]]" = field(init=False)
    _results: list[Any] = field(init=False)
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
    def named_inputs(self) -> list[Any]:
        """The inputs as the pipeline reads them, each with its number in the request."""
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
    results: list[Any] | BertkitError = field(default_factory=list)

    @property
    def inputs(self) -> Sequence[Any]:
        """Its inputs."""
        return self.request.inputs[self.places]


def estimate_tokens(value: Any) -> int:
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
