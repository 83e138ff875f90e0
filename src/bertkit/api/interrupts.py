"""How Ctrl-C ends a function: with one exception that names it, and a short traceback."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from bertkit.base.errors import StoppedError
from bertkit.training.signals import interruptible

Function = TypeVar("Function", bound=Callable[..., Any])


def ends_in_one_line(function: Function) -> Function:
    """Let Ctrl-C end a function without the traceback of what it was computing.

    The exception is `StoppedError` where work was saved, else `KeyboardInterrupt`, also if a
    library turns the interrupt into an error of its own.
    """

    @wraps(function)
    def call(*values: Any, **options: Any) -> Any:
        try:
            with interruptible():
                return function(*values, **options)
        except StoppedError as error:
            raise error.with_traceback(None) from None
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"bertkit.{function.__name__} was interrupted") from None

    return cast("Function", call)
