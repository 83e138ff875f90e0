"""What a server answers when it refuses or fails: a reason with its status, and a message."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from bertkit.base.errors import BertkitError, InputError, MissingExtraError, SettingsError


class Reason(Enum):
    """Why a request isn't answered with 200.

    Attributes:
        status: the HTTP status.
        kind: `error_type` of text-embeddings-inference, whose clients read it.
        meaning: what the OpenAPI page says.
    """

    MALFORMED = 400, "Validation", "This isn't a request of HTTP, or it could be read in two ways."
    EMPTY = 400, "Empty", "There is nothing to compute."
    NO_KEY = 401, "Unauthorized", "The request has no key, or a wrong one."
    FORBIDDEN = 403, "Forbidden", "The routes for administrators are disabled."
    UNKNOWN_MODEL = 404, "UnknownModel", "There is no such model, or it does something else."
    UNKNOWN_DOCUMENT = 404, "UnknownDocument", "There is no such index, or document in it."
    NO_ROUTE = 404, "UnknownRoute", "There is no such route."
    WRONG_METHOD = 405, "Validation", "The route takes another method."
    SLOW = 408, "Timeout", "The request didn't arrive in time."
    LARGE_BODY = 413, "Validation", "The body is larger than the server takes."
    NOT_JSON = 415, "Validation", "The body is compressed, or isn't JSON."
    UNREADABLE = 422, "Validation", "The body isn't what the route takes."
    FAILED = 424, "Backend", "The model failed on the request."
    OVERLOAD = 429, "Overloaded", "More requests wait than the server takes."
    LARGE_HEAD = 431, "Validation", "The request's line and headers are too large."
    LOADING = 503, "Unhealthy", "The model is being loaded, or the server is stopping."
    CROWDED = 503, "Overloaded", "There are more connections than the server takes."
    LATE = 504, "Timeout", "The answer took longer than a request may."

    def __init__(self, status: int, kind: str, meaning: str) -> None:
        self.status = status
        self.kind = kind
        self.meaning = meaning

    def error(self, message: str, retry_after: float | None = None) -> "ServingError":
        """Return the answer with a message, and after how many seconds the request may succeed."""
        return ServingError(self, message, retry_after)


HEADERS: Mapping[Reason, Mapping[str, str]] = {
    Reason.NO_KEY: {"www-authenticate": "Bearer"},
    Reason.SLOW: {"connection": "close"},
    Reason.LOADING: {"retry-after": "1"},
}


class ServingError(BertkitError):
    """An answer that isn't 200; the message goes to the client.

    Attributes:
        headers: of the answer; `retry-after` is the seconds after which the request may succeed.
    """

    def __init__(self, reason: Reason, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.headers = dict(HEADERS.get(reason, {}))
        if retry_after is not None:
            self.headers["retry-after"] = str(max(1, round(retry_after)))


def describe_refusal(error: BaseException | None = None) -> ServingError:
    """Return the answer to an error of a pipeline: what the client sent, or what the model did.

    It holds nothing of what the error holds.
    """
    if isinstance(error, ServingError):
        return error
    if isinstance(error, InputError | SettingsError):
        return Reason.UNREADABLE.error(str(error))
    if isinstance(error, MissingExtraError):  # how it is installed here isn't for clients
        return Reason.UNREADABLE.error(f"{str(error).partition(';')[0]} on the server")
    return Reason.FAILED.error("the model failed on this request; the server's log has the cause")


@dataclass(frozen=True)
class OpenAIDetails:
    """What is wrong."""

    message: str
    type: str
    param: str | None
    code: str


@dataclass(frozen=True)
class OpenAIError:
    """An error in OpenAI's form."""

    error: OpenAIDetails


@dataclass(frozen=True)
class TextError:
    """An error in the form of text-embeddings-inference."""

    error: str
    error_type: str


@dataclass(frozen=True)
class CohereError:
    """An error in the forms of Cohere and Jina."""

    message: str
    detail: str


Style = Literal["openai", "tei", "cohere"]  # whose form an error has
ERRORS: Mapping[Style, type] = {"openai": OpenAIError, "tei": TextError, "cohere": CohereError}


def write_error(error: ServingError, style: Style) -> tuple[int, Any]:
    """Return the status and the body of an error, as clients of a route expect them."""
    reason, status = error.reason, find_status(error.reason, style)
    if style == "tei":
        return status, TextError(str(error), reason.kind)
    if style == "cohere":  # Jina reads the detail
        return status, CohereError(str(error), str(error))
    is_fault = status < 500 and reason is not Reason.OVERLOAD
    kind = "invalid_request_error" if is_fault else "server_error"
    return status, OpenAIError(OpenAIDetails(str(error), kind, None, reason.kind))


def find_status(reason: Reason, style: Style) -> int:
    """Return the status of an error; OpenAI's have no 422."""
    return 400 if style == "openai" and reason is Reason.UNREADABLE else reason.status


# What follows the version in paths of Cohere's clients, and not in those of OpenAI's.
OF_COHERE = {"classify", "detokenize", "embed", "rerank", "summarize", "tokenize"}


def find_style(path: str) -> Style:
    """Return the style of errors where no route was found."""
    version, _, rest = path.removeprefix("/").partition("/")
    if version == "v2" or (version == "v1" and rest.partition("/")[0] in OF_COHERE):
        return "cohere"
    return "openai" if version == "v1" else "tei"
