"""The record of a finished run, and what it says of the files beside it."""

import math

import pytest
from pydantic import TypeAdapter

from bertkit.base.checksums import record_file
from bertkit.base.errors import DamagedFileError, MissingFileError
from bertkit.training.lifecycle import (
    METRICS_FILE,
    FinishedRecord,
    SavedNumber,
    drop_checkpoints,
    drop_left_checkpoints,
)
from bertkit.training.run import Run, RunRecord

RECORD = RunRecord(
    settings={"keep_checkpoints": False},
    data_fingerprint="d",
    model={},
    num_steps=3,
    versions={},
)


@pytest.fixture
def finished(tmp_path):
    """A folder with one file that its record vouches for."""
    (tmp_path / "weights").write_bytes(b"1234")
    files = {"weights": record_file(tmp_path / "weights").sha256}
    record = FinishedRecord(
        warnings=(), num_steps=3, best_step=2, has_ended_early=False, files=files
    )
    record.write(tmp_path)
    return tmp_path


def test_what_was_written_is_read_and_vouched_for(finished):
    record = FinishedRecord.read(finished)
    assert (record.num_steps, record.best_step) == (3, 2)
    record.check_files(finished)


def test_a_changed_file_is_named_with_the_cure(finished):
    (finished / "weights").write_bytes(b"1235")
    with pytest.raises(DamagedFileError, match=r"weights isn't what was written; restore it"):
        FinishedRecord.read(finished).check_files(finished)


def test_a_file_that_is_gone_is_named(finished):
    (finished / "weights").unlink()
    with pytest.raises(MissingFileError, match="weights is missing"):
        FinishedRecord.read(finished).check_files(finished)


def test_a_record_of_something_else_is_refused(finished):
    (finished / METRICS_FILE).write_text("{}")
    with pytest.raises(DamagedFileError, match=METRICS_FILE):
        FinishedRecord.read(finished)


@pytest.mark.parametrize(("kept", "is_left"), [(False, False), (True, True)])
def test_checkpoints_that_a_killed_run_left_go_where_they_were_not_to_be_kept(
    tmp_path, kept, is_left
):
    run = Run(tmp_path / "run")
    run.write_record(RECORD.model_copy(update={"settings": {"keep_checkpoints": kept}}))
    checkpoint = run.folder / "checkpoints" / "step-00000003"
    checkpoint.mkdir(parents=True)
    drop_left_checkpoints(run)
    assert checkpoint.exists() is is_left
    drop_checkpoints(run)
    assert not checkpoint.exists()


def test_what_is_not_defined_comes_back_as_nan():
    numbers = TypeAdapter(dict[str, SavedNumber])
    saved = numbers.dump_python({"f1": 0.5, "mcc": math.nan, "loss": math.inf}, mode="json")
    assert saved == {"f1": 0.5, "mcc": None, "loss": None}
    assert numbers.validate_python(saved) == pytest.approx(
        {"f1": 0.5, "mcc": math.nan, "loss": math.nan}, nan_ok=True
    )
