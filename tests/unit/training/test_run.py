"""What is told of a machine on which a run's bits depend."""

from pathlib import Path

import pytest
import torch
from tests.unit.training.jobs import TrainingSettings

from bertkit.base.checksummed_json import write_checksummed_json
from bertkit.base.errors import DamagedFileError, ResumeError, SettingsError, StorageError
from bertkit.training.device import PEAK_SIZES, choose_device, measure_peak
from bertkit.training.record import RunRecord, keep_precision
from bertkit.training.run import Run


def record(data: str = "a", model: dict | None = None, **settings) -> RunRecord:
    values = TrainingSettings(**settings).model_dump(mode="json")
    return RunRecord(
        settings=values, data_fingerprint=data, model=model or {}, num_steps=10, versions={}
    )


def test_what_changed_is_listed():
    with pytest.raises(ResumeError) as caught:
        record(steps=5).check_resume(record("b", steps=5, batch_size=64, seed=3))
    message = str(caught.value)
    assert "--batch-size 32 → 64" in message
    assert "--seed 0 → 3" in message
    assert "data: different data" in message
    assert "learning_rate" not in message


def test_another_model_under_the_same_name_is_refused():
    with pytest.raises(ResumeError, match="model's layers: 2 → 5"):
        record(model={"layers": 2}).check_resume(record(model={"layers": 5}))
    with pytest.raises(ResumeError) as caught:  # fifty thousand labels aren't listed
        record(model={"id2label": {}}).check_resume(record(model={"id2label": "x" * 10**6}))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("asked", ["auto", "bf16"])
def test_a_run_goes_on_in_its_precision_unless_another_is_asked_for(asked):
    begun = record(precision=asked).model_copy(update={"versions": {"precision": "bf16"}})
    auto = TrainingSettings()
    assert keep_precision(auto, begun).precision == "bf16"
    assert keep_precision(auto, None) == auto
    chosen = TrainingSettings(precision="fp32")
    assert keep_precision(chosen, begun) == chosen
    for precision in ("auto", "bf16"):
        begun.check_resume(record(precision=precision))
    with pytest.raises(ResumeError, match=r"other settings \(--precision bf16 → fp32\)"):
        begun.check_resume(record(precision="fp32"))


@pytest.mark.parametrize("versions", [{}, {"precision": "fp8"}])
def test_a_record_without_a_known_precision_leaves_auto(versions):
    begun = record().model_copy(update={"versions": versions})
    assert keep_precision(TrainingSettings(), begun) == TrainingSettings()


def test_a_file_is_not_a_run(tmp_path):
    (tmp_path / "run").write_text("mine")
    assert Run(tmp_path / "run").is_foreign
    with pytest.raises(StorageError, match="can't be read"):
        _ = Run(tmp_path / ("a" * 300)).is_foreign


def test_budget_and_rhythm_may_change():
    old, new = record(steps=5), record(minutes=2.0, keep=7, checkpoint_every=3)
    old.check_resume(new)
    assert not old.has_same_budget(new)
    assert old.has_same_budget(record(steps=5, keep=9))


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / "settings.json").write_text('{"settings": {}}')
    with pytest.raises(DamagedFileError, match=r"settings\.json.*written by an older bertkit"):
        Run(tmp_path).read_record()
    write_checksummed_json(tmp_path / "settings.json", {"settings": {}})
    with pytest.raises(DamagedFileError, match=r"settings\.json isn't a run's record"):
        Run(tmp_path).read_record()


def test_an_empty_folder_is_a_run_that_has_not_begun(tmp_path):
    assert Run(tmp_path).read_record() is None
    assert Run(tmp_path).newest_state().step == 0


def test_what_to_do_about_a_damaged_checkpoint_follows_from_the_others(tmp_path):
    for step, way in (
        (3, "start again, because it is the only one"),
        (6, "resume from the previous one"),
    ):
        newest = tmp_path / "checkpoints" / f"step-0000000{step}"
        newest.mkdir(parents=True)
        with pytest.raises(DamagedFileError) as caught:
            Run(tmp_path).newest_state()
        assert str(caught.value).endswith(f"; remove {newest} to {way}")


def test_what_a_crash_left_before_the_first_record_is_no_obstacle(tmp_path):
    (tmp_path / "settings.json.partial").write_text("{")
    assert not Run(tmp_path).is_foreign
    (tmp_path / "diary.txt").write_text("mine")
    assert Run(tmp_path).is_foreign


def test_two_budgets_are_refused():
    with pytest.raises(ValueError, match="one budget, not `minutes` and `steps`"):
        TrainingSettings(steps=5, minutes=1.0)


def test_more_parts_than_sequences_are_refused():
    with pytest.raises(ValueError, match="accumulate"):
        TrainingSettings(batch_size=2, accumulate=3)


@pytest.mark.parametrize("name", ["tpu", "cuda:99", "mps:0", ""])
def test_a_device_that_is_not_here_is_refused(name):
    with pytest.raises(SettingsError):
        choose_device(name)


def test_the_peak_is_measured_with_numbers_like_a_model_s_and_draws_none_of_its_own(monkeypatch):
    monkeypatch.setitem(PEAK_SIZES, "cpu", (8,))
    state, factors = torch.get_rng_state(), []
    monkeypatch.setattr(torch, "mm", lambda one, other: factors.extend([one, other]))
    assert measure_peak(torch.device("cpu"), "bf16") > 0.0
    assert factors[0].dtype == torch.bfloat16
    assert len(factors[0].unique()) > 8
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", ["gone", "there", "owner/name"])
def test_a_source_is_the_same_with_a_slash_whether_it_is_there_or_not(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    new = record().model_copy(update={"settings": {"of": 1, "model": f"{name}/", "after": 2}})
    found = new.recognize_source(None)
    assert list(found.settings.items()) == [("of", 1), ("model", name), ("after", 2)]
