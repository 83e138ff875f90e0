"""The run's log: a row a line, synced when asked, cut where a run is taken up."""

import math
import tracemalloc

import pytest

from bertkit.base.checksummed_json import add_row_checksum
from bertkit.base.errors import DamagedFileError
from bertkit.training import log as log_module
from bertkit.training.log import RunLog, read_log


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(log_module, "find_spec", lambda name: None)  # no TensorBoard: it is slow
    return tmp_path / "log.jsonl"


def write_rows(path, *steps: int) -> None:
    with RunLog(path, 0, 0) as log:
        for step in steps:
            log.write("train", step, loss=0.5)


def test_a_number_that_is_not_finite_is_null(path):
    with RunLog(path, 0, 0) as log:
        log.write("eval", 1, loss=0.5, matthews=math.nan, pearson=-math.inf, name="nan")
    values = {"loss": 0.5, "matthews": None, "pearson": None, "name": "nan"}
    assert list(read_log(path)) == [{"event": "eval", "step": 1, **values}]


def test_rows_behind_the_step_at_which_a_run_is_taken_up_are_cut_off(path):
    write_rows(path, 1, 2, 3)
    with RunLog(path, 2, 2) as log:
        log.write("train", 3, loss=0.1)
        assert log.num_rows == 3
    assert [(row["step"], row["loss"]) for row in read_log(path)] == [(1, 0.5), (2, 0.5), (3, 0.1)]
    RunLog(path, 0, 0).__exit__(None, None, None)
    assert list(read_log(path)) == []


def test_tensorboard_shows_each_step_of_a_resumed_run_once(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    path = tmp_path / "log.jsonl"
    write_rows(path, 1, 2, 3)
    with RunLog(path, 2, 2) as log:
        log.write("train", 3, loss=0.25)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload().Scalars("train/loss")
    assert [(event.step, event.value) for event in events] == [(1, 0.5), (2, 0.5), (3, 0.25)]


def test_what_a_power_cut_left_behind_the_synced_rows_is_passed_over(path):
    write_rows(path, 1, 2)
    with path.open("ab") as stream:
        stream.write(b"\0" * 100 + b'.5}\n{"event": "train", "step": 4}\n{"ev')
    assert [row["step"] for row in read_log(path, 2)] == [1, 2]
    for num_rows in (3, None):
        with pytest.raises(DamagedFileError, match=r"log\.jsonl:3 isn't a row"):
            list(read_log(path, num_rows))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda content: content[: content.index(b"\n") + 1], r" has 1 row and was saved with 2"),
        (
            lambda content: content[:-1],
            ":2 isn't a row of a run's log: it was altered or cut short",
        ),
        (lambda content: content[:-1] + b"\x0b", ":2 isn't a row"),
        (lambda content: content.replace(b": 2", b": 3"), ":2 isn't a row"),
    ],
)
def test_rows_that_were_synced_must_be_there_whole(path, change, problem):
    write_rows(path, 1, 2)
    path.write_bytes(changed := change(path.read_bytes()))
    with pytest.raises(DamagedFileError, match=r"log\.jsonl" + problem):
        RunLog(path, 2, 2)
    assert path.read_bytes() == changed


def test_reading_takes_less_memory_than_the_log(path):
    row = add_row_checksum({"event": "train", "step": 1, "loss": 0.5, "examples": "e" * 200}) + "\n"
    path.write_text(row * 4000)
    tracemalloc.start()
    try:
        RunLog(path, 1, 4000).__exit__(None, None, None)
        assert sum(1 for _ in read_log(path)) == 4000
        assert tracemalloc.get_traced_memory()[1] < path.stat().st_size / 2
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "content",
    [
        b"{}\n",
        b"\xff\n",
        b'{"event": "eval", "step": 1}\n',
        add_row_checksum({"event": "eval", "step": "1"}).encode() + b"\n",
        add_row_checksum({"step": 1}).encode() + b"\n",
        add_row_checksum({"event": "eval", "step": 1}).encode() + b"\x0b",
        b"[" * 9000 + b"\n",
    ],
)
def test_a_damaged_log_is_named_with_its_line(path, content):
    path.write_bytes(add_row_checksum({"event": "train", "step": 1}).encode() + b"\n" + content)
    with pytest.raises(DamagedFileError, match=r"log\.jsonl:2 isn't a row of a run's log"):
        list(read_log(path))


def test_a_row_that_a_crash_cut_short_is_none(path):
    write_rows(path, 1, 2)
    content = path.read_bytes()
    for size in range(len(content) // 2, len(content)):
        path.write_bytes(content[:size])
        assert [row["step"] for row in read_log(path)] == [1]
