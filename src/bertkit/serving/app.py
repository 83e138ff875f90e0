"""The web application: a handler for each endpoint, with its key, its limits and its errors."""

import asyncio
import hmac
import logging
import uuid
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from bertkit.base.errors import BertkitError
from bertkit.base.settings import describe_validation
from bertkit.serving import hub_routes, openai_routes, task_routes, tei_routes
from bertkit.serving.answers import Endpoint, Plain, write_json
from bertkit.serving.errors import (
    EncodedBodyError,
    FailedError,
    KeyRefusedError,
    LargeBodyError,
    ServingError,
    SlowBodyError,
    UnreadableError,
    describe_refusal,
)
from bertkit.serving.service import RequestContext, Service

logger = logging.getLogger(__name__)

ENDPOINTS = (
    *task_routes.ENDPOINTS,
    *tei_routes.ENDPOINTS,
    *openai_routes.ENDPOINTS,
    *hub_routes.ENDPOINTS,  # last: /v1/models/{model} fits all other routes of a model
)
MODEL_PATH = "/v1/models/{model}"  # before the path of a route that names no model itself
PATIENCE = 0.02  # seconds before it is watched whether a client left
LEFT = 499  # the status of a request whose client left, as nginx logs it


def build_app(service: Service, keys: Sequence[str] = ()) -> Starlette:
    """Build the application; with keys, every endpoint but the open ones needs one."""
    digests = [sha256(key.encode()).digest() for key in keys]
    routes = []
    for endpoint in ENDPOINTS:
        handler = Responder(service, endpoint, digests)
        paths = [endpoint.path]
        if endpoint.style == "tei" and not endpoint.is_open:
            paths.append(MODEL_PATH + endpoint.path)
        for path in paths:
            pattern = path.rstrip("/").replace("{model}", "{model:path}") or "/"
            routes.append(Route(pattern, handler, methods=[endpoint.method]))
    return Starlette(routes=routes)


class Responder:
    """Answers the requests of one endpoint."""

    def __init__(self, service: Service, endpoint: Endpoint, digests: Sequence[bytes]) -> None:
        self.service = service
        self.endpoint = endpoint
        self._digests = digests

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, as ASGI has it."""
        request = Request(scope, receive)
        response = await self.respond(request)
        await response(scope, receive, send)

    async def respond(self, request: Request) -> Response:
        """Return the answer to a request, whatever comes of it."""
        call = RequestContext(
            service=self.service,
            client="",
            route=self.endpoint.path,
            identity=request.headers.get("x-request-id", "")[:80] or uuid.uuid4().hex,
            named=request.path_params.get("model"),
        )
        try:
            call.client = self._check_key(request)
            body = await self._read(request)
            answer = await self._handle(request, call, body)
        except ClientDisconnect:
            return Response(status_code=LEFT)
        except BertkitError as error:
            return self._refuse(call, describe_refusal(error))
        except Exception:
            logger.exception("request %s failed", call.identity)
            return self._refuse(call, FailedError("the server failed; its log has the cause"))
        return self._accept(call, answer)

    def _check_key(self, request: Request) -> str:
        """Return the client: the digest of its key, or its address where there are no keys."""
        if not self._digests or self.endpoint.is_open:
            return request.client.host if request.client else "local"
        scheme, is_named, key = request.headers.get("authorization", "").partition(" ")
        if not is_named:  # LlamaIndex's reranker sends the key alone
            scheme, key = "bearer", scheme
        digest = sha256(key.strip().encode()).digest()
        matches = [hmac.compare_digest(digest, one) for one in self._digests]
        if scheme.lower() != "bearer" or not any(matches):
            raise KeyRefusedError("send one of the server's keys: Authorization: Bearer KEY")
        return digest.hex()

    async def _read(self, request: Request) -> BaseModel | None:
        """Read and check the body."""
        kind = self.endpoint.body
        if kind is None:
            return None
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != "application/json" and not content_type.endswith("+json"):
            raise EncodedBodyError("the body must be JSON, with Content-Type: application/json")
        if request.headers.get("content-encoding", "identity") != "identity":
            raise EncodedBodyError("the body is compressed; send it as it is")
        try:
            async with asyncio.timeout(self.service.settings.timeout):
                content = await self._receive(request)
        except TimeoutError:
            raise SlowBodyError("the body didn't arrive in time") from None
        try:
            return kind.model_validate_json(content)
        except ValidationError as error:
            raise UnreadableError(describe_validation(error, kind)) from None

    async def _receive(self, request: Request) -> bytes:
        limit, parts, size = self.service.settings.payload_limit, [], 0
        stated = request.headers.get("content-length", "0")
        if stated.isdecimal() and len(stated) < 20 and int(stated) > limit:
            raise LargeBodyError(f"the body has {int(stated):,} bytes; {limit:,} is the limit")
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise LargeBodyError(f"the body has more than {limit:,} bytes")
            parts.append(part)
        return b"".join(parts)

    async def _handle(self, request: Request, call: RequestContext, body: BaseModel | None) -> Any:
        """Return what the endpoint answers; stop when the client leaves."""
        task = asyncio.ensure_future(self.endpoint.handle(call, body))
        done, _ = await asyncio.wait({task}, timeout=PATIENCE)
        if not done:
            leaving = asyncio.ensure_future(wait_until_left(request))
            await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                raise ClientDisconnect
        return task.result()

    def _accept(self, call: RequestContext, answer: Any) -> Response:
        headers = {"x-request-id": call.identity, **call.describe_times()}
        if call.work is not None:
            call.note_answer()
        if isinstance(answer, Plain):
            return Response(answer.content, media_type=answer.media_type, headers=headers)
        return Response(write_json(answer), media_type="application/json", headers=headers)

    def _refuse(self, call: RequestContext, error: ServingError) -> Response:
        self.service.metrics.note_refusal(call.model, error.kind)
        headers = {"x-request-id": call.identity}
        if error.retry_after is not None:
            headers["retry-after"] = str(error.retry_after)
        if error.status == KeyRefusedError.status:
            headers["www-authenticate"] = "Bearer"
        content = FORMS[self.endpoint.style](error)
        status = 400 if self.endpoint.style == "openai" and error.status == 422 else error.status
        return Response(
            orjson.dumps(content),
            status_code=status,
            media_type="application/json",
            headers=headers,
        )


async def wait_until_left(request: Request) -> None:
    """Return when the client has closed the connection; its body was read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def write_openai_error(error: ServingError) -> dict[str, Any]:
    """Return an error in OpenAI's form."""
    kind = "invalid_request_error" if error.status < 429 else "server_error"
    return {"error": {"message": str(error), "type": kind, "param": None, "code": error.kind}}


def write_tei_error(error: ServingError) -> dict[str, Any]:
    """Return an error in the form of text-embeddings-inference."""
    return {"error": str(error), "error_type": error.kind}


def write_cohere_error(error: ServingError) -> dict[str, Any]:
    """Return an error in Cohere's form, and in Jina's."""
    return {"message": str(error), "detail": str(error)}


FORMS = {"openai": write_openai_error, "tei": write_tei_error, "cohere": write_cohere_error}
