"""The models of a server, and what a request does with them, whatever its route."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bertkit.base.settings import Settings
from bertkit.inference.fill_mask import MASK, FillMask
from bertkit.inference.pipeline import Pipeline
from bertkit.serving.errors import Reason, ServingError
from bertkit.serving.logs import REQUESTS
from bertkit.serving.metrics import ServerMetrics
from bertkit.serving.models import ReadyModel, ServedModel
from bertkit.serving.searcher import Searcher
from bertkit.serving.settings import ServeSettings
from bertkit.serving.sharing.request import MOST_TOKENS, ModelRequest, WritingOptions, find_texts

logger = logging.getLogger(__name__)

WINDOWED = {"answer", "choose", "score", "summarize", "tag"}  # read the whole of a long input
MAX_FAILURES = 3  # batches in a row of which nothing could be computed
LEAST_SECONDS_BETWEEN_LOADS = 60.0  # of a model that fails
MAX_RELOADS = 2  # one that runs, and one that waits
MAX_FOUND, MAX_CANDIDATES = 10_000, 100_000  # of all queries, and of all [MASK]s, of a request
MAX_ROWS = 16  # sequences that are written at a time for a text


class Service:
    """Models by name, with the settings and metrics of their server.

    Attributes:
        models: in the order of the command line; the first that does a task is the usual one.
        is_stopping: whether no new requests are taken.
        num_bytes: of the bodies of requests, and of answers until they are sent.
        num_loading: models that are being loaded, each in a thread that can't be stopped.
        tell_others: is called when models were loaded again by a request, for other workers.
    """

    def __init__(
        self, models: Sequence[ServedModel], settings: ServeSettings, worker: str = ""
    ) -> None:
        self.models = {model.name: model for model in models}
        self.settings = settings
        self.metrics = ServerMetrics(worker)
        self.is_stopping = False
        self.num_bytes = 0
        self.num_loading = 0
        self.tell_others: Callable[[], None] = lambda: None
        self._tried_at: dict[str, float] = {}
        self._loading = asyncio.Lock()
        self.reloads: set[asyncio.Task[dict[str, str]]] = set()

    @property
    def is_ready(self) -> bool:
        """Whether all models are loaded."""
        return not self.is_stopping and all(one.is_loaded for one in self.models.values())

    async def load(self) -> None:
        """Load all models that aren't, one by one; it is a BertkitError if one can't be loaded."""
        for model in self.models.values():
            if not model.is_loaded:
                await self._load(model)

    async def reload(self, names: Collection[str], *, tells: bool) -> dict[str, str]:
        """Load models again; return why some couldn't be, which stay as they are.

        A model that is replaced finishes what waits for it.
        """
        problems = {}
        for name in names:
            try:
                await self._load(self.models[name])
            except Exception as error:  # noqa: BLE001 - nothing that is in a folder ends the server
                problems[name] = f"{name} stays as it was: {error}"
                logger.warning("%s", problems[name])
            else:
                logger.info("%s was loaded again", name)
        if tells and len(problems) < len(names):
            self.tell_others()
        return problems

    def reload_soon(self, *names: str, tells: bool = False) -> asyncio.Task[dict[str, str]] | None:
        """Load models again in the background, by default all; nothing if others wait for that."""
        if len(self.reloads) >= MAX_RELOADS:
            return None
        task = asyncio.get_running_loop().create_task(
            self.reload(names or self.models, tells=tells)
        )
        self.reloads.add(task)
        task.add_done_callback(self.reloads.discard)
        return task

    def note_failure(self, name: str) -> None:
        """Load a model again that has failed several times, but not soon after it was loaded."""
        waited = time.monotonic() - self._tried_at[name]
        num_failures = self.models[name].worker.num_failures
        if num_failures >= MAX_FAILURES and waited > LEAST_SECONDS_BETWEEN_LOADS:
            self._tried_at[name] = time.monotonic()
            logger.warning("%s failed %d times in a row, and is loaded again", name, num_failures)
            self.reload_soon(name)

    def close(self, seconds: float) -> bool:
        """End the threads of the models; return whether they, and loading, ended in time."""
        ended = [model.worker.close(seconds) for model in self.models.values()]
        return all(ended) and not self.num_loading

    async def _load(self, model: ServedModel) -> None:
        def load() -> ReadyModel:
            self.num_loading += 1
            try:
                return model.load()
            finally:
                self.num_loading -= 1

        async with self._loading:
            self._tried_at[model.name] = time.monotonic()
            loaded = await asyncio.to_thread(load)
        model.start(loaded, partial(self.metrics.note_batch, model.name))
        self.metrics.queue.labels(model.name).set_function(lambda: model.worker.num_requests)

    def find(self, name: str | None, *tasks: str) -> ServedModel:
        """Return the model of a name, or the first, that does one of some tasks, or any.

        Raises:
            ServingError: there is none, or models are being loaded.
        """
        if name is not None and name not in self.models:
            known = ", ".join(self.models)
            raise Reason.UNKNOWN_MODEL.error(f"there is no model {name!r:.80}; there are: {known}")
        asked = list(self.models.values()) if name is None else [self.models[name]]
        for model in asked:
            if not tasks or not model.loaded.pipelines.keys().isdisjoint(tasks):
                return model
        known = "; ".join(f"{one.name} does {', '.join(one.loaded.pipelines)}" for one in asked)
        raise Reason.UNKNOWN_MODEL.error(f"no model here does {' or '.join(tasks)}: {known}")


@dataclass
class RequestContext:
    """One request, while it is answered.

    Attributes:
        client: who asks: its key, or else its address.
        identity: a name of the request, for logs.
        named: the model that the path or the body names, or None.
        accepted: the media types that the client accepts.
        route: the path's template, for metrics.
        model: the name of the model that it asked, or empty.
        request: what it asked of a model last; None if it didn't.
        num_bytes: of its body, as far as it was read, and of its answer until that is sent.
        failure: the kind of an error that it was answered with, or empty.
    """

    service: Service
    client: str
    route: str
    identity: str
    named: str | None = None
    accepted: str = ""
    begun: float = field(default_factory=time.monotonic)
    model: str = ""
    request: ModelRequest | None = None
    num_bytes: int = 0
    failure: str = ""

    def find(self, *tasks: str) -> ReadyModel:
        """Return what is loaded of its model, and remember its name; errors as `Service.find`."""
        model = self.service.find(self.named, *tasks)
        self.model = model.name
        return model.loaded

    async def compute(
        self,
        task: str,
        inputs: Sequence[Any],
        options: Settings | None = None,
        *,
        truncate: bool | None = None,
    ) -> list[Any]:
        """Return what a pipeline of its model, or of the first that has it, gives for inputs.

        Args:
            task: the name of the pipeline.
            inputs: one or more.
            options: those that were set differ from the pipeline's own.
            truncate: whether inputs may be cut off; by default as the server's settings say.
        """
        loaded = self.find(task)
        most = MOST_TOKENS + 1 if task in WINDOWED else loaded.max_length
        compute = loaded.choose(task, options)
        check_size(compute, inputs)
        chosen = compute.options
        written = chosen.written_tokens if isinstance(chosen, WritingOptions) else 0
        return await self.run(
            compute, inputs, truncate=truncate, most_tokens=most, written_tokens=written
        )

    async def run(
        self,
        compute: Any,
        inputs: Sequence[Any],
        *,
        truncate: bool | None = None,
        most_tokens: int = MOST_TOKENS + 1,
        written_tokens: int = 0,
    ) -> list[Any]:
        """Return what a pipeline, or a function of one input, gives in the model's thread."""
        settings = self.service.settings
        if len(inputs) > settings.max_client_batch_size:
            raise Reason.UNREADABLE.error(
                f"the request has {len(inputs):,} inputs, and the server takes"
                f" {settings.max_client_batch_size:,} at most; divide it"
            )
        self.request = ModelRequest(
            compute=compute,
            inputs=inputs,
            client=self.client,
            identity=self.identity,
            truncates=settings.auto_truncate if truncate is None else truncate,
            most_tokens=most_tokens,
            written_tokens=written_tokens,
        )
        return await self.resume(self.request)

    async def resume(self, request: ModelRequest) -> list[Any]:
        """Return the next results."""
        settings = self.service.settings
        try:
            async with asyncio.timeout(self.begun + settings.timeout - time.monotonic()):
                return await self.service.models[self.model].worker.compute(request)
        except ServingError as error:
            if error.reason is Reason.FAILED:
                self.service.note_failure(self.model)
            raise
        except TimeoutError:
            raise Reason.LATE.error(
                f"the answer took longer than {settings.timeout:g} s; send fewer texts"
            ) from None

    @property
    def num_tokens(self) -> int:
        """The tokens that the model read."""
        return self.request.num_tokens if self.request else 0

    def count_bytes(self, num_bytes: int) -> None:
        """Count bytes of its body, or of its answer until that is sent."""
        self.num_bytes += num_bytes
        self.service.num_bytes += num_bytes

    def describe_times(self) -> dict[str, str]:
        """Return headers that say how long the request took, in milliseconds."""
        request = self.request
        if request is None:
            return {}
        total = f"{1000 * (time.monotonic() - self.begun):.0f}"
        return {
            "x-compute-time": total,
            "x-total-time": total,
            "x-queue-time": f"{1000 * (request.begun - request.queued):.0f}",
            "x-inference-time": f"{1000 * (request.ended - request.begun):.0f}",
            "x-compute-characters": str(sum(map(len, find_texts(request.inputs)))),
            "x-compute-tokens": str(self.num_tokens),
        }

    def note_end(self, status: int) -> None:
        """Count the request, and log it if the settings say so."""
        seconds, metrics = time.monotonic() - self.begun, self.service.metrics
        metrics.note_request(self.model, self.route, self.failure)
        if self.request is not None and not self.failure:
            metrics.note_answer(self.model, self.request, seconds)
        if not self.service.settings.log_requests:
            return
        line = {
            "id": self.identity,
            "route": self.route,
            "model": self.model,
            "status": status,
            "milliseconds": round(1000 * seconds, 1),
            "tokens": self.num_tokens,
            "client": self.client,
            "failure": self.failure,
        }
        REQUESTS.info("request", extra={"request": line})


def check_size(pipeline: Pipeline[Any, Any], inputs: Sequence[Any]) -> None:
    """Refuse a request whose answer would take too much memory."""
    options: Any = pipeline.options
    if isinstance(options, WritingOptions) and options.num_rows > MAX_ROWS:
        raise Reason.UNREADABLE.error(
            f"a server takes at most {MAX_ROWS} beams and answers, and the request asks for"
            f" {options.num_rows:,}"
        )
    if isinstance(pipeline, FillMask):
        num_masks = sum(text.count(MASK) for text in inputs)
        num, most, what = options.top_k * num_masks, MAX_CANDIDATES, "words"
    elif isinstance(pipeline, Searcher):
        num, most, what = options.top_k * len(inputs), MAX_FOUND, "texts"
    else:
        return
    if num > most:
        raise Reason.UNREADABLE.error(
            f"the request asks for {num:,} {what} in all, and {most:,} is the limit; lower top_k or"
            " divide it"
        )
