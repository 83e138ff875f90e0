"""A thread for each model: it takes what waits, computes it in one batch, and answers.

Nobody waits for a batch to fill: while one is computed, the next one gathers. A request of many
inputs is cut into pieces, so that others pass between them.
"""

import asyncio
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bertkit.base.errors import BertkitError, InputError, SettingsError
from bertkit.inference.pipeline import Pipeline
from bertkit.serving.errors import Reason, ServingError, describe_refusal, locate_failure
from bertkit.serving.fair_queue import FairClock, FairQueue
from bertkit.serving.settings import LimitSettings

logger = logging.getLogger(__name__)

PIECE_TOKENS = 2048  # of a long request: what others wait for at most
MOST_TOKENS = 1 << 16  # of an input, by its characters
MOST_TOKENS_READ = 1 << 21  # of a piece: a long text may be read as many windows
CHARS_PER_TOKEN = 4
UNCERTAINTY = 3  # of the estimate of how long a request takes, as a factor
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
        identity: of the request, for logs.
        most_tokens: of an input; longer ones are cut off or refused.
        written_tokens: that are written for an input, at most.
        num_tokens: those that the model read.
        queued, begun, ended: times of `time.monotonic`.
    """

    compute: Any
    inputs: Sequence[Any]
    client: str
    truncates: bool
    future: "asyncio.Future[list[Any]]"
    identity: str = ""
    most_tokens: int = MOST_TOKENS + 1
    written_tokens: int = 0
    num_tokens: int = 0
    queued: float = 0.0
    begun: float = 0.0
    ended: float = 0.0
    num_pieces: int = 0
    _parts: dict[int, list[Any]] = field(default_factory=dict)
    _read: list[Any] | None = None

    def cut(self, piece_tokens: int) -> Iterator["WorkPiece"]:
        """Yield consecutive inputs of about so many tokens."""
        read = [min(self.most_tokens, estimate_tokens(one)) for one in self.inputs]
        costs = [cost + self.written_tokens for cost in read]
        start, cost, before = 0, 0, 0
        for stop, more in enumerate(costs):
            if cost and cost + more > piece_tokens:
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
        if isinstance(results, BaseException):
            self.refuse(results)
            return
        if self.future.done():
            return
        self.num_tokens += piece.num_tokens
        self._parts[piece.number] = results
        if len(self._parts) == self.num_pieces:
            parts = (self._parts[index] for index in range(self.num_pieces))
            self.future.set_result([one for part in parts for one in part])

    def refuse(self, error: BaseException) -> None:
        """Let whoever waits get an error."""
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(eq=False)
class WorkPiece:
    """Consecutive inputs of a work."""

    work: Work
    number: int
    places: slice
    cost: int
    cost_so_far: int
    num_tokens: int = 0  # that the model reads

    @property
    def client(self) -> str:
        """Who asks."""
        return self.work.client


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


Found = list[Any] | BertkitError  # the results of a piece, or its error


@dataclass(frozen=True)
class ComputedBatch:
    """Pieces that were computed together, for metrics."""

    num_requests: int
    num_tokens: int
    seconds: float


class Worker:
    """The thread of a model, and what waits for it.

    Attributes:
        batch_tokens: about how many tokens are computed at once.
        num_by_client: requests that wait or are computed, by client, of those that have any.
        num_failures: batches in a row of which nothing could be computed.
        tokens_per_second: what each kind of pipeline computes, as of its last batches.
    """

    def __init__(
        self,
        name: str,
        limits: LimitSettings,
        *,
        batch_tokens: int = PIECE_TOKENS,
        is_deterministic: bool = False,
        note: Callable[[ComputedBatch], None] = lambda _: None,
    ) -> None:
        self.batch_tokens = batch_tokens
        self.num_failures = 0
        self.num_by_client = Counter[str]()
        self.tokens_per_second: dict[type, float] = {}
        self._is_deterministic = is_deterministic  # each input is computed alone
        self._limits = limits
        self._note = note
        self._works: set[Work] = set()
        self._queues: dict[int, tuple[type, FairQueue[WorkPiece]]] = {}  # by id of what computes
        self._clock = FairClock()
        self._changed = threading.Condition()
        self._is_closed = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name=f"model {name}", daemon=True)
        self._thread.start()

    @property
    def num_works(self) -> int:
        """Requests that wait or are computed."""
        return len(self._works)

    async def compute(self, work: Work) -> list[Any]:
        """Return the results of a work.

        Raises:
            BertkitError: too much waits already, an input can't be processed, or the model failed.
        """
        pieces = list(work.cut(1 if self._is_deterministic else PIECE_TOKENS))
        self._check(pieces)
        self._works.add(work)
        self.num_by_client[work.client] += 1
        try:
            work.queued = time.monotonic()
            with self._changed:
                new = type(work.compute), FairQueue[WorkPiece](self._clock)
                _, queue = self._queues.setdefault(id(work.compute), new)
                for piece in pieces:
                    queue.push(piece)
                self._changed.notify()
            return await work.future
        finally:
            self._works.discard(work)
            self.num_by_client -= Counter([work.client])  # those with none are left out

    def close(self, seconds: float) -> bool:
        """End the thread when nothing waits any longer; return whether it ended in time."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _estimate_wait(self, client: str, cost: int) -> float:
        """Return about how many seconds a client waits until such a cost of its own is served.

        What wasn't computed before counts as nothing.
        """
        with self._changed:
            own = cost + sum(queue.find_cost(client) for _, queue in self._queues.values())
            return sum(
                queue.estimate(own) / self.tokens_per_second[kind]
                for kind, queue in self._queues.values()
                if kind in self.tokens_per_second
            )

    def _check(self, pieces: Sequence[WorkPiece]) -> None:
        """Refuse pieces of a request that can't be computed, or not in time."""
        if self._is_closed:
            raise Reason.LOADING.error("the server is stopping")
        if max(piece.cost for piece in pieces) > MOST_TOKENS + pieces[0].work.written_tokens:
            raise Reason.UNREADABLE.error(
                f"a text has more than about {MOST_TOKENS:,} tokens; shorten or divide it"
            )
        client, cost, limits = pieces[0].client, pieces[-1].cost_so_far, self._limits
        seconds = self._estimate_wait(client, cost)
        if self.num_works >= limits.max_concurrent_requests:
            raise Reason.OVERLOAD.error(f"{self.num_works} requests wait already", max(1, seconds))
        num_own, most = self.num_by_client[client], limits.max_requests_per_client
        if most is not None and num_own >= most:
            raise Reason.OVERLOAD.error(
                f"{num_own} requests of yours wait already", max(1, seconds)
            )
        if seconds > limits.max_wait:
            raise Reason.OVERLOAD.error(
                f"the requests that wait already take {seconds:.0f} s", seconds - limits.max_wait
            )
        speed = self.tokens_per_second.get(type(pieces[0].work.compute), math.inf)
        if (own := cost / speed) > UNCERTAINTY * limits.timeout:
            raise Reason.LATE.error(
                f"the request takes about {own:,.0f} s, and it may take {limits.timeout:g} s; send"
                " fewer or shorter texts"
            )

    def _run(self) -> None:
        while not self._is_closed or self._queues:
            try:
                self._serve()
            except Exception as error:  # noqa: BLE001 - else nobody is answered any longer
                logger.error("the thread of a model failed: %s", locate_failure(error))
                self.num_failures += 1
                with self._changed:
                    self._queues, self._clock = {}, FairClock()
                with suppress(RuntimeError):  # as in _answer
                    self._loop.call_soon_threadsafe(self._refuse_all)

    def _refuse_all(self) -> None:
        for work in self._works:
            work.refuse(Reason.FAILED.error("the model failed; the server's log has the cause"))

    def _serve(self) -> None:
        while pieces := self._take_batch():
            self._answer(pieces)
            del pieces  # else a thread that waits keeps a model that was replaced in memory

    def _take_batch(self) -> list[WorkPiece]:
        """Wait for work, and take as much as is computed at once; nothing when all is done."""
        while True:
            with self._changed:
                while not self._queues and not self._is_closed:
                    self._changed.wait()
                if not self._queues:
                    return []
                pieces = self._pop_pieces()
            if pieces:
                return pieces

    def _pop_pieces(self) -> list[WorkPiece]:
        """Take pieces of one queue for which somebody still waits."""
        key = min(self._queues, key=lambda one: self._queues[one][1].find_time())
        kind, queue = self._queues.pop(key)
        pieces, cost = [], 0
        while queue and cost < (1 if self._is_deterministic else self.batch_tokens):
            piece = queue.pop()
            if not piece.work.future.done():  # else its client has left
                pieces.append(piece)
                cost += piece.cost
        if queue:
            self._queues[key] = kind, queue  # behind others of the same time
        return pieces

    def _answer(self, pieces: Sequence[WorkPiece]) -> None:
        begun = time.monotonic()
        found = compute_or_divide(pieces)
        ended = time.monotonic()
        for piece in pieces:
            piece.work.begun, piece.work.ended = piece.work.begun or begun, ended
        pairs = list(zip(pieces, found, strict=True))
        try:
            self._learn(pairs, ended - begun)
        except Exception:
            logger.exception("a batch couldn't be counted")
        with suppress(RuntimeError):  # the loop is closed: nobody waits any longer
            self._loop.call_soon_threadsafe(hand_out, pairs)

    def _learn(self, pairs: Sequence[tuple[WorkPiece, Found]], seconds: float) -> None:
        """Learn from a batch how fast the model is, and whether it works."""
        done = [piece for piece, found in pairs if isinstance(found, list)]
        if not done:
            self.num_failures += any(is_failure(found) for _, found in pairs)
            return
        self.num_failures = 0
        kind, read = type(done[0].work.compute), sum(piece.num_tokens for piece in done)
        if issubclass(kind, Pipeline):  # functions have nothing in common
            newest = sum(piece.cost for piece in done) / max(seconds, 1e-6)
            usual = self.tokens_per_second.get(kind, newest)
            self.tokens_per_second[kind] = usual + NEWEST_SHARE * (newest - usual)
        self._note(ComputedBatch(len({id(piece.work) for piece in done}), read, seconds))


