"""The files with the values of held-out rows: exact, repeatable, and as many as the log says."""

import math

import numpy as np
import pytest

from bertkit.base.errors import DamagedFileError, MissingFileError
from bertkit.recipes.finetune.row_files import EVALUATIONS, RowFiles, read_rows
from bertkit.tasks.ranking import RowValues
from bertkit.training.log import RunLog
from bertkit.training.run import Run

VALUES = RowValues(np.array([0.1, 1 / 3, math.nan]), truth=np.array([1.0, 2.0, 3.0]))


def keep(run: Run, *steps: int) -> None:
    """Evaluations after some steps, in the log and in files."""
    files = RowFiles(run.folder, VALUES)
    with RunLog(run.log_path, 0, 0) as log:
        for step in steps:
            log.write("eval", step, loss=1.0)
            log.write("train", step + 1, loss=1.0)
            files.keep(step)


def test_values_are_read_as_they_were_kept(tmp_path):
    run = Run(tmp_path / "run")
    run.folder.mkdir()
    keep(run, 0, 10)
    found = read_rows(run)
    assert list(found) == [0, 10]
    np.testing.assert_array_equal(found[10].values, VALUES.values)
    np.testing.assert_array_equal(found[10].truth, VALUES.truth)
    assert found[10].start is None


def test_a_repeated_evaluation_writes_the_same_bytes(tmp_path):
    run = Run(tmp_path / "run")
    run.folder.mkdir()
    keep(run, 0)
    path = run.folder / EVALUATIONS / "0.json"
    before = path.read_bytes()
    keep(run, 0)
    assert path.read_bytes() == before


def test_only_evaluations_of_the_log_count(tmp_path):
    run = Run(tmp_path / "run")
    run.folder.mkdir()
    keep(run, 0, 10, 20)
    keep(run, 0, 10)  # resumed with fewer steps
    assert list(read_rows(run)) == [0, 10]


def test_a_file_that_is_missing_or_altered_is_an_error(tmp_path):
    run = Run(tmp_path / "run")
    run.folder.mkdir()
    keep(run, 0)
    path = run.folder / EVALUATIONS / "0.json"
    path.write_bytes(path.read_bytes().replace(b"0.1", b"0.2"))
    with pytest.raises(DamagedFileError, match="was altered"):
        read_rows(run)
    path.unlink()
    with pytest.raises(MissingFileError, match=r"0\.json"):
        read_rows(run)


def test_a_task_that_is_not_compared_has_no_files(tmp_path):
    RowFiles(tmp_path).keep(0)
    assert not list(tmp_path.iterdir())
