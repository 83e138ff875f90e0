"""A thread for a model: it takes what waits, computes it in one batch, and answers.

Nobody waits for a batch to fill: while one is computed, the next one gathers. A request of many
inputs is cut into pieces, so that others pass between them.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from bertkit.base.errors import InputError, SettingsError, locate_failure
from bertkit.inference.pipeline import Pipeline, join_windows
from bertkit.serving.errors import Reason, ServingError, describe_refusal
from bertkit.serving.settings import LimitSettings
from bertkit.serving.sharing.fair_queue import (
    MOST_TOKENS,
    FairClock,
    FairQueue,
    ModelRequest,
    RequestPiece,
    Results,
)

logger = logging.getLogger(__name__)

PIECE_TOKENS = 2048  # of a long request: what others wait for at most
MOST_TOKENS_READ = 1 << 21  # of a piece: a long text may be read as many windows
UNCERTAINTY = 3  # of the estimate of how long a request takes, as a factor
NEWEST_SHARE = 0.2  # weight of the newest batch in the number of tokens a second


class Worker:
    """The thread of a model, and what waits for it.

    Attributes:
        batch_tokens: about how many tokens are computed at once.
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
    ) -> None:
        """Make the worker, whose thread starts later.

        Args:
            name: of the model.
            limits: beyond which requests are refused.
            batch_tokens: about how many tokens are computed at once.
            is_deterministic: whether each input is computed alone.
        """
        self.batch_tokens = batch_tokens
        self.num_failures = 0
        self.tokens_per_second: dict[type, float] = {}
        self._is_deterministic = is_deterministic
        self._limits = limits
        self._requests: set[ModelRequest] = set()
        self.queues: dict[int, FairQueue] = {}  # by id of what computes
        self._clock = FairClock()
        self._ends_at = -math.inf  # when the batch that is computed will end, about
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=f"model {name}", daemon=True)

    def start(self, note: Callable[[int, int], None] = lambda *_: None) -> None:
        """Start the thread, for the running event loop.

        It gives `note` the number of requests and of tokens of each batch.
        """
        self.loop, self._note = asyncio.get_running_loop(), note
        self._thread.start()

    @property
    def num_requests(self) -> int:
        """Requests that wait or are computed."""
        return len(self._requests)

    async def compute(self, request: ModelRequest) -> Results:
        """Return the results of a request.

        Raises:
            BertkitError: too much waits already, an input can't be processed, or the model failed.
        """
        request.future = self.loop.create_future()
        request.queued = request.queued or time.monotonic()
        pieces = request.cut(1 if self._is_deterministic else PIECE_TOKENS)
        self.check(pieces)
        self._requests.add(request)
        key = id(request.compute)
        with self._changed:
            queue = self.queues.setdefault(key, FairQueue(self._clock, type(request.compute)))
            for piece in pieces:
                queue.push(piece)
            self._changed.notify()
        try:
            return await request.future
        finally:
            self._requests.discard(request)
            if request.num_left:  # it failed, or its client left: what waits costs nobody anything
                with self._changed:
                    if key in self.queues and not self.queues[key].remove(request):
                        del self.queues[key]

    def close(self, seconds: float) -> bool:
        """End the thread when nothing waits any longer; return whether it ended in time."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _estimate_wait(self, client: str, cost: int) -> float:
        """Return about how many seconds a client waits until such a cost of its own is served.

        The rest of the batch that is computed counts too; a kind that never was as nothing.
        """
        with self._changed:
            own = cost + sum(queue.costs[client] for queue in self.queues.values())
            return max(0.0, self._ends_at - time.monotonic()) + sum(
                queue.estimate(own) / self.tokens_per_second.get(queue.kind, math.inf)
                for queue in self.queues.values()
            )

    def check(self, pieces: Sequence[RequestPiece]) -> None:
        """Refuse pieces of a new request that can't be computed, or not in time."""
        if self._is_closed:
            raise Reason.LOADING.error("the server is stopping")
        request, cost, limits = pieces[0].request, pieces[-1].cost_so_far, self._limits
        if request.begun:
            return
        if max(piece.cost for piece in pieces) > MOST_TOKENS + request.written_tokens:
            raise InputError(
                f"a text has more than about {MOST_TOKENS:,} tokens; shorten or divide it"
            )
        seconds = self._estimate_wait(request.client, cost)
        if self.num_requests >= limits.max_concurrent_requests:
            raise Reason.OVERLOAD.error(f"{self.num_requests} requests wait already", seconds)
        num_own = sum(one.client == request.client for one in self._requests)
        if limits.max_requests_per_client is not None and num_own >= limits.max_requests_per_client:
            raise Reason.OVERLOAD.error(f"{num_own} requests of yours wait already", seconds)
        if seconds > limits.max_wait:
            raise Reason.OVERLOAD.error(
                f"the requests that wait already take {seconds:.0f} s", seconds - limits.max_wait
            )
        speed = self.tokens_per_second.get(type(request.compute), math.inf)
        if (own := cost / speed) > UNCERTAINTY * limits.timeout:
            raise Reason.LATE.error(
                f"the request takes about {own:,.0f} s, and it may take {limits.timeout:g} s; send"
                " fewer or shorter texts"
            )

    def _run(self) -> None:
        while not self._is_closed or self.queues:
            try:
                self._answer(self._take_pieces())  # no name holds them while the thread waits
            except Exception as error:  # noqa: BLE001 - else nobody is answered any longer
                logger.error("the thread of a model failed: %s", locate_failure(error))
                self.num_failures += 1
                with self._changed:
                    self.queues, self._clock = {}, FairClock()
                for request in list(self._requests):
                    with suppress(RuntimeError):  # as in _answer
                        self.loop.call_soon_threadsafe(request.refuse, describe_refusal())

    def _take_pieces(self) -> list[RequestPiece]:
        """Wait for requests; take as many pieces of one queue as are computed at once.

        Those for which nobody waits any longer are left out; there are none when all is done.
        """
        pieces: list[RequestPiece] = []
        with self._changed:
            while not self.queues and not self._is_closed:
                self._changed.wait()
            if not self.queues:
                return pieces
            key = min(self.queues, key=lambda one: self.queues[one].find_time())
            queue, cost = self.queues.pop(key), 0
            while queue and cost < (1 if self._is_deterministic else self.batch_tokens):
                piece = queue.pop()
                if not piece.request.future.done():  # else its client has left
                    pieces.append(piece)
                    cost += piece.cost
            if queue:
                self.queues[key] = queue  # behind others of the same time
            speed = self.tokens_per_second.get(queue.kind, math.inf)
            self._ends_at = time.monotonic() + cost / speed
        return pieces

    def _answer(self, pieces: Sequence[RequestPiece]) -> None:
        if not pieces:
            return
        begun = time.monotonic()
        compute_or_divide(pieces)
        ended = self._ends_at = time.monotonic()
        try:
            self._learn(pieces, ended - begun)
        except Exception:
            logger.exception("a batch couldn't be counted")
        for piece in pieces:
            piece.request.begun, piece.request.ended = piece.request.begun or begun, ended
            with suppress(RuntimeError):  # the loop is closed: nobody waits any longer
                self.loop.call_soon_threadsafe(piece.request.take, piece)

    def _learn(self, pieces: Sequence[RequestPiece], seconds: float) -> None:
        """Learn from a batch how fast the model is, and whether it computes at all."""
        done = [piece for piece in pieces if isinstance(piece.results, list)]
        if not done:
            self.num_failures += any(map(has_failed, (piece.results for piece in pieces)))
            return
        self.num_failures = 0
        self._note(len({piece.request for piece in done}), sum(piece.num_tokens for piece in done))
        request, cost, last = done[0].request, sum(piece.cost for piece in done), done[-1].results
        if not isinstance(request.compute, Pipeline) or (
            isinstance(last, list) and last[-1] is None
        ):
            return  # functions have nothing in common, and the end of a stream took no time
        newest, usual = cost / max(seconds, 1e-6), self.tokens_per_second.get(type(request.compute))
        is_small = cost < min(PIECE_TOKENS, self.batch_tokens) / 2
        is_alone = self._is_deterministic or request.written_tokens > 0  # so that it is as small
        if is_small and not is_alone and newest <= (usual or math.inf):
            return  # a small batch only tells how fast the model is at least
        usual = newest if usual is None else usual
        self.tokens_per_second[type(request.compute)] = usual + NEWEST_SHARE * (newest - usual)