def is_failure(found: Found) -> bool:
    """Return whether the model failed, rather than an input."""
    return isinstance(found, ServingError) and found.reason is Reason.FAILED


def compute_or_divide(pieces: Sequence[WorkPiece]) -> list[Found]:
    """Return the results of each piece, or its error; halves of a batch that fails are tried."""
    try:
        return compute_pieces(pieces)
    except BaseException as error:  # noqa: BLE001 - a library may raise anything; others go on
        cause = locate_failure(error)
    if len(pieces) > 1:  # only here, the error no longer holds the memory of the batch
        half = len(pieces) // 2
        return compute_or_divide(pieces[:half]) + compute_or_divide(pieces[half:])
    logger.warning("request %s failed: %s", pieces[0].work.identity, cause)
    return [Reason.FAILED.error("the model failed on this request; the server's log has the cause")]


def compute_pieces(pieces: Sequence[WorkPiece]) -> list[Found]:
    """Compute pieces with the same pipeline, and return the results of each, or its error."""
    compute = pieces[0].work.compute
    if not isinstance(compute, Pipeline):
        return [try_each(compute, piece.work.inputs[piece.places]) for piece in pieces]
    encoded = [try_encoding(compute, piece) for piece in pieces]
    windows = [one for one in encoded if not isinstance(one, BertkitError)]
    results = iter(compute_window(compute, windows)) if windows else iter(())
    found: list[Found] = []
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
        return Reason.UNREADABLE.error(
            "a text has more tokens than the model takes; shorten it, or say truncate: true"
        )
    if size.num_tokens > MOST_TOKENS_READ:
        return Reason.UNREADABLE.error(
            f"the model would read {size.num_tokens:,} tokens, and the server takes"
            f" {MOST_TOKENS_READ:,}; shorten the text"
        )
    num_inputs, piece.num_tokens = piece.places.stop - piece.places.start, size.num_tokens
    piece.cost = min(piece.cost, size.num_tokens + num_inputs * piece.work.written_tokens)
    return encoded


def try_each(function: Callable[[Any], Any], inputs: Sequence[Any]) -> Found:
    """Return the results of a function of one input, or the error of an input."""
    try:
        return list(map(function, inputs))
    except (InputError, SettingsError) as error:
        return describe_refusal(error)


def hand_out(found: Iterable[tuple[WorkPiece, Found]]) -> None:
    """Give the results of a batch to those who wait for them."""
    for piece, results in found:
        piece.work.take(piece, results)
