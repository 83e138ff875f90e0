"""The description of the server's routes, as OpenAPI 3.1, from the table of endpoints."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import TypeAdapter

from bertkit._version import __version__
from bertkit.serving.endpoint import JSON, Endpoint
from bertkit.serving.errors import ERRORS, Reason, find_status

NAME_IN_PATH = re.compile(r"\{(\w+)\}")
OF_ALL = Reason.MALFORMED, Reason.LARGE_HEAD, Reason.SLOW
OF_CLOSED = Reason.NO_KEY, Reason.UNKNOWN_MODEL, Reason.LOADING
OF_BODIES = (
    Reason.EMPTY,
    Reason.NOT_JSON,
    Reason.FAILED,
    Reason.LARGE_BODY,
    Reason.LATE,
    Reason.OVERLOAD,
    Reason.UNREADABLE,
)


def describe_api(paths: Iterable[tuple[str, Endpoint]], *, has_keys: bool) -> dict[str, Any]:
    """Return the description of endpoints at paths."""
    rows = list(paths)
    answers = {one.answer for _, one in rows if JSON in one.media_types}
    modes: dict[Any, Literal["validation", "serialization"]] = {
        one.body: "validation" for _, one in rows if one.body is not None
    }
    modes |= dict.fromkeys([*ERRORS.values(), *answers], "serialization")
    schemas, definitions = TypeAdapter.json_schemas(
        [(one, mode, TypeAdapter(one)) for one, mode in modes.items()],
        ref_template="#/components/schemas/{model}",
    )
    known = {one: schema for (one, _), schema in schemas.items()}
    described: dict[str, dict[str, Any]] = {}
    for path, endpoint in rows:
        operation = describe_operation(path, endpoint, known, has_keys=has_keys)
        described.setdefault(path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "bertkit serve", "version": __version__},
        "paths": described,
        "components": {
            "schemas": definitions["$defs"],
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def describe_operation(
    path: str, endpoint: Endpoint, known: Mapping[Any, Any], *, has_keys: bool
) -> dict[str, Any]:
    """Return the description of an endpoint at a path."""
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": f"{endpoint.method.lower()}{path}",
        "responses": describe_responses(endpoint, known),
    }
    if endpoint.is_admin or (has_keys and not endpoint.is_open):
        operation["security"] = [{"bearer": []}]
    if names := NAME_IN_PATH.findall(path):
        text = {"in": "path", "required": True, "schema": {"type": "string"}}
        operation["parameters"] = [{"name": name, **text} for name in names]
    if endpoint.body is not None:
        content = {JSON: {"schema": known[endpoint.body]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def describe_responses(endpoint: Endpoint, known: Mapping[Any, Any]) -> dict[str, dict[str, Any]]:
    """Return the description of an endpoint's answers, by status."""
    contents = {
        name: {"schema": known[endpoint.answer]} if name == JSON else {}
        for name in endpoint.media_types
    }
    refusals = [*OF_ALL, *([] if endpoint.is_open else OF_CLOSED)]
    refusals += [Reason.UNKNOWN_DOCUMENT] if "{document}" in endpoint.path else []
    refusals += [Reason.LOADING] if endpoint.path == "/ready" else []
    refusals += [Reason.FORBIDDEN, Reason.FAILED] if endpoint.is_admin else []
    refusals += OF_BODIES if endpoint.body is not None else []
    described = {"200": {"description": "The answer.", "content": contents}}
    for refusal in sorted(refusals, key=lambda one: one.status):
        status = find_status(refusal, endpoint.style)
        # A connection that reads no whole request knows no route.
        styles = ERRORS if refusal in OF_ALL or status == 400 else (endpoint.style,)
        any_of = [known[ERRORS[style]] for style in styles]
        error = any_of[0] if len(any_of) == 1 else {"anyOf": any_of}
        content = {JSON: {"schema": error}}
        described[str(status)] = {"description": refusal.meaning, "content": content}
    return described
