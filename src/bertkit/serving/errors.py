"""What a server answers when it refuses or fails: a status, a kind, and a message."""

from pathlib import Path
from traceback import walk_tb
from typing import Any, ClassVar

from bertkit.base.errors import BertkitError, InputError, SettingsError

MAX_FRAMES = 8  # of a failure, in the log


class ServingError(BertkitError):
    """An answer that isn't 200; the message goes to the client.

    Attributes:
        status: the HTTP status.
        kind: `error_type` of text-embeddings-inference, whose clients read it.
        retry_after: seconds after which the same request may succeed; None if it won't.
    """

    status: ClassVar[int] = 500
    kind: ClassVar[str] = "Unhealthy"
    retry_after: int | None = None


class UnreadableError(ServingError):
    """The body isn't what the route takes."""

    status = 422
    kind = "Validation"


class EmptyError(ServingError):
    """There is nothing to compute."""

    status = 400
    kind = "Empty"


class LongTextError(UnreadableError):
    """A text has more tokens than the model takes, and may not be cut off."""


class UnknownModelError(ServingError):
    """There is no such model, or it doesn't do what the route is for."""

    status = 404
    kind = "UnknownModel"


class NoRouteError(ServingError):
    """There is no such route."""

    status = 404
    kind = "UnknownRoute"


class WrongMethodError(ServingError):
    """The route takes another method."""

    status = 405
    kind = "Validation"


class KeyRefusedError(ServingError):
    """The request has no key, or a wrong one."""

    status = 401
    kind = "Unauthorized"


class ForbiddenError(ServingError):
    """Nobody may use the route of this server."""

    status = 403
    kind = "Unauthorized"


class MalformedError(ServingError):
    """What came isn't a request of HTTP, or could be read in two ways."""

    status = 400
    kind = "Validation"


class LargeHeadError(ServingError):
    """The request's line and headers are larger than the server takes."""

    status = 431
    kind = "Validation"


class LargeBodyError(ServingError):
    """The body is larger than the server takes."""

    status = 413
    kind = "Validation"


class SlowRequestError(ServingError):
    """The request didn't arrive in time."""

    status = 408
    kind = "Timeout"


class EncodedBodyError(ServingError):
    """The body is compressed, or isn't JSON."""

    status = 415
    kind = "Validation"


class OverloadError(ServingError):
    """More requests wait than the server takes."""

    status = 429
    kind = "Overloaded"

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = max(1, round(retry_after))


class FailedError(ServingError):
    """The model failed on the request."""

    status = 424
    kind = "Backend"


class LoadingError(ServingError):
    """The model is being loaded, or the server is stopping."""

    status = 503
    kind = "Unhealthy"
    retry_after = 1


class CrowdedError(ServingError):
    """There are more connections than the server takes."""

    status = 503
    kind = "Overloaded"


class LateError(ServingError):
    """The answer took longer than a request may."""

    status = 504
    kind = "Timeout"


def describe_refusal(error: BertkitError) -> ServingError:
    """Return the answer to an error of a pipeline: what the client sent, or what the model did."""
    if isinstance(error, ServingError):
        return error
    if isinstance(error, InputError | SettingsError):
        return UnreadableError(str(error))
    return FailedError("the model failed on this request; the server's log has the cause")


def locate_failure(error: BaseException) -> str:
    """Return what failed and where, innermost first; its message may hold texts of a request."""
    frames = list(walk_tb(error.__traceback__))[-MAX_FRAMES:]
    places = [f"{Path(one.f_code.co_filename).name}:{line}" for one, line in reversed(frames)]
    return f"{type(error).__name__} at {' < '.join(places)}"


def write_error(error: ServingError, style: str) -> tuple[int, dict[str, Any]]:
    """Return the status and the body of an error, as clients of a route expect them."""
    if style == "tei":
        return error.status, {"error": str(error), "error_type": error.kind}
    if style == "cohere":  # Jina reads the detail
        return error.status, {"message": str(error), "detail": str(error)}
    is_fault = error.status < 500 and error.status != OverloadError.status
    kind = "invalid_request_error" if is_fault else "server_error"
    content = {"message": str(error), "type": kind, "param": None, "code": error.kind}
    return find_status(type(error), style), {"error": content}


def find_status(kind: type[ServingError], style: str) -> int:
    """Return the status of an error; OpenAI's have no 422."""
    return 400 if style == "openai" and kind.status == UnreadableError.status else kind.status


def find_style(path: str) -> str:
    """Return the style of errors where no route was found."""
    return "openai" if path.startswith(("/v1", "/v2")) else "tei"
