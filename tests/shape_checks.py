"""Shapes and types of annotations are checked in the first calls of each test."""

from functools import wraps
from typing import Any, Self

import jaxtyping
from beartype import beartype

MOST_CHECKS = 2000  # in a test: what loops goes through the same calls again
checks = {"done": 0}


def check_types(function: Any) -> Any:
    """beartype, except where `Self` stands: it takes that in whole classes only."""
    if Self in getattr(function, "__annotations__", {}).values():
        return function
    check = beartype(function)

    @wraps(check)
    def count_and_check(*arguments: Any, **options: Any) -> Any:
        checks["done"] += 1
        if checks["done"] >= MOST_CHECKS:
            jaxtyping.config.jaxtyping_disable = True
        return check(*arguments, **options)

    return count_and_check


def start_again() -> None:
    """Check the next test from its beginning."""
    checks["done"] = 0
    jaxtyping.config.jaxtyping_disable = False
