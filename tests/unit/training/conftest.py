"""What the tests of the loop share."""

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pytest

from bertkit.training import log, loop
from bertkit.training.record import RunRecord
from bertkit.training.run import Run


@pytest.fixture
def run(tmp_path):
    run = Run(tmp_path / "run")
    run.write_record(
        RunRecord(settings={}, data_fingerprint="", model={}, num_steps=0, versions={})
    )
    return run


@pytest.fixture
def quick(monkeypatch):
    """No waiting for a disk, and no TensorBoard."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr(log, "find_spec", lambda name: None)


@pytest.fixture
def stopped_at_read(monkeypatch) -> Callable[[int], AbstractContextManager[None]]:
    """In its context, a stop signal comes before the loop's n-th look for one, from 0."""

    @contextmanager
    def stop(number):
        class LateRequest:
            reads_left = number

            @property
            def is_set(self) -> bool:
                self.reads_left -= 1
                return self.reads_left < 0

            def run(self, work):
                return None if self.is_set else work()

        with monkeypatch.context() as patch:
            patch.setattr(loop, "catch_stop_signals", lambda: nullcontext(LateRequest()))
            yield

    return stop
