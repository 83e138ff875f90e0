"""The web application: a responder for each path of the table of endpoints."""

import re
from collections.abc import Iterable
from itertools import chain
from typing import Any

from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from bertkit.base.wings import SERVER_ROUTES, list_installed, load_object
from bertkit.serving.endpoint import Endpoint, RequestContext
from bertkit.serving.errors import Reason
from bertkit.serving.keys import Keys
from bertkit.serving.openapi import describe_api
from bertkit.serving.responder import Responder, refuse
from bertkit.serving.routes import hub, indexes, openai, tasks, tei
from bertkit.serving.service import Service

MODEL_PATH = "/v1/models/{model}"  # before the path of a route that names no model itself


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

    class NameConvertor(PathConvertor):
        """Finds a model's name, which may have slashes, but no other route's end."""

        regex = f"(?!.*(?:{'|'.join(map(re.escape, filter(None, ends)))})$).*"

    register_url_convertor("name", NameConvertor())
    routes = []
    for path, endpoint in paths:
        is_whole = path == MODEL_PATH
        pattern = path.replace("{model}", "{model:name}" if is_whole else "{model:path}")
        pattern = pattern.replace("{document}", "{document:path}")  # ids may have slashes
        handler = Responder(service, endpoint, admin_keys if endpoint.is_admin else keys)
        routes.append(Route(pattern, handler, methods=[endpoint.method]))
    app = Starlette(routes=routes, exception_handlers={HTTPException: refuse_path})
    app.state.service = service
    app.router.redirect_slashes = False  # to an address that the request names
    if service.settings.cors_allow_origin:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=service.settings.cors_allow_origin,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],  # clients name themselves in headers of their own
            expose_headers=["retry-after", "x-request-id"],
        )
    return app


def list_endpoints() -> list[Endpoint]:
    """Return all endpoints, those of other wings included."""
    others = map(load_object, list_installed(SERVER_ROUTES).values())
    tables = (
        tasks.ENDPOINTS,
        *others,
        indexes.ENDPOINTS,
        tei.ENDPOINTS,
        openai.ENDPOINTS,
        hub.ENDPOINTS,
    )
    return list(chain.from_iterable(tables))


def list_paths(endpoints: Iterable[Endpoint]) -> list[tuple[str, Endpoint]]:
    """List each path with its endpoint."""
    paths = []
    for endpoint in endpoints:
        paths.append((endpoint.path, endpoint))
        if endpoint.style == "tei" and not endpoint.is_open:
            paths.append(((MODEL_PATH + endpoint.path).rstrip("/"), endpoint))
    return sorted(paths, key=lambda one: one[0].endswith("{model}"))  # they fit others' paths


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
