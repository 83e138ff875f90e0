"""The child processes of the tests themselves."""

import multiprocessing
import time

import pytest
from tests.faults import children
from tests.faults.children import run_child


def test_a_child_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(children, "TIMEOUT_SECONDS", 0.5)
    with pytest.raises(pytest.fail.Exception, match="a child was still there"):
        run_child(time.sleep, 60)
    assert multiprocessing.active_children() == []
