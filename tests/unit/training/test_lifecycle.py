"""Checkpoints of a finished run."""

import pytest

from bertkit.training.lifecycle import drop_checkpoints, drop_left_checkpoints
from bertkit.training.run import Run, RunRecord

RECORD = RunRecord(
    settings={"keep_checkpoints": False},
    data_fingerprint="d",
    model={},
    num_steps=3,
    versions={},
)


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
