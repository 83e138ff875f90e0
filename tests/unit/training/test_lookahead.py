"""Batches made a step ahead are those made when asked for; the thread ends with the loop."""

import threading
from contextlib import contextmanager

import pytest
import torch
from tests.unit.training.jobs import TrainingSettings, another, build_job, vary

from bertkit.base.errors import InputError
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.training import loop
from bertkit.training.job import Lookahead, open_lookahead
from bertkit.training.loop import fit
from bertkit.training.record import RunState

GPU = torch.device("cuda")
SETTINGS = TrainingSettings(batch_size=6, accumulate=2, learning_rate=0.02)


def list_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("batches")]


def test_the_next_step_is_made_while_this_one_is_used():
    made = {step: threading.Event() for step in range(5)}

    def make(step, rank):
        assert threading.current_thread() is not threading.main_thread()
        made[step].set()
        return step, rank

    with open_lookahead(GPU) as lookahead:
        for step in range(2, 4):
            assert lookahead.call(make, step, 7) == (step, 7)
            assert made[step + 1].wait(10)
        assert not made[1].is_set()
        assert lookahead.call(make, 1, 0) == (1, 0)  # an earlier step, and no step after that
        made[4].clear()
        assert lookahead.call(make, 4, 7) == (4, 7)
        assert not made[4].is_set()  # it was made once
    assert list_threads() == []


def test_a_run_is_the_same_with_and_without(tmp_path, run, monkeypatch):
    other = another(run)
    used = []

    @contextmanager
    def open_always(_):
        with open_lookahead(GPU) as lookahead:
            used.append(lookahead)
            yield lookahead

    for each in (run, other):
        job = build_job(SETTINGS, dropout=0.3, poison=lambda step: step == 3)
        fit(job, each, RunState(), 8)
        monkeypatch.setattr(loop, "open_lookahead", open_always)
    assert isinstance(used[0], Lookahead)
    assert list_threads() == []
    first, second = (list_checkpoints(each.folder)[-1] for each in (run, other))
    name = "model.safetensors"
    assert (first / name).read_bytes() == (second / name).read_bytes()


def test_the_thread_ends_with_a_loop_that_fails(run, monkeypatch):
    monkeypatch.setattr(loop, "open_lookahead", lambda _: open_lookahead(GPU))
    job = build_job(SETTINGS)

    def examples_at(step):
        if step == 2:
            raise InputError("shard 3 is damaged")
        return job.examples_at(step)

    broken = vary(job, examples_at=examples_at)
    with pytest.raises(InputError, match="shard 3"):
        fit(broken, run, RunState(), 8)
    assert list_threads() == []
