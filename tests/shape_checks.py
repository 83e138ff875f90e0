"""Shapes and types of annotations are checked in the first calls of each function in a test."""

import sys
from collections import Counter
from functools import wraps
from typing import Any, Self

from beartype import beartype

MOST_CHECKS = 50  # of a function in a test: what loops makes the same calls again
checks: Counter[Any] = Counter()
no_longer_checked: list[Any] = []


def check_types(function: Any) -> Any:
    """beartype, except where `Self` stands: it takes that in whole classes only."""
    if Self in getattr(function, "__annotations__", {}).values():
        return function
    check = beartype(function)

    @wraps(check)
    def count_and_check(*arguments: Any, **options: Any) -> Any:
        checks[check] += 1
        if checks[check] == MOST_CHECKS:
            # jaxtyping calls this with a stand-in; the function itself is its caller's `fn`, and
            # marked it costs nothing more
            checked = sys._getframe(1).f_locals["fn"]
            checked.__no_type_check__ = True
            no_longer_checked.append(checked)
        return check(*arguments, **options)

    return count_and_check


def start_again() -> None:
    """Check each function from its next call on."""
    checks.clear()
    while no_longer_checked:
        no_longer_checked.pop().__no_type_check__ = False
