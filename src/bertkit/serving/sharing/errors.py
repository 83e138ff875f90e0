"""Why a request that shares a model with others isn't computed."""

from bertkit.base.errors import BertkitError


class OverloadError(BertkitError, RuntimeError):
    """Too much waits already.

    Attributes:
        retry_after: seconds after which the same request may be taken.
    """

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class LateError(BertkitError, RuntimeError):
    """The request would take longer than a request may."""


class FailedError(BertkitError, RuntimeError):
    """The model failed on the request."""


class ClosedError(BertkitError, RuntimeError):
    """No more requests are taken."""
