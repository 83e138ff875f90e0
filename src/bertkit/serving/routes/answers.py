"""What handlers return, and how it becomes JSON."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_type_hints

import orjson
from pydantic import BaseModel

from bertkit.serving.service import RequestContext

Handler = Callable[[RequestContext, Any], Awaitable[Any]]
JSON, EVENTS = "application/json", "text/event-stream"


@dataclass(eq=False)
class Endpoint:
    """A route: where it is, what answers it, and in which forms.

    Attributes:
        path: its template; `{model}` is the name of a model.
        handle: answers a call with its checked body, or None where there is none.
        style: whose form its errors have: openai, tei or cohere.
        body: the class of its body, or None; by default that of the handler's annotation.
        answer: the type of its answers in JSON; by default that of the handler's annotation.
        summary: for the OpenAPI page; by default the first line of the handler's docstring.
        media_types: of its answers.
        is_open: whether it needs no key.
        is_admin: whether it needs the key of whoever runs the server; it is a POST.
    """

    path: str
    handle: Handler
    style: str
    body: type[BaseModel] | None = None
    answer: Any = None
    summary: str = ""
    media_types: Sequence[str] = (JSON,)
    is_open: bool = False
    is_admin: bool = False

    def __post_init__(self) -> None:
        _, body, answer = get_type_hints(self.handle).values()
        self.body = self.body or (None if body is NoneType else body)
        self.answer = self.answer or answer
        self.summary = self.summary or (self.handle.__doc__ or "").partition("\n")[0]

    @property
    def method(self) -> str:
        """POST where it has a body or changes something, else GET."""
        return "GET" if self.body is None and not self.is_admin else "POST"


@dataclass(frozen=True)
class TaskResults:
    """The results of a pipeline: one, or a list as of the inputs."""

    model: str
    results: Any
    usage: dict[str, int]


@dataclass(frozen=True)
class PageParts:
    """What another wing adds to the page.

    Attributes:
        tasks: names of tasks; a module of the same name exports each, as those of `tasks.js`.
        modules: JavaScript by file name.
        styles: style sheets.
    """

    tasks: Sequence[str]
    modules: Mapping[str, str]
    styles: Sequence[str]


async def write_events(parts: AsyncIterator[Any]) -> AsyncIterator[bytes]:
    """Yield each part as a server-sent event, and at last one that tells the end."""
    async for part in parts:
        yield b"data: " + write_json(part) + b"\n\n"
    yield b"data: [DONE]\n\n"


def write_json(content: Any) -> bytes:
    """Return an answer as JSON; arrays and dataclasses are written as lists and objects."""
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
