"""A job in parts: its threads, its errors, and what Ray says without a cluster."""

import os
import pickle
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import ValidationError

from bertkit.base.errors import InputError, MissingExtraError, SettingsError
from bertkit.base.extras import describe_install
from bertkit.base.parts import PartsSettings, WorkersSettings, count_cores, run_parts
from bertkit.base.ray_workers import run_task

VARIABLES = ("OMP_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True)
class ReportThreads:
    """A job that returns its part and the worker's variables; the part -1 fails."""

    witness: Path
    num_gpus: int = 0

    def __call__(self, part, advance):
        advance(10)
        if part < 0:
            raise InputError("part -1 can't be read")
        return part, *(os.environ.get(name) for name in VARIABLES)


@pytest.fixture
def job(tmp_path):
    return ReportThreads(tmp_path)


def run(job, parts, **settings):
    counts = []
    found = dict(run_parts(job, parts, WorkersSettings(**settings), counts.append))
    return found, sum(counts)


def test_parts_run_here_or_in_processes_with_their_number_of_threads(job, monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    each = str(max(1, count_cores() // 2))
    assert run(job, [5, 6]) == ({0: (5, None, None), 1: (6, None, None)}, 20)
    assert run(job, [5, 6], workers=2) == ({0: (5, each, each), 1: (6, each, each)}, 20)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert run(job, [5, 6], workers=2)[0] == {0: (5, "7", each), 1: (6, "7", each)}
    assert run(job, [5], threads=3)[0] == {0: (5, "3", "3")}
    assert [os.environ.get(name) for name in VARIABLES] == ["7", None]


def test_no_parts_start_nothing(job, monkeypatch):
    monkeypatch.setitem(sys.modules, "bertkit.base.local_workers", None)
    assert run(job, [], workers=2, threads=1) == ({}, 0)


def test_a_share_is_every_nth_part():
    parts = list(range(7))
    shares = [parts[PartsSettings(shard=f"{number}/3").share] for number in range(3)]
    assert shares == [[0, 3, 6], [1, 4], [2, 5]]
    assert parts[PartsSettings().share] == parts


@pytest.mark.parametrize("shard", ["3/3", "4/3", "0/0", "-1/3", "1", "a/b"])
def test_a_share_that_no_part_has_is_refused(shard):
    with pytest.raises(ValidationError, match="must be i/n with i from 0 to n - 1"):
        PartsSettings(shard=shard)


def test_a_task_returns_its_result_its_bytes_and_its_error(job, tmp_path, monkeypatch):
    for name in VARIABLES:
        monkeypatch.setenv(name, "9")
    monkeypatch.chdir(tmp_path)
    folder = str(tmp_path.parent)
    assert run_task(pickle.dumps(job), 4, 2, folder) == ((4, "2", "2"), 10, None)
    assert Path.cwd() == tmp_path.parent
    outcome = run_task(pickle.dumps(job), -1, 2, "/nowhere")
    assert (outcome.num_bytes, str(outcome.error)) == (10, "part -1 can't be read")
    unseen = run_task(pickle.dumps(ReportThreads(tmp_path / "none")), 4, 2, folder)
    assert "doesn't see" in str(unseen.error)
    assert "on a folder that all nodes share, under the same path" in str(unseen.error)


def test_ray_that_is_missing_or_elsewhere_is_an_error_with_the_way_out(job, monkeypatch):
    monkeypatch.setattr("ray.is_initialized", lambda: False)  # another test may have started one
    with pytest.raises(SettingsError, match=r"no Ray cluster answers at ray://127\.0\.0\.1:9 "):
        run(job, [1], run_on="ray://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=re.escape(describe_install("ray"))):
        run(job, [1], run_on="ray")
