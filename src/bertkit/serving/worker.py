"""A thread for each model: it takes what waits, computes it in one batch, and answers.

Nobody waits for a batch to fill: while one is computed, the next one gathers. A request of many
inputs is cut into pieces, so that others pass between them.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertkit.base.errors import BertkitError, InputError, SettingsError
from bertkit.inference.pipeline import Pipeline
from bertkit.serving.errors import (
    FailedError,
    LoadingError,
    LongTextError,
    OverloadError,
    describe_refusal,
)
from bertkit.serving.fair_queue import FairQueue
from bertkit.serving.settings import LimitSettings

logger = logging.getLogger(__name__)

PIECE_TOKENS = 2048  # of a long request: what others wait for at most
CHARS_PER_TOKEN = 4
NEWEST_SHARE = 0.2  # weight of the newest batch in the number of tokens a second


@dataclass(eq=False)
class Work:
    """What a request asks of a model.

    Attributes:
        compute: a pipeline with the options of the request, whose works are computed together; or
            a function of one input, which is called in the thread of the model.
        inputs: of the pipeline, or of the function.
        client: who asks; the queue is fair between clients.
        truncates: whether inputs may be cut off.
        future: the results; it is done, or cancelled, when nobody waits any longer.
        num_tokens: those that the model read.
        queued, begun, ended: times of `time.monotonic`.
    """

    compute: Any
    inputs: Sequence[Any]
    client: str
    truncates: bool
    future: "asyncio.Future[list[Any]]"
    num_tokens: int = 0
    queued: float = 0.0
    begun: float = 0.0
    ended: float = 0.0
    num_pieces: int = 0
    _parts: dict[int, list[Any]] = field(default_factory=dict)
    _read: list[Any] | None = None

    def cut(self) -> Iterator["WorkPiece"]:
        """Yield consecutive inputs of about `PIECE_TOKENS` tokens."""
        costs = list(map(estimate_tokens, self.inputs))
        start, cost, before = 0, 0, 0
        for stop, more in enumerate(costs):
            if cost and cost + more > PIECE_TOKENS:
                yield WorkPiece(self, self.num_pieces, slice(start, stop), cost, before + cost)
                self.num_pieces += 1
                start, cost, before = stop, 0, before + cost
            cost += more
        yield WorkPiece(self, self.num_pieces, slice(start, len(costs)), cost, before + cost)
        self.num_pieces += 1

    def read(self) -> list[Any]:
        """Return the inputs as the pipeline reads them, each with its number in the request."""
        if self._read is None:
            self._read = list(self.compute.read(self.inputs))
        return self._read

    def take(self, piece: "WorkPiece", results: list[Any] | BaseException) -> None:
        """Take the results of a piece, or its error; in the thread of the event loop."""
        if self.future.done():
            return
        if isinstance(results, BaseException):
            self.future.set_exception(results)
            return
        self.num_tokens += piece.num_tokens
        self._parts[piece.number] = results
        if len(self._parts) == self.num_pieces:
            parts = (self._parts[index] for index in range(self.num_pieces))
            self.future.set_result([one for part in parts for one in part])


@dataclass(eq=False)
class WorkPiece:
    """Consecutive inputs of a work."""

    work: Work
    number: int
    places: slice
    cost: int
    cost_so_far: int
    num_tokens: int = 0  # that the model read

    @property
    def client(self) -> str:
        """Who asks."""
        return self.work.client


def estimate_tokens(value: Any) -> int:
    """Return about how many tokens an input has, before it is tokenized."""
    return 1 + sum(
        1 + (len(text) // CHARS_PER_TOKEN if text.isascii() else len(text))
        for text in find_texts(value)
    )


def find_texts(value: Any) -> Iterator[str]:
    """Yield the texts in an input, or in several."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple | Mapping):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from find_texts(one)


@dataclass(frozen=True)
class ComputedBatch:
    """Pieces that were computed together, for metrics."""

    num_requests: int
    num_tokens: int
    seconds: float


