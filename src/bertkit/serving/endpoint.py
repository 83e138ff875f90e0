"""A route and a request: what handlers are given, what they return, and how it becomes JSON."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, get_type_hints

import orjson
from pydantic import BaseModel

from bertkit.base.settings import Settings
from bertkit.inference.explain import GRADIENT_COST
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.pipeline import Pipeline
from bertkit.serving.errors import Reason, ServingError, Style
from bertkit.serving.logs import REQUESTS
from bertkit.serving.searcher import Searcher
from bertkit.serving.service import ReadyModel, Service
from bertkit.serving.sharing.fair_queue import (
    ModelInput,
    ModelRequest,
    Results,
    WritingOptions,
    estimate_tokens,
    find_texts,
)
from bertkit.tasks.settings import ExplainAnswers

JSON, EVENTS = "application/json", "text/event-stream"
MAX_FOUND, MAX_CANDIDATES = 10_000, 100_000  # of all queries, and of all [MASK]s, of a request
MAX_EXPLAINED = 1000  # tokens of a text, about, which its explanation reads a hundred times
MAX_ROWS = 16  # sequences that are written at a time for a text


@dataclass
class RequestContext:
    """One request, while it is answered.

    Attributes:
        service: the models, and what is counted of their requests.
        client: who asks: its key, or else its address.
        route: the path's template, for metrics.
        identity: a name of the request, for logs and the header x-request-id.
        named: the model or index that the path or the body names, or None.
        document: the id of a document that the path names, or empty.
        accepted: the media types that the client accepts.
        begun: when it began, a time of `time.monotonic`.
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
    document: str = ""
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
        inputs: Sequence[ModelInput],
        options: Settings | None = None,
        *,
        truncate: bool | None = None,
    ) -> Results:
        """Return what a pipeline of its model, or of the first that has it, gives for inputs.

        Args:
            task: the name of the pipeline.
            inputs: one or more.
            options: those that were set differ from the pipeline's own.
            truncate: whether inputs may be cut off; by default as the server's settings say.
        """
        loaded = self.find(task)
        compute = loaded.choose(task, options)
        check_size(compute, inputs)
        chosen = compute.options
        most = compute.most_tokens or loaded.max_length
        written = chosen.written_tokens if isinstance(chosen, WritingOptions) else 0
        if isinstance(chosen, ExplainAnswers) and chosen.explain:
            written = count_explained(inputs, most)
        return await self.run(
            compute,
            inputs,
            truncate=truncate,
            most_tokens=most,
            written_tokens=written,
        )

    async def run(
        self,
        compute: Pipeline[Any, Any] | Callable[[Any], Any],
        inputs: Sequence[ModelInput],
        *,
        truncate: bool | None = None,
        most_tokens: int = sys.maxsize,
        written_tokens: int = 0,
    ) -> Results:
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

    async def resume(self, request: ModelRequest) -> Results:
        """Return the next results."""
        try:
            async with self.limit_time():
                return await self.service.models[self.model].worker.compute(request)
        except ServingError as error:
            if error.reason is Reason.FAILED:
                self.service.note_failure(self.model)
            raise

    @asynccontextmanager
    async def limit_time(self) -> AsyncIterator[None]:
        """End what takes longer than a request may."""
        seconds = self.service.settings.timeout
        try:
            async with asyncio.timeout(self.begun + seconds - time.monotonic()):
                yield
        except TimeoutError:
            raise Reason.LATE.error(
                f"the answer took longer than {seconds:g} s; send fewer texts"
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
        seconds, note = time.monotonic() - self.begun, self.service.metrics.note_request
        note(self.model, self.route, self.failure, self.request, seconds)
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


def count_explained(inputs: Sequence[ModelInput], most_tokens: int) -> int:
    """Return how many tokens are read again, at most about, to explain one of some inputs."""
    longest = min(most_tokens, max(map(estimate_tokens, inputs), default=0))
    if longest > MAX_EXPLAINED:
        raise Reason.UNREADABLE.error(
            f"a server explains texts of up to about {MAX_EXPLAINED:,} tokens; shorten or divide it"
        )
    return longest * min(longest, GRADIENT_COST)


def check_size(pipeline: Pipeline[Any, Any], inputs: Sequence[ModelInput]) -> None:
    """Refuse a request whose answer would take too much memory."""
    options: Any = pipeline.options
    if isinstance(options, WritingOptions) and options.num_rows > MAX_ROWS:
        raise Reason.UNREADABLE.error(
            f"a server takes at most {MAX_ROWS} beams and answers, and the request asks for"
            f" {options.num_rows:,}"
        )
    if isinstance(pipeline, FillMask):
        mask = pipeline.loaded.tokenizer.mask
        num_masks = sum(text.count(mask) for text in find_texts(inputs))
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


Handler = Callable[[RequestContext, Any], Awaitable[Any]]


@dataclass(eq=False)
class Endpoint:
    """A route: where it is, what answers it, and in which forms.

    Attributes:
        path: its template; `{model}` and `{index}` are names, `{document}` is an id.
        handle: answers a call with its checked body, or None where there is none.
        style: whose form its errors have.
        body: the class of its body, or None; by default that of the handler's annotation.
        answer: the type of its answers in JSON; by default that of the handler's annotation.
        summary: for the OpenAPI page; by default the first line of the handler's docstring.
        media_types: of its answers.
        is_open: whether it needs no key.
        is_admin: whether it needs the key of whoever runs the server.
        method: by default POST where it has a body or changes something, else GET.
    """

    path: str
    handle: Handler
    style: Style
    body: type[BaseModel] | None = None
    answer: Any = None
    summary: str = ""
    media_types: Sequence[str] = (JSON,)
    is_open: bool = False
    is_admin: bool = False
    method: str = ""

    def __post_init__(self) -> None:
        _, body, answer = get_type_hints(self.handle).values()
        self.body = self.body or (None if body is NoneType else body)
        self.answer = self.answer or answer
        self.summary = self.summary or (self.handle.__doc__ or "").partition("\n")[0]
        usual = "GET" if self.body is None and not self.is_admin else "POST"
        self.method = self.method or usual


async def write_events(parts: AsyncIterator[Any]) -> AsyncIterator[bytes]:
    """Yield each part as a server-sent event, and at last one that tells the end."""
    async for part in parts:
        yield b"data: " + write_json(part) + b"\n\n"
    yield b"data: [DONE]\n\n"


def write_json(content: Any) -> bytes:
    """Return an answer as JSON; arrays and dataclasses are written as lists and objects."""
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