def compute_or_divide(pieces: Sequence[RequestPiece]) -> None:
    """Compute the results of each piece, or its error; halves of a batch that fails are tried."""
    try:
        compute_pieces(pieces)
    except BaseException as error:  # noqa: BLE001 - a library may raise anything; others go on
        cause, problem = locate_failure(error), describe_refusal(error)
    else:
        return
    if len(pieces) > 1:  # only here, the error no longer holds the memory of the batch
        half = len(pieces) // 2
        compute_or_divide(pieces[:half])
        compute_or_divide(pieces[half:])
        return
    pieces[0].results = problem
    if has_failed(problem):
        logger.warning("request %s failed: %s", pieces[0].request.identity, cause)


def has_failed(results: object) -> bool:
    """Whether the model failed, instead of refusing an input."""
    return isinstance(results, ServingError) and results.reason is Reason.FAILED


def compute_pieces(pieces: Sequence[RequestPiece]) -> None:
    """Compute pieces with the same pipeline, or function; an input that is refused fails alone."""
    compute, encoded = pieces[0].request.compute, {}
    if not isinstance(compute, Pipeline):
        for piece in pieces:
            piece.results = list(map(compute, piece.inputs))
        return
    for piece in pieces:
        try:
            encoded[piece] = encode(compute, piece)
        except (InputError, SettingsError) as error:
            piece.results = describe_refusal(error)
    if not encoded:
        return
    results = (
        one
        for part in compute.divide(join_windows(list(encoded.values())))
        for one in compute.decode_window(part, compute.compute_window(part))
    )
    for piece in encoded:
        piece.results = [next(results) for _ in piece.inputs]


def encode(pipeline: Pipeline[Any, Any], piece: RequestPiece) -> Any:
    """Return a piece's encoded window, and count its tokens; InputError if they are too many."""
    encoded = pipeline.encode_window(piece.request.named_inputs[piece.places])
    size = pipeline.count(encoded)
    if size.truncated and not piece.request.truncates:
        raise InputError(
            "a text has more tokens than the model takes; shorten it, or say truncate: true"
        )
    if size.tokens > MOST_TOKENS_READ:
        raise InputError(
            f"the model would read {size.tokens:,} tokens, and the server takes"
            f" {MOST_TOKENS_READ:,}; shorten the text"
        )
    piece.num_tokens, piece.num_unknown = size.tokens, size.unknown_tokens
    piece.cost = min(piece.cost, size.tokens + len(piece.inputs) * piece.request.written_tokens)
    return encoded
