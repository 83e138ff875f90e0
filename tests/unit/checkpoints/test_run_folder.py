"""A checkpoint is what its manifest says, a finished model what its record says."""

import math

import pytest
from pydantic import TypeAdapter

from bertkit.base.checksummed_json import read_checksummed_json, write_checksummed_json
from bertkit.base.checksums import record_file
from bertkit.base.errors import DamagedFileError, MissingFileError
from bertkit.base.files import write_file
from bertkit.base.json_files import write_json
from bertkit.checkpoints.run_folder import (
    METRICS_FILE,
    FinishedRecord,
    SavedNumber,
    checkpoint_path,
    find_checkpoint,
    find_run,
    is_run,
    list_checkpoints,
    seal_checkpoint,
    verify_checkpoint,
)


@pytest.fixture
def checkpoint(tmp_path):
    folder = checkpoint_path(tmp_path, 7)
    folder.mkdir(parents=True)
    config = write_json(folder / "config.json", {})
    weights = write_file(folder / "weights", b"many" * 1000)
    seal_checkpoint(folder, 7, {"config.json": config, "weights": weights})
    return folder


def test_what_changes_between_writing_and_sealing_is_not_taken_for_what_was_written(tmp_path):
    record = write_file(tmp_path / "weights", b"many")
    (tmp_path / "weights").write_bytes(b"some")
    seal_checkpoint(tmp_path, 7, {"weights": record})
    with pytest.raises(DamagedFileError, match="weights is damaged between bytes"):
        verify_checkpoint(tmp_path)


def test_damage_is_found_where_it_is_read(checkpoint):
    (checkpoint / "weights").write_bytes(b"some" + b"many" * 999)
    with pytest.raises(DamagedFileError, match="weights is damaged between bytes 0 and 1,048,576"):
        verify_checkpoint(checkpoint)
    assert find_checkpoint(checkpoint, reading=["config.json"]) == checkpoint
    with pytest.raises(DamagedFileError, match="weights is damaged"):
        find_checkpoint(checkpoint.parents[1], reading=["weights"])


def test_a_runs_checkpoint_without_its_manifest_isnt_read(checkpoint, tmp_path):
    (checkpoint / "manifest.json").unlink()
    with pytest.raises(MissingFileError, match=r"manifest\.json doesn't exist"):
        find_checkpoint(checkpoint, reading=[])
    copy = checkpoint.rename(tmp_path / "exported")
    assert find_checkpoint(copy, reading=["config.json"]) == copy


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format_version", 1, r"format_version must be 2, got 1"),
        ("step", "7", "step must be a whole number"),
        ("files", {"../weights": None}, r"files\.\.\./weights"),
    ],
)
def test_a_manifest_of_another_kind_is_refused(checkpoint, key, value, message):
    path = checkpoint / "manifest.json"
    write_checksummed_json(path, {**read_checksummed_json(path), key: value})
    with pytest.raises(
        DamagedFileError, match=rf"isn't a checkpoint's manifest: {message}"
    ) as caught:
        verify_checkpoint(checkpoint)
    assert len(str(caught.value).splitlines()) == 1


def test_a_manifest_never_leads_out_of_its_folder(checkpoint):
    path = checkpoint / "manifest.json"
    content = read_checksummed_json(path)
    content["files"]["../weights"] = content["files"]["weights"]
    write_checksummed_json(path, content)
    with pytest.raises(DamagedFileError, match="names a file outside its folder"):
        verify_checkpoint(checkpoint)


def test_a_manifest_of_an_older_version_is_said_to_be_one(checkpoint):
    (checkpoint / "manifest.json").write_text('{"format_version": 1, "step": 7, "files": {}}\n')
    with pytest.raises(DamagedFileError, match=r"manifest\.json.*written by an older bertkit"):
        verify_checkpoint(checkpoint)


@pytest.mark.parametrize(
    "name", ["checkpoints/bert-base", "checkpoints/step-last", "step-00000007"]
)
@pytest.mark.parametrize("inside", ["checkpoints/", "settings.json"])
def test_a_model_of_others_is_none_of_a_runs(tmp_path, name, inside):
    folder = tmp_path / name
    folder.mkdir(parents=True)
    write_json(folder / "config.json", {})
    if inside.endswith("/"):
        (folder / inside).mkdir()
    else:
        (folder / inside).write_text("{}")
    assert not is_run(folder)
    assert find_checkpoint(folder, reading=["config.json"]) == folder
    assert list_checkpoints(tmp_path) == []


@pytest.mark.parametrize("name", ["modules.json", "bert_config.json"])
def test_a_folder_of_another_format_is_no_run(tmp_path, name):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "settings.json").write_text("{}")
    assert is_run(tmp_path)
    (tmp_path / name).write_text("{}")
    assert not is_run(tmp_path)


def test_a_results_folder_stands_for_its_run(tmp_path):
    run = tmp_path / "result" / "run"
    (run / "checkpoints").mkdir(parents=True)
    (tmp_path / "result" / "shards").mkdir()
    assert find_run(tmp_path / "result") == run
    assert find_run(run) == run
    assert find_run(tmp_path) == tmp_path
    assert find_run(tmp_path / "prefix.ckpt") == tmp_path / "prefix.ckpt"


def test_a_model_beside_its_run_is_the_model(tmp_path):
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "config.json").write_text("{}")
    assert find_run(tmp_path) == tmp_path


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


def test_what_is_not_defined_comes_back_as_nan():
    numbers = TypeAdapter(dict[str, SavedNumber])
    saved = numbers.dump_python({"f1": 0.5, "mcc": math.nan, "loss": math.inf}, mode="json")
    assert saved == {"f1": 0.5, "mcc": None, "loss": None}
    found = numbers.validate_python(saved)
    assert found.pop("f1") == 0.5
    assert [math.isnan(value) for value in found.values()] == [True, True]
