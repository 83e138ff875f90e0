"""Work in a thread of its own, which takes along the threads that it started."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial, wraps
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def in_own_thread(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a function that loads a model, so that the process can be forked afterwards.

    Torch (GNU's OpenMP) keeps the threads of a large operation for the next one in the same thread,
    and ends them with it. A forked process lacks them, and would wait for them forever.
    """

    @wraps(function)
    def run(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        with ThreadPoolExecutor(max_workers=1) as thread:
            call = partial(copy_context().run, function, *arguments, **options)
            return thread.submit(call).result()

    return run
