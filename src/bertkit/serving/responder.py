"""What answers a request: its key, its limits, its body, its handler, its errors."""

import asyncio
import logging
import re
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from bertkit.base.errors import BertkitError, locate_failure
from bertkit.base.settings import describe_validation
from bertkit.inference.settings import check_names
from bertkit.serving.endpoint import JSON, Endpoint, RequestContext, write_json
from bertkit.serving.errors import (
    Reason,
    ServingError,
    Style,
    describe_refusal,
    find_style,
    write_error,
)
from bertkit.serving.keys import Keys
from bertkit.serving.service import Service

logger = logging.getLogger(__name__)

AnyKind = TypeVar("AnyKind", bound=BaseModel)

MAX_NAME_CHARS = 80  # of a request
# Each value of JSON takes far more memory and time than its text, and meanwhile nobody is answered.
MAX_VALUES, SEPARATORS = 600_000, (b",", b"[", b"{")
MAX_KEYS = 1000  # of a body, and of an object in it; each that is unknown is an error of its own
MAX_BODIES = 32  # of the largest size, that are in memory at once
WATCH_AFTER_SECONDS = 0.02  # then it is watched whether the client leaves
OPTIONS = "options"  # the field of a body that has those of a pipeline
REFUSAL = "refusal"  # in the state of a request: what its connection found wrong with its body
CLIENT_CLOSED_REQUEST = 499  # a status that nginx logs, too
DROPPED = "dropped"  # the kind of its error in metrics and logs
# Half a character that JSON may name by its number, though no text in UTF-8 has it.
HIGH, LOW = rb"\\u[dD][89aAbB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
HALVES = re.compile(rb"(?P<whole>(?:\\\\|%b%b)++)|(?:%b(?!%b)|%b)++" % (HIGH, LOW, HIGH, LOW, LOW))
MAX_ESCAPES = 60_000  # of a body that is mended, which nobody else is answered meanwhile
ESCAPE_BYTES = len(rb"\ud83d")


class Responder:
    """Answers the requests of one endpoint."""

    def __init__(self, service: Service, endpoint: Endpoint, keys: Keys) -> None:
        self.service = service
        self.endpoint = endpoint
        self._find_key = keys.find if keys else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as ASGI has it."""
        request = Request(scope, receive)
        call = RequestContext(
            service=self.service,
            client="",
            route=self.endpoint.path,
            identity=name_request(request),
            named=request.path_params.get("model", request.path_params.get("index")),
            document=request.path_params.get("document", ""),
            accepted=request.headers.get("accept", ""),
        )
        response = None
        try:
            response = await self.respond(request, call)
            call.count_bytes(len(getattr(response, "body", b"")))  # a stream has none
            await response(scope, receive, send)
        finally:
            call.count_bytes(-call.num_bytes)
            if isinstance(response, StreamingResponse):
                self._note(call, CLIENT_CLOSED_REQUEST if call.failure == DROPPED else 200)

    async def respond(self, request: Request, call: RequestContext) -> Response:
        """Return a response; never raises."""
        try:
            if self.service.is_stopping and not self.endpoint.is_open:
                raise Reason.LOADING.error("the server is stopping")
            call.client = self._check_key(request)
            body = await self._read(request, call)
            answer = await self._handle(request, call, body)
            return self._accept(call, answer)
        except ClientDisconnect:
            call.failure = DROPPED
            self._note(call, CLIENT_CLOSED_REQUEST)
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        except BertkitError as error:
            return self._refuse(call, describe_refusal(error))
        except Exception as error:  # noqa: BLE001 - whatever fails, the client gets an answer
            logger.error("request %s failed: %s", call.identity, locate_failure(error))
            return self._refuse(
                call, Reason.FAILED.error("the server failed; its log has the cause")
            )

    def _check_key(self, request: Request) -> str:
        """Return the client: which key it has, or its address where there are no keys."""
        if self.endpoint.is_admin and self._find_key is None:
            raise Reason.FORBIDDEN.error(
                "only servers that have the variable BERTKIT_ADMIN_KEY do this"
            )
        if self._find_key is None or self.endpoint.is_open:
            return find_address(request)
        client = self._find_key(request.headers.get("authorization", ""))
        if client is None:
            wanted = "its BERTKIT_ADMIN_KEY" if self.endpoint.is_admin else "one of its keys"
            raise Reason.NO_KEY.error(f"the server wants {wanted}: Authorization: Bearer KEY")
        return f"admin {client}" if self.endpoint.is_admin else client

    async def _read(self, request: Request, call: RequestContext) -> BaseModel | None:
        """Read and check the body."""
        kind = self.endpoint.body
        if kind is None:
            return None
        check_content(request.headers)
        try:
            async with asyncio.timeout(self.service.settings.timeout):
                content = await self._receive(request, call)
        except TimeoutError:
            raise Reason.SLOW.error("the body didn't arrive in time") from None
        if sum(map(content.count, SEPARATORS)) > MAX_VALUES:
            raise Reason.LARGE_BODY.error(
                f"the body has over {MAX_VALUES:,} commas and brackets; divide it"
            )
        return parse_body(kind, content)

    async def _receive(self, request: Request, call: RequestContext) -> bytes:
        limit, parts, size = self.service.settings.payload_limit, [], 0
        stated = request.headers.get("content-length", "0")
        if stated.isdecimal() and len(stated) < 20 and int(stated) > limit:
            raise Reason.LARGE_BODY.error(
                f"the body has {int(stated):,} bytes; {limit:,} is the limit"
            )
        has_more = True
        while has_more:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            if refusal := request.scope["state"].get(REFUSAL):
                raise refusal
            part, has_more = message["body"], message["more_body"]
            size += len(part)
            if size > limit:
                raise Reason.LARGE_BODY.error(f"the body has more than {limit:,} bytes")
            call.count_bytes(len(part))
            if self.service.num_bytes > MAX_BODIES * limit:
                raise Reason.OVERLOAD.error(
                    "the server reads and answers too large requests already", 1
                )
            parts.append(part)
        return b"".join(parts)

    async def _handle(self, request: Request, call: RequestContext, body: BaseModel | None) -> Any:
        """Return what the endpoint answers; stop when the client leaves."""
        task = asyncio.ensure_future(self.endpoint.handle(call, body))
        try:
            done, _ = await asyncio.wait({task}, timeout=WATCH_AFTER_SECONDS)
            if not done:
                leaving = asyncio.ensure_future(wait_until_left(request))
                try:
                    await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    leaving.cancel()
            if not task.done():
                raise ClientDisconnect
            return task.result()
        finally:
            if task.cancel():
                with suppress(asyncio.CancelledError):
                    await task

    def _accept(self, call: RequestContext, answer: Any) -> Response:
        is_json = not isinstance(answer, Response)
        response = Response(write_json(answer), media_type=JSON) if is_json else answer
        response.headers["x-request-id"] = call.identity
        if isinstance(response, StreamingResponse):
            call.failure = DROPPED  # until it is sent to its end, and noted
        else:
            response.headers.update(call.describe_times())
            self._note(call, 200)
        return response

    def _refuse(self, call: RequestContext, error: ServingError) -> Response:
        call.failure = error.reason.kind
        response = write_refusal(call, error, self.endpoint.style)
        self._note(call, response.status_code)
        return response

    def _note(self, call: RequestContext, status: int) -> None:
        if not self.endpoint.is_open:  # as probes are
            call.note_end(status)


async def wait_until_left(request: Request) -> None:
    """Return when the client has closed the connection; its body was read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def write_refusal(call: RequestContext, error: ServingError, style: Style) -> Response:
    """Return the answer to a request that is refused."""
    status, content = write_error(error, style)
    headers = {"x-request-id": call.identity, **error.headers}
    return Response(orjson.dumps(content), status, headers, JSON)


