"""Which cases of a test `make test` runs, and which only `make test-slow`."""

from collections.abc import Collection, Iterable
from typing import TypeVar

import pytest

Case = TypeVar("Case")


def mark_all_but(kept: Collection[Case], cases: Iterable[Case]) -> list[Case]:
    """Mark the cases of a test as exhaustive, except those kept, which must be among them."""
    cases = list(cases)
    assert all(case in cases for case in kept)
    mark = pytest.mark.exhaustive
    return [case if case in kept else pytest.param(case, marks=mark) for case in cases]
