"""The web application: a handler for each endpoint, with its key, its limits and its errors."""

import asyncio
import logging
import re
import uuid
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from typing import Any

import orjson
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.convertors import Convertor, PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match, Route

from bertkit.base.errors import BertkitError, locate_failure
from bertkit.base.wings import SERVER_ROUTES, list_installed, load_object
from bertkit.serving.bodies import check_content, parse_body
from bertkit.serving.errors import Reason, ServingError, describe_refusal, find_style, write_error
from bertkit.serving.keys import Keys
from bertkit.serving.openapi import describe_api
from bertkit.serving.routes import hub, openai, tasks, tei
from bertkit.serving.routes.answers import JSON, Endpoint, write_json
from bertkit.serving.service import RequestContext, Service

logger = logging.getLogger(__name__)

MODEL_PATH = "/v1/models/{model}"  # before the path of a route that names no model itself
MAX_NAME_CHARS = 80  # of a request
# Each value of JSON takes far more memory and time than its text, and meanwhile nobody is answered.
MAX_VALUES, SEPARATORS = 600_000, (b",", b"[", b"{")
MAX_BODIES = 32  # of the largest size, that are in memory at once
PATIENCE = 0.02  # seconds before it is watched whether a client left
REFUSAL = "refusal"  # in the state of a request: what its connection found wrong with its body
LEFT = 499  # the status of a request whose client left, as nginx logs it
DROPPED = "dropped"  # the kind of its error in metrics and logs


def build_app(service: Service, keys: Keys, admin_keys: Keys) -> Starlette:
    """Build the application; with keys, every endpoint but the open ones needs one.

    Those that change the server need the key of whoever runs it. Scripts of pages may use it whose
    origins the settings name.
    """

    async def show(call: RequestContext, _: None) -> dict[str, Any]:
        """Describe the routes."""
        return api

    paths = list_paths([*list_endpoints(), Endpoint("/openapi.json", show, "tei", is_open=True)])
    api = describe_api(paths, has_keys=bool(keys))
    ends = [path.removeprefix(MODEL_PATH) for path, _ in paths if path.startswith(MODEL_PATH)]
    register_url_convertor("name", make_convertor(filter(None, ends)))
    routes = []
    for path, endpoint in paths:
        is_whole = path == MODEL_PATH
        pattern = path.replace("{model}", "{model:name}" if is_whole else "{model:path}")
        handler = Responder(service, endpoint, admin_keys if endpoint.is_admin else keys)
        routes.append(Route(pattern, handler, methods=[endpoint.method]))
    app = Starlette(routes=routes, exception_handlers={HTTPException: refuse_path})
    app.state.service = service
    app.router.redirect_slashes = False  # to an address that the request names
    if service.settings.cors_allow_origin:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=service.settings.cors_allow_origin,
            allow_methods=["GET", "POST"],
            allow_headers=["*"],  # clients name themselves in headers of their own
            expose_headers=["retry-after", "x-request-id"],
        )
    return app


def list_endpoints() -> list[Endpoint]:
    """Return all endpoints, those of other wings included."""
    others = map(load_object, list_installed(SERVER_ROUTES).values())
    tables = tasks.ENDPOINTS, *others, tei.ENDPOINTS, openai.ENDPOINTS, hub.ENDPOINTS
    return list(chain.from_iterable(tables))


def make_convertor(ends: Iterable[str]) -> Convertor[str]:
    """Return what finds a model's name, which may have slashes, but no other route's end."""

    class NameConvertor(PathConvertor):
        regex = f"(?!.*(?:{'|'.join(map(re.escape, ends))})$).*"

    return NameConvertor()


def list_paths(endpoints: Iterable[Endpoint]) -> list[tuple[str, Endpoint]]:
    """List each path with its endpoint."""
    paths = []
    for endpoint in endpoints:
        paths.append((endpoint.path, endpoint))
        if endpoint.style == "tei" and not endpoint.is_open:
            paths.append(((MODEL_PATH + endpoint.path).rstrip("/"), endpoint))
    return sorted(paths, key=lambda one: one[0].endswith("{model}"))  # they fit others' paths


class Responder:
    """Answers the requests of one endpoint."""

    def __init__(self, service: Service, endpoint: Endpoint, keys: Keys) -> None:
        self.service = service
        self.endpoint = endpoint
        self._keys = keys

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, as ASGI has it."""
        request = Request(scope, receive)
        call = RequestContext(
            service=self.service,
            client="",
            route=self.endpoint.path,
            identity=name_request(request),
            named=request.path_params.get("model"),
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
                self._note(call, LEFT if call.failure == DROPPED else 200)

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
            self._note(call, LEFT)
            return Response(status_code=LEFT)
        except BertkitError as error:
            return self._refuse(call, describe_refusal(error))
        except Exception as error:  # noqa: BLE001 - whatever fails, the client gets an answer
            logger.error("request %s failed: %s", call.identity, locate_failure(error))
            return self._refuse(
                call, Reason.FAILED.error("the server failed; its log has the cause")
            )

    def _check_key(self, request: Request) -> str:
        """Return the client: which key it has, or its address where there are no keys."""
        if self.endpoint.is_admin and not self._keys:
            raise Reason.FORBIDDEN.error(
                "only servers that have the variable BERTKIT_ADMIN_KEY do this"
            )
        if not self._keys or self.endpoint.is_open:
            return find_address(request)
        client = self._keys.find(request.headers.get("authorization", ""))
        if client is None:
            wanted = "its BERTKIT_ADMIN_KEY" if self.endpoint.is_admin else "one of its keys"
            raise Reason.NO_KEY.error(f"the server wants {wanted}: Authorization: Bearer KEY")
        return client

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
            done, _ = await asyncio.wait({task}, timeout=PATIENCE)
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


def write_refusal(call: RequestContext, error: ServingError, style: str) -> Response:
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


async def refuse_path(request: Request, _: Exception) -> Response:
    """Answer a request that no endpoint takes."""
    fitting = [one for one in request.app.routes if one.matches(request.scope)[0] != Match.NONE]
    error = Reason.NO_ROUTE.error("there is no such route; GET /openapi.json lists all")
    if fitting:
        methods = {name for one in fitting if one.path == fitting[0].path for name in one.methods}
        allowed = ", ".join(sorted(methods))
        message = f"the route doesn't take {request.method}; it takes {allowed}"
        error = Reason.WRONG_METHOD.error(message)
        error.headers["allow"] = allowed
    return refuse(request, error)


def find_address(request: Request) -> str:
    """Return the address of a client."""
    return request.client.host if request.client else "local"


def name_request(request: Request) -> str:
    """Return the name that a client gave a request, if it has a plain one, or else a new name."""
    given = request.headers.get("x-request-id", "")
    is_plain = given.isascii() and given.isprintable() and len(given) <= MAX_NAME_CHARS
    return given if given and is_plain else uuid.uuid4().hex


async def wait_until_left(request: Request) -> None:
    """Return when the client has closed the connection; its body was read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