def refuse(request: Request, error: ServingError) -> Response:
    """Count a request that came to no endpoint, and return the answer."""
    call = RequestContext(
        service=request.app.state.service,
        client=find_address(request),
        route="",
        identity=name_request(request),
        failure=error.reason.kind,
    )
    response = write_refusal(call, error, find_style(request.scope["path"]))
    call.note_end(response.status_code)
    return response


def find_address(request: Request) -> str:
    """Return the address of a client."""
    return request.client.host if request.client else "local"


def name_request(request: Request) -> str:
    """Return the name that a client gave a request, if it has a plain one, or else a new name."""
    given = request.headers.get("x-request-id", "")
    is_plain = given.isascii() and given.isprintable() and len(given) <= MAX_NAME_CHARS
    return given if given and is_plain else uuid.uuid4().hex


def check_content(headers: Mapping[str, str]) -> None:
    """Raise `ServingError` if the headers of a body don't say that it is JSON in UTF-8."""
    kind, *parameters = headers.get("content-type", "").lower().split(";")
    is_json = kind.strip() == "application/json" or kind.strip().endswith("+json")
    named = (name.strip().partition("=") for name in parameters)
    charset = next((value for name, _, value in named if name.strip() == "charset"), "")
    if not is_json or charset.strip("\"' \t") not in {"", "utf-8", "utf8"}:
        raise Reason.NOT_JSON.error(
            "the body must be JSON in UTF-8, with Content-Type: application/json"
        )
    if headers.get("content-encoding", "identity").strip().lower() not in {"identity", ""}:
        raise Reason.NOT_JSON.error("the body is compressed; send it as it is")


def parse_body(kind: type[AnyKind], content: bytes) -> AnyKind:
    """Return a body of a kind; half a character becomes U+FFFD, as in files."""
    if content.count(b":") > MAX_KEYS:
        check_keys(content)
    try:
        try:
            return kind.model_validate_json(content, strict=True)
        except ValidationError as error:
            is_json = error.errors()[0]["type"] != "json_invalid"
            if is_json or content.count(b"\\") > MAX_ESCAPES:
                raise
            mended = HALVES.sub(
                lambda found: found["whole"] or rb"\ufffd" * (len(found[0]) // ESCAPE_BYTES),
                content,
            )
            return kind.model_validate_json(mended, strict=True)
    except ValidationError as error:
        if OPTIONS in kind.model_fields:
            options: Any = kind.model_fields[OPTIONS].annotation
            places = (one["loc"] for one in error.errors() if one["type"] == "extra_forbidden")
            names = [str(place[1]) for place in places if place[0] == OPTIONS]
            check_names(options, names, "the task")
        problems = describe_validation(error, kind, shows_input=False)
        raise Reason.UNREADABLE.error(problems) from None


def check_keys(content: bytes) -> None:
    """Refuse a body of very many keys."""
    with suppress(ValueError):  # it isn't JSON
        body = from_json(content)
        for one in [body, *body.values()] if isinstance(body, dict) else []:
            if isinstance(one, dict) and len(one) > MAX_KEYS:
                raise Reason.UNREADABLE.error(
                    f"an object has {len(one):,} keys, and the server takes {MAX_KEYS:,} at most"
                )
