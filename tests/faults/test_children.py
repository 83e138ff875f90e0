"""The child processes of the tests themselves."""

import multiprocessing
import signal

import pytest
from tests.faults import children
from tests.faults.children import run_child


def wait_forever(_: None) -> None:
    signal.pause()


def test_a_child_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(children, "TIMEOUT_SECONDS", 0)
    with pytest.raises(pytest.fail.Exception, match="a child was still there"):
        run_child(wait_forever, None)
    assert multiprocessing.active_children() == []
