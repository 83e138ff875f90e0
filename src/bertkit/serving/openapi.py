"""The description of the server's routes, as OpenAPI 3.1, from the table of endpoints."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter

from bertkit._version import __version__
from bertkit.serving.errors import Reason, find_status
from bertkit.serving.routes.answers import Endpoint

JSON = "application/json"


class Usage(BaseModel):
    """Tokens that the model read."""

    prompt_tokens: int
    total_tokens: int


class EmbeddedText(BaseModel):
    """A vector, as a list or as base64 of float32."""

    object: str
    index: int
    embedding: list[float] | str


class EmbeddedTexts(BaseModel):
    """The answer of `/v1/embeddings`."""

    object: str
    data: list[EmbeddedText]
    model: str
    usage: Usage


class ListedModel(BaseModel):
    """A model of the server."""

    id: str
    object: str
    created: int
    owned_by: str
    tasks: list[str]


class ListedModels(BaseModel):
    """The answer of `/v1/models`."""

    object: str
    data: list[ListedModel]


class LabelScore(BaseModel):
    """A label and its score."""

    label: str
    score: float


class RankedText(BaseModel):
    """The number of a text and its score; the text if it is asked for."""

    index: int
    score: float
    text: str = ""


class RankedDocuments(BaseModel):
    """The answer of `/v1/rerank`."""

    id: str
    model: str
    results: list[dict[str, Any]]
    usage: Usage
    meta: dict[str, Any]


class ListedToken(BaseModel):
    """A token, and its bytes in the text; a special one has none."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


class TaskResults(BaseModel):
    """The results of a pipeline: one, or a list as of the inputs."""

    model: str
    results: Any
    usage: dict[str, int]


class OpenAIDetails(BaseModel):
    """What is wrong."""

    message: str
    type: str
    param: str | None
    code: str


class OpenAIError(BaseModel):
    """An error in OpenAI's form."""

    error: OpenAIDetails


class TextError(BaseModel):
    """An error in the form of text-embeddings-inference."""

    error: str
    error_type: str


class CohereError(BaseModel):
    """An error in the forms of Cohere and Jina."""

    message: str
    detail: str


ERRORS: Mapping[str, Any] = {"openai": OpenAIError, "tei": TextError, "cohere": CohereError}
ANSWERS: Mapping[str, Any] = {
    "/v1/embeddings": EmbeddedTexts,
    "/embeddings": EmbeddedTexts,
    "/v1/models": ListedModels,
    "/v1/models/{model}": ListedModel,
    "/v1/rerank": RankedDocuments,
    "/v2/rerank": RankedDocuments,
    "/embed": list[list[float]],
    "/embed_all": list[list[list[float]]],
    "/predict": list[LabelScore] | list[list[LabelScore]],
    "/rerank": list[RankedText],
    "/similarity": list[float],
    "/tokenize": list[list[ListedToken]],
    "/decode": list[str],
    "/info": dict[str, Any],
    "/": Any,
    "/openapi.json": dict[str, Any],
    "/v1/reload": dict[str, list[str]],
    "/v1/models/{model}/reload": dict[str, list[str]],
    "/invocations": Any,
}
TEXTS = {"/health", "/ping", "/ready", "/metrics"}  # whose answers aren't JSON
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
    kinds = {one.body for _, one in rows if one.body is not None}
    types = [*kinds, *ERRORS.values(), *ANSWERS.values(), TaskResults]
    schemas, definitions = TypeAdapter.json_schemas(
        [(number, "validation", TypeAdapter(one)) for number, one in enumerate(types)],
        ref_template="#/components/schemas/{model}",
    )
    known = {str(one): schemas[number, "validation"] for number, one in enumerate(types)}
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
    path: str, endpoint: Endpoint, known: Mapping[str, Any], *, has_keys: bool
) -> dict[str, Any]:
    """Return the description of an endpoint at a path."""
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": f"{endpoint.method.lower()}{path}",
        "responses": describe_responses(path, endpoint, known),
    }
    if endpoint.is_admin or (has_keys and not endpoint.is_open):
        operation["security"] = [{"bearer": []}]
    if "{model}" in path:
        name = {"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}
        operation["parameters"] = [name]
    if endpoint.body is not None:
        content = {JSON: {"schema": known[str(endpoint.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def describe_responses(
    path: str, endpoint: Endpoint, known: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the description of an endpoint's answers, by status."""
    schema = known[str(ANSWERS.get(endpoint.path, TaskResults))]
    contents: dict[str, Any] = {JSON: {"schema": schema}}
    if endpoint.path in TEXTS:
        contents = {"text/plain": {}}
    elif endpoint.body is None and endpoint.path == "/":
        contents = {"text/html": {}}
    elif endpoint.path.endswith("/generate"):
        contents["text/event-stream"] = {}
    refusals = [*OF_ALL, *([] if endpoint.is_open else OF_CLOSED)]
    refusals += [Reason.LOADING] if endpoint.path == "/ready" else []
    refusals += [Reason.FORBIDDEN, Reason.FAILED] if endpoint.is_admin else []
    refusals += OF_BODIES if endpoint.body is not None else []
    described = {"200": {"description": "The answer.", "content": contents}}
    for refusal in sorted(refusals, key=lambda one: one.status):
        status = find_status(refusal, endpoint.style)
        # A connection that reads no whole request knows no route.
        styles = ERRORS if refusal in OF_ALL or status == 400 else (endpoint.style,)
        any_of = [known[str(ERRORS[style])] for style in styles]
        error = any_of[0] if len(any_of) == 1 else {"anyOf": any_of}
        content = {JSON: {"schema": error}}
        described[str(status)] = {"description": refusal.meaning, "content": content}
    return described
