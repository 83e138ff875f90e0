"""A study runs what is missing, keeps what is done, and says what failed."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from studies.tests.small import SmallStudy, Told

from bertkit.base.errors import (
    DamagedFileError,
    InputError,
    ResumeError,
    SettingsError,
    StoppedError,
    StorageError,
)
from bertkit.base.output import open_output
from bertkit_studies.experiments.recurrent import Recurrent
from bertkit_studies.outcome import Outcome
from bertkit_studies.run import count_seeds, find_versions, run_study
from bertkit_studies.settings import RecurrentSettings, StudySettings
from bertkit_studies.study import Cell

FILES = {"study.json", "results.jsonl", "table.md", "report.html"}


def run(folder: Path, told: Told, **settings) -> Outcome:
    return run_study(SmallStudy(StudySettings(**settings), told), folder, "bertkit study small")


def refuse(error: Exception, *cells: Cell):
    def on_cell(cell: Cell) -> None:
        if cell in cells:
            raise error

    return on_cell


def test_every_arm_is_run_with_every_seed_and_only_once(tmp_path, capsys):
    told = Told()
    outcome = run(tmp_path / "study", told, seeds=2)
    assert told.cells == [Cell(arm, seed) for seed in range(2) for arm in ("good", "bad", "middle")]
    assert {path.name for path in (tmp_path / "study").iterdir()} >= FILES
    assert (len(outcome.results), outcome.missing, told.num_decided) == (6, [], 1)
    assert "run 1 of 6: good, seed 0" in capsys.readouterr().err
    again = run(tmp_path / "study", told, seeds=2)
    assert (len(told.cells), told.num_decided) == (6, 1)
    assert again.to_json() == outcome.to_json()


def test_more_seeds_and_other_arms_go_on_with_the_same_study(tmp_path):
    told = Told()
    outcome = run(tmp_path, told, seeds=1, only=("bad",))
    assert told.cells == [Cell("bad", 0)]
    assert [cell.arm for cell in outcome.missing] == ["good", "middle"]
    outcome = run(tmp_path, told, seeds=2, only=("bad", "good"))
    assert told.cells[1:] == [Cell("good", 0), Cell("good", 1), Cell("bad", 1)]
    assert len(outcome.results) == 4


def test_with_fewer_seeds_what_is_done_is_still_told(tmp_path):
    whole = run(tmp_path, Told(), seeds=3)
    failing = Told(on_cell=refuse(InputError("no text"), Cell("bad", 3)))
    run(tmp_path, failing, seeds=4, only=("bad",))
    rows = (tmp_path / "results.jsonl").read_text("utf-8")
    told = Told()
    outcome = run(tmp_path, told, seeds=1)
    assert told.cells == []
    assert list(outcome.results) == list(whole.results)
    assert list(outcome.failures) == [Cell("bad", 3)]
    assert outcome.missing == []
    assert (tmp_path / "results.jsonl").read_text("utf-8") == rows
    assert count_seeds(1, tmp_path) == 4
    assert count_seeds(7, tmp_path) == 7


def test_an_arm_that_isnt_there_is_refused_before_anything_is_done(tmp_path):
    with pytest.raises(SettingsError, match="no arm 'best'; it has good, bad, middle"):
        run(tmp_path / "study", Told(), only=("best",))
    assert not (tmp_path / "study").exists()


def test_a_cell_that_fails_leaves_its_reason_and_is_tried_again(tmp_path):
    told = Told(on_cell=refuse(InputError("no text"), Cell("bad", 0)))
    outcome = run(tmp_path, told, seeds=1)
    assert told.cells == [Cell("good", 0), Cell("middle", 0)]
    assert outcome.failures[Cell("bad", 0)].message == "no text"
    assert (tmp_path / "cells" / "bad" / "seed0" / "failure.json").exists()
    assert "no text" in (tmp_path / "report.html").read_text("utf-8")
    told.on_cell = refuse(InputError("no text"))
    outcome = run(tmp_path, told, seeds=1)
    assert told.cells[2:] == [Cell("bad", 0)]
    assert not outcome.failures
    assert not (tmp_path / "cells" / "bad" / "seed0" / "failure.json").exists()


@pytest.mark.parametrize("error", [StorageError("the disk is full"), StoppedError("stopped")])
def test_a_full_disk_and_a_stop_end_the_study_and_keep_what_is_done(tmp_path, error):
    told = Told(on_cell=refuse(error, Cell("bad", 0)))
    with pytest.raises(type(error)):
        run(tmp_path, told, seeds=1)
    assert not list((tmp_path / "cells" / "bad").rglob("result.json"))
    assert '"arm": "good"' in (tmp_path / "results.jsonl").read_text("utf-8")
    told.on_cell = lambda cell: None
    run(tmp_path, told, seeds=1)
    assert told.cells == [Cell("good", 0), Cell("bad", 0), Cell("middle", 0)]


def test_a_disk_that_refuses_a_result_keeps_the_cell_to_be_done(tmp_path, monkeypatch):
    def refuse_write(*arguments: object) -> None:
        raise StorageError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("bertkit_studies.run.write_result", refuse_write)
        with pytest.raises(StorageError, match="no space"):
            run(tmp_path, Told(), seeds=1)
    told = Told()
    assert len(run(tmp_path, told, seeds=1).results) == len(told.cells) == 3


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "out of memory"),
        (torch.OutOfMemoryError("CUDA out of memory"), "CUDA out of memory"),
    ],
)
def test_too_little_memory_for_a_cell_is_its_failure(tmp_path, error, words):
    outcome = run(tmp_path, Told(on_cell=refuse(error, Cell("bad", 0))), seeds=1)
    assert len(outcome.results) == 2
    failure = outcome.failures[Cell("bad", 0)]
    assert (failure.error, failure.message) == (type(error).__name__, words)


def test_the_seconds_of_a_cell_are_those_of_all_calls(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("bertkit_studies.run.time", SimpleNamespace(monotonic=lambda: clock.now))

    def work(seconds: float, error: Exception | None = None) -> Told:
        def on_cell(cell: Cell) -> None:
            clock.now += seconds
            if error is not None:
                raise error

        return Told(on_cell=on_cell)

    with pytest.raises(StoppedError):
        run(tmp_path, work(5.0, StoppedError("stopped")), seeds=1, only=("good",))
    run(tmp_path, work(30.0, InputError("no text")), seeds=1, only=("good",))
    outcome = run(tmp_path, work(100.0), seeds=1, only=("good",))
    assert outcome.results[Cell("good", 0)].seconds == 135.0
    assert not (tmp_path / Cell("good", 0).place / "spent.json").exists()


def test_a_bug_is_no_failure_of_a_cell(tmp_path):
    with pytest.raises(ZeroDivisionError):
        run(tmp_path, Told(on_cell=refuse(ZeroDivisionError(), Cell("good", 0))), seeds=1)


def test_another_study_other_settings_and_other_data_are_refused(tmp_path):
    run(tmp_path, Told(), seeds=1)
    with pytest.raises(ResumeError, match=r"--minutes not given → 2\)"):
        run(tmp_path, Told(), seeds=1, minutes=2)
    with pytest.raises(ResumeError, match="data: different data"):
        run(tmp_path, Told(data="other"), seeds=1)

    class Other(SmallStudy):
        name = "other"

    with pytest.raises(ResumeError, match="study: small → other"):
        run_study(Other(StudySettings(seeds=1)), tmp_path)


def test_a_folder_of_something_else_a_file_and_a_held_folder_are_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ResumeError, match="holds something that `bertkit study` didn't write"):
        run(tmp_path, Told())
    with pytest.raises(ResumeError, match="is a file; name a folder"):
        run(tmp_path / "thesis.txt", Told())
    with (
        open_output(tmp_path / "held", "testing in", is_workplace=True),
        pytest.raises(ResumeError, match="another"),
    ):
        run(tmp_path / "held", Told())


def test_damaged_records_are_named(tmp_path):
    run(tmp_path, Told(), seeds=1)
    result = tmp_path / "cells" / "good" / "seed0" / "result.json"
    whole = result.read_text("utf-8")
    result.write_text(whole.replace("0.8", "0.9"), "utf-8")
    with pytest.raises(DamagedFileError, match=r"result\.json was altered"):
        run(tmp_path, Told(), seeds=1)
    result.unlink()
    told = Told()
    run(tmp_path, told, seeds=1)
    assert told.cells == [Cell("good", 0)]
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(DamagedFileError, match=r"study\.json .* the study can't be resumed"):
        run(tmp_path, Told(), seeds=1)
    (tmp_path / "study.json").unlink()
    with pytest.raises(ResumeError, match=r"holds runs of a study, but no study\.json"):
        run(tmp_path, Told(), seeds=1)


def test_a_cell_whose_result_was_removed_begins_afresh(tmp_path):
    folder = tmp_path / Cell("good", 0).place

    def fine_tune(cell: Cell) -> None:
        """Refuses like `finetune` to go on with a model whose weights are gone."""
        weights, record = folder / "task" / "model.safetensors", folder / "task" / "metrics.json"
        if record.exists() and not weights.exists():
            raise DamagedFileError("the weights are gone")
        record.parent.mkdir(parents=True)
        weights.write_bytes(b"1")
        record.write_text("{}")

    first = run(tmp_path, Told(on_cell=fine_tune), seeds=1, only=("good",))
    (folder / "result.json").unlink()
    again = run(tmp_path, Told(on_cell=fine_tune), seeds=1, only=("good",))
    assert again.failures == {}
    assert again.to_json() == first.to_json()


def test_a_cell_that_was_interrupted_keeps_its_weights_and_why_it_failed(tmp_path):
    place = tmp_path / Cell("good", 0).place
    run(tmp_path, Told(on_cell=refuse(InputError("no text"), Cell("good", 0))), seeds=1)
    (place / "old").write_text("of a run without weights")
    stopping = Told(on_cell=refuse(StoppedError("stopped"), Cell("good", 0)))
    with pytest.raises(StoppedError):
        run(tmp_path, stopping, seeds=1)
    assert {path.name for path in place.iterdir()} == {"failure.json", "spent.json"}
    (place / "model.safetensors").write_bytes(b"1")
    with pytest.raises(StoppedError):
        run(tmp_path, stopping, seeds=1)
    assert (place / "model.safetensors").exists()


def test_a_study_isnt_taken_up_on_another_machine(tmp_path, monkeypatch):
    def move(**changes: str) -> None:
        versions = {"device": "cuda", "gpu": "A", "precision": "bf16", "torch": "2.11", **changes}
        monkeypatch.setattr("bertkit_studies.run.find_versions", lambda study: versions)

    move()
    run(tmp_path, Told(), seeds=1)
    move(torch="2.12")
    outcome = run(tmp_path, Told(), seeds=2)
    assert outcome.other_versions == {
        Cell(arm, 1): ["torch: '2.11' → '2.12'"] for arm in ("good", "bad", "middle")
    }
    assert "3 of 6 runs had other software" in outcome.summarize()
    assert "Runs under other conditions" in (tmp_path / "report.html").read_text("utf-8")
    move(gpu="B", precision="fp32")
    run(tmp_path, Told(), seeds=2)  # nothing is to be done
    with pytest.raises(ResumeError, match=r"\(gpu: 'A' → 'B'; precision: 'bf16' → 'fp32'\)"):
        run(tmp_path, Told(), seeds=3)


def test_the_precision_that_is_noted_is_the_one_that_is_used(monkeypatch):
    monkeypatch.setattr("bertkit_studies.run.choose_precision", lambda name, device, work: name)
    assert find_versions(SmallStudy(StudySettings()))["precision"] == "auto"
    assert find_versions(Recurrent(RecurrentSettings()))["precision"] == "fp32"


def test_weights_of_a_cell_that_is_done_are_removed(tmp_path):
    def write_weights(cell: Cell) -> None:
        folder = tmp_path / "cells" / cell.arm / f"seed{cell.seed}" / "model"
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(b"1")
        (folder / "metrics.json").write_text("{}")

    run(tmp_path, Told(on_cell=write_weights), seeds=1, only=("good",))
    left = sorted(path.name for path in (tmp_path / "cells" / "good").rglob("*.*"))
    assert left == ["metrics.json", "result.json"]