class Worker:
    """The thread of a model, and what waits for it.

    Attributes:
        num_works: requests that wait or are computed.
        tokens_per_second: what the model computes, as of its last batches; 0 before the first.
    """

    def __init__(
        self,
        name: str,
        limits: LimitSettings,
        *,
        batch_tokens: int,
        is_deterministic: bool = False,
        note: Callable[[ComputedBatch], None] = lambda _: None,
    ) -> None:
        self.num_works = 0
        self.tokens_per_second = 0.0
        self._limits = limits
        self._batch_tokens = 1 if is_deterministic else batch_tokens
        self._note = note
        self._queues: dict[int, FairQueue[WorkPiece]] = {}  # by the id of what computes
        self._changed = threading.Condition()
        self._is_closed = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name=f"model {name}", daemon=True)
        self._thread.start()

    @property
    def waiting_tokens(self) -> int:
        """About how many tokens wait."""
        return sum(queue.cost for queue in list(self._queues.values()))

    async def compute(self, work: Work) -> list[Any]:
        """Return the results of a work.

        Raises:
            OverloadError: too much waits already.
            BertkitError: an input can't be processed, or the model failed.
        """
        self._check_room()
        self.num_works += 1
        try:
            work.queued = time.monotonic()
            pieces = list(work.cut())
            with self._changed:
                queue = self._queues.setdefault(id(work.compute), FairQueue())
                for piece in pieces:
                    queue.push(piece)
                self._changed.notify()
            return await work.future
        finally:
            self.num_works -= 1

    def close(self) -> None:
        """End the thread when nothing waits any longer."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _check_room(self) -> None:
        if self._is_closed:
            raise LoadingError("the model is being replaced; try again")
        seconds = self.waiting_tokens / self.tokens_per_second if self.tokens_per_second else 0
        if self.num_works >= self._limits.max_concurrent_requests:
            raise OverloadError(f"{self.num_works} requests wait already", max(1, seconds))
        if seconds > self._limits.max_wait:
            raise OverloadError(
                f"the requests that wait already take {seconds:.0f} s",
                seconds - self._limits.max_wait,
            )

    def _run(self) -> None:
        while pieces := self._take_batch():
            begun = time.monotonic()
            found = self._compute_together(pieces)
            ended = time.monotonic()
            for piece in pieces:
                piece.work.begun, piece.work.ended = piece.work.begun or begun, ended
            self._learn_speed(pieces, ended - begun)
            self._loop.call_soon_threadsafe(hand_out, list(zip(pieces, found, strict=True)))

    def _take_batch(self) -> list[WorkPiece]:
        """Wait for work, and take as much as is computed at once; nothing when all is done."""
        while True:
            with self._changed:
                while not self._queues and not self._is_closed:
                    self._changed.wait()
                if not self._queues:
                    return []
                key = next(iter(self._queues))
                queue = self._queues.pop(key)
                pieces, cost = [], 0
                while queue and cost < self._batch_tokens:
                    piece = queue.pop()
                    if not piece.work.future.done():  # else its client has left
                        pieces.append(piece)
                        cost += piece.cost
                if queue:
                    self._queues[key] = queue  # behind the others
            if pieces:
                return pieces

    def _compute_together(self, pieces: Sequence[WorkPiece]) -> list[list[Any] | BertkitError]:
        """Return the results of each piece, or its error; where a batch fails, each is tried."""
        try:
            return compute_pieces(pieces)
        except Exception as error:  # noqa: BLE001 - a model may fail in any way, and must go on
            if len(pieces) > 1:
                return [one for piece in pieces for one in self._compute_together([piece])]
            logger.warning("a request failed: %s: %s", type(error).__name__, error)
            return [FailedError("the model failed on this request; the server's log has the cause")]

    def _learn_speed(self, pieces: Sequence[WorkPiece], seconds: float) -> None:
        cost = sum(piece.cost for piece in pieces)
        self._note(ComputedBatch(len({id(piece.work) for piece in pieces}), cost, seconds))
        newest = cost / max(seconds, 1e-6)
        usual = self.tokens_per_second or newest
        self.tokens_per_second = usual + NEWEST_SHARE * (newest - usual)


def compute_pieces(pieces: Sequence[WorkPiece]) -> list[list[Any] | BertkitError]:
    """Compute pieces with the same pipeline, and return the results of each, or its error."""
    compute = pieces[0].work.compute
    if not isinstance(compute, Pipeline):
        return [try_each(compute, piece.work.inputs[piece.places]) for piece in pieces]
    encoded = [try_encoding(compute, piece) for piece in pieces]
    windows = [one for one in encoded if not isinstance(one, BertkitError)]
    results = iter(compute_window(compute, windows)) if windows else iter(())
    found: list[list[Any] | BertkitError] = []
    for piece, one in zip(pieces, encoded, strict=True):
        is_refused = isinstance(one, BertkitError)
        num = len(piece.work.inputs[piece.places])
        found.append(one if is_refused else [next(results) for _ in range(num)])
    return found


def compute_window(pipeline: Pipeline[Any, Any], windows: Sequence[Any]) -> Iterable[Any]:
    """Yield the results of several encoded windows that are computed as one."""
    for part in pipeline.divide(pipeline.join_windows(windows)):
        yield from pipeline.decode_window(part, pipeline.compute_window(part))


def try_encoding(pipeline: Pipeline[Any, Any], piece: WorkPiece) -> Any:
    """Return a piece's encoded window, or the error of an input."""
    try:
        encoded = pipeline.encode_window(piece.work.read()[piece.places])
        size = pipeline.size(encoded)
    except (InputError, SettingsError) as error:
        return describe_refusal(error)
    if size.num_cut and not piece.work.truncates:
        return LongTextError(
            "a text has more tokens than the model takes; shorten it, or say truncate: true"
        )
    piece.num_tokens = size.num_tokens
    return encoded


def try_each(function: Callable[[Any], Any], inputs: Sequence[Any]) -> list[Any] | BertkitError:
    """Return the results of a function of one input, or the error of an input."""
    try:
        return list(map(function, inputs))
    except (InputError, SettingsError) as error:
        return describe_refusal(error)


def hand_out(found: Iterable[tuple[WorkPiece, list[Any] | BertkitError]]) -> None:
    """Give the results of a batch to those who wait for them."""
    for piece, results in found:
        piece.work.take(piece, results)
