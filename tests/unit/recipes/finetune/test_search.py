import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from tests.unit.recipes.finetune.small import TASK, make_rows, write_rows
from tests.unit.recipes.stopping import interrupt, read_files, stop_at

from bertkit.base.checksummed_json import write_checksummed_json
from bertkit.base.errors import (
    DamagedFileError,
    InputError,
    MissingFileError,
    NonFiniteError,
    ResumeError,
    SettingsError,
    StoppedError,
)
from bertkit.base.files import remove_folder
from bertkit.inference.predictor import Classifier
from bertkit.recipes.finetune import comparison as search_cells
from bertkit.recipes.finetune import search as search_module
from bertkit.recipes.finetune.comparison import Cell, Trial
from bertkit.recipes.finetune.run import finetune
from bertkit.recipes.finetune.search import describe_time_left, search
from bertkit.recipes.finetune.settings import FineTuneSettings, GridSearchSettings
from bertkit.training.run import Run

SETTINGS = FineTuneSettings(dropout=0.0, device="cpu")
GRID = GridSearchSettings(search="paper")
SEEDS = GridSearchSettings(seeds=2)
GOOD, BAD = "lr0.01-batch8-epochs4", "lr1e-09-batch8-epochs4"


@pytest.fixture(autouse=True)
def _small_grid(monkeypatch):
    monkeypatch.setattr(search_cells, "LEARNING_RATES", (1e-9, 1e-2))
    monkeypatch.setattr(search_cells, "BATCH_SIZES", (8,))
    monkeypatch.setattr(search_cells, "EPOCHS", (4.0,))


@pytest.fixture(scope="module")
def whole(made, tmp_path_factory):
    """A search that nothing interrupted."""
    output = tmp_path_factory.mktemp("search") / "model"
    sources = search_module.Sources(
        "classify", str(made / "model"), str(made / "train.csv"), str(made / "dev.csv")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_cells, "LEARNING_RATES", (1e-9, 1e-2))
        patch.setattr(search_cells, "BATCH_SIZES", (8,))
        patch.setattr(search_cells, "EPOCHS", (4.0,))
        result = search(sources, output, TASK, SETTINGS, GRID)
    return output, result


def test_the_better_choice_becomes_the_model(whole):
    output, result = whole
    assert result.output == output
    assert result.saved.metrics["accuracy"] == 1.0
    assert result.comparison.best_trial.folder == f"{GOOD}/seed0"
    assert result.comparison.outcomes[0].median < 1.0
    best = output / "search" / GOOD / "seed0"
    for name in ("model.safetensors", "config.json", "task.json", "metrics.json"):
        assert (output / name).read_bytes() == (best / name).read_bytes(), name
    classify = Classifier.load(output, engine="torch")
    assert [each.label for each in classify(["the cat", "a dog lost"])] == ["good", "bad"]


def test_only_the_best_keeps_its_weights_and_all_keep_their_metrics(whole):
    output, _ = whole
    assert [path.parent.parent.name for path in output.glob("search/*/*/model.safetensors")] == [
        GOOD
    ]
    assert len(list(output.glob("search/*/*/metrics.json"))) == 2
    assert not list(output.glob("search/*/*/run/checkpoints/*"))
    saved = json.loads((output / "search.json").read_text())
    assert saved["best"] == f"{GOOD}/seed0"
    assert list(saved["values"]) == [f"{BAD}/seed0", f"{GOOD}/seed0"]


def test_card_and_report_compare_the_runs(whole):
    output, _ = whole
    card, page = ((output / name).read_text() for name in ("README.md", "report.html"))
    assert "\n# model\n" in card
    assert "## Search\n\nBest of 2 runs: learning rate 0.01" in card
    assert "| learning rate 1e-09, batch 8, epochs 4 | 1 |" in card
    assert "from a test set" in card
    assert "accuracy of the runs" in page
    assert "Training curves" in page


def test_a_finished_search_is_reported_without_a_run(whole, sources, monkeypatch, capsys):
    output, result = whole
    before = read_files(output)
    monkeypatch.setattr(search_module, "prepare_search", None)
    found = search(sources, output, TASK, SETTINGS, GRID)
    assert "is already finished" in capsys.readouterr().err
    assert found.comparison == result.comparison
    assert found.saved.metrics == result.saved.metrics
    assert read_files(output) == before


def copy_without(whole: Path, output: Path, *names: str) -> Path:
    """The same search at an earlier time."""
    shutil.copytree(whole, output)
    for name in ("search.json", *names):
        remove_folder(output / name)
    return output


def test_a_stopped_search_goes_on_to_the_same_bits(whole, sources, tmp_path, monkeypatch, capsys):
    output = copy_without(whole[0], tmp_path / "model", f"search/{GOOD}")
    with monkeypatch.context() as patch:
        stop_at(6, patch)
        with pytest.raises(StoppedError, match="the same command resumes"):
            search(sources, output, TASK, SETTINGS, GRID)
    errors = capsys.readouterr().err
    assert "run 1 of 2" not in errors
    assert "run 2 of 2: learning rate 0.01, batch 8, epochs 4, seed 0\n" in errors
    assert errors.count("40 examples; labels") == 1  # the data is told once
    for owner, name in ((search_module, "write_best"), (search_module.SavedSearch, "save")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, interrupt)
            with pytest.raises(StoppedError, match="resumes with the runs that aren't finished"):
                search(sources, output, TASK, SETTINGS, GRID)
        assert not (output / "search.json").exists()
    assert "resuming after step 7" in capsys.readouterr().err
    search(sources, output, TASK, SETTINGS, GRID)
    assert read_files(output) == read_files(whole[0])


def test_a_search_goes_on_in_the_precision_that_was_asked_for(
    whole, sources, tmp_path, monkeypatch
):
    output = copy_without(whole[0], tmp_path / "model", f"search/{GOOD}")
    run = Run(output / "search")
    record = run.read_record()
    run.write_record(
        record.model_copy(update={"settings": {**record.settings, "precision": "bf16"}})
    )
    chosen = []
    monkeypatch.setattr(
        search_module, "finetune", lambda *given: chosen.append(given[3]) or interrupt()
    )
    with pytest.raises(StoppedError):
        search(sources, output, TASK, SETTINGS, GRID)
    assert [each.precision for each in chosen] == ["bf16"]
    with pytest.raises(ResumeError, match="--precision bf16 → fp32"):
        search(sources, output, TASK, SETTINGS.model_copy(update={"precision": "fp32"}), GRID)


def test_what_a_killed_search_left_is_removed(whole, sources, tmp_path, monkeypatch):
    """Killed while checkpoints or weights were removed, of a run that was finished."""
    output = copy_without(whole[0], tmp_path / "model")
    left = [
        output / "search" / BAD / "seed0" / "run" / "checkpoints" / "step-00000020.partial",
        output / "search" / BAD / "seed0" / "model.safetensors.partial",
    ]
    left[0].mkdir(parents=True)
    left[1].touch()
    done = []
    save = search_module.SavedSearch.save

    def note(saved, path):
        done.append([each.exists() for each in left])
        return save(saved, path)

    monkeypatch.setattr(search_module.SavedSearch, "save", note)
    search(sources, output, TASK, SETTINGS, GRID)
    assert done == [[False, False]]


def test_seeds_share_one_split_and_may_grow(sources, tmp_path, capsys):
    output = tmp_path / "model"
    settings = SETTINGS.model_copy(update={"learning_rate": 3e-3, "epochs": 1.0, "held_out": 0.4})
    undivided = dataclasses.replace(sources, dev=None)
    found = search(undivided, output, TASK, settings, SEEDS)
    assert list(found.comparison.best.values) == [0, 1]
    for number in (0, 1):  # each run is known by its settings, and comes to the same alone
        alone = settings.model_copy(update={"seed": number, "split_seed": 0})
        (place,) = output.glob(f"search/*/seed{number}")
        assert Run(place / "run").read_record().settings["split_seed"] == 0
        finetune(undivided, tmp_path / f"alone{number}", TASK, alone)
        told = [folder / "metrics.json" for folder in (place, tmp_path / f"alone{number}")]
        assert told[0].read_bytes() == told[1].read_bytes()
    capsys.readouterr()
    grown = search(undivided, output, TASK, settings, GridSearchSettings(seeds=3))
    errors = capsys.readouterr().err
    assert "run 3 of 3" in errors
    assert "run 2 of 3" not in errors
    assert list(grown.comparison.best.values) == [0, 1, 2]
    assert len(list(output.glob("search/*/*/model.safetensors"))) == 1


def test_weights_that_were_dropped_are_trained_again(whole, sources, tmp_path, capsys):
    lost = f"search/{GOOD}/seed0/model.safetensors"
    output = copy_without(whole[0], tmp_path / "model", lost)
    search(sources, output, TASK, SETTINGS, GRID)
    assert "is trained again, because its weights were removed" in capsys.readouterr().err
    assert read_files(output) == read_files(whole[0])


def test_a_run_that_fails_is_the_worst(sources, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(search_cells, "LEARNING_RATES", (1e30, 1e-2))
    settings = SETTINGS.model_copy(update={"max_skipped_steps": 2})
    found = search(sources, tmp_path / "model", TASK, settings, GRID)
    assert "lr1e+30-batch8-epochs4/seed0 failed, and counts as the worst" in capsys.readouterr().err
    assert found.comparison.best_trial.folder == f"{GOOD}/seed0"
    assert found.comparison.to_json()[0]["median"] is None
    again = search(sources, tmp_path / "model", TASK, settings, GRID)
    assert again.comparison.best_trial == found.comparison.best_trial


def test_a_search_of_which_every_run_fails_is_an_error(sources, tmp_path, monkeypatch):
    monkeypatch.setattr(search_cells, "LEARNING_RATES", (1e30,))
    settings = SETTINGS.model_copy(update={"max_skipped_steps": 2})
    with pytest.raises(NonFiniteError, match="none of 1 run has a value for accuracy"):
        search(sources, tmp_path / "model", TASK, settings, GRID)


def test_other_settings_or_data_and_other_kinds_of_runs_are_refused(whole, sources, made, tmp_path):
    output, _ = whole
    with pytest.raises(ResumeError, match=r"--layer-decay 1 → 0\.5"):
        search(sources, output, TASK, SETTINGS.model_copy(update={"layer_decay": 0.5}), GRID)
    with pytest.raises(ResumeError, match="--search paper → not given"):
        search(sources, output, TASK, SETTINGS, SEEDS)
    path = write_rows(tmp_path / "train.csv", make_rows(40, 3))
    with pytest.raises(ResumeError, match="data: different data"):
        search(dataclasses.replace(sources, train=str(path)), output, TASK, SETTINGS, GRID)
    with pytest.raises(ResumeError, match="holds a search; give --search or --seeds"):
        finetune(sources, output, TASK, SETTINGS)
    single = tmp_path / "single"
    (single / "run").mkdir(parents=True)
    with pytest.raises(ResumeError, match="holds a single run; leave out --search and --seeds"):
        search(sources, single, TASK, SETTINGS, GRID)
    (tmp_path / "mine" / "search").mkdir(parents=True)
    (tmp_path / "mine" / "search" / "notes.txt").write_text("mine")
    with pytest.raises(ResumeError, match="didn't write; choose another --output"):
        search(sources, tmp_path / "mine", TASK, SETTINGS, GRID)


def test_another_search_is_replaced_only_with_overwrite(whole, sources, tmp_path):
    output, other = tmp_path / "model", SETTINGS.model_copy(update={"seed": 3, "epochs": 1.0})
    shutil.copytree(whole[0], output)
    with pytest.raises(ResumeError, match="or replace it with --overwrite"):
        search(sources, output, TASK, other, SEEDS)
    replacing = other.model_copy(update={"overwrite": True})
    (tmp_path / "one_label.csv").write_text("text,label\n" + "a b,x\n" * 20)
    wrong = dataclasses.replace(sources, train=str(tmp_path / "one_label.csv"), dev=None)
    with pytest.raises(InputError, match="at least two labels"):
        search(wrong, output, TASK, replacing, SEEDS)
    assert (output / "model.safetensors").exists()
    assert (output / "search.json").exists()
    search(sources, output, TASK, replacing, SEEDS)
    alone = search(sources, tmp_path / "alone", TASK, other, SEEDS)
    assert (output / "search.json").read_bytes() == (tmp_path / "alone/search.json").read_bytes()
    assert sorted(path.name for path in (output / "search").iterdir()) == sorted(
        path.name for path in (alone.output / "search").iterdir()
    )


def test_a_parent_that_was_moved_is_known_by_its_files(whole, sources, made, tmp_path):
    output, _ = whole
    shutil.copytree(made / "model", tmp_path / "copy")
    moved = dataclasses.replace(sources, model=str(tmp_path / "copy"))
    found = search(moved, output, TASK, SETTINGS, GRID)
    assert found == search(sources, output, TASK, SETTINGS, GRID)


def test_a_wrong_call_leaves_nothing_behind(sources, tmp_path):
    output = tmp_path / "out"
    wrong = dataclasses.replace(sources, dev=str(tmp_path / "no.csv"))
    with pytest.raises(MissingFileError):
        search(wrong, output, TASK, SETTINGS, GRID)
    with pytest.raises(SettingsError, match="accumulate"):
        search(sources, output, TASK, SETTINGS.model_copy(update={"accumulate": 9}), GRID)
    assert not output.exists()


def test_a_damaged_record_is_told(whole, sources, tmp_path):
    output, _ = whole
    path = output / "search.json"
    before = path.read_bytes()
    try:
        path.write_bytes(before.replace(b"accuracy", b"accurasy"))
        with pytest.raises(DamagedFileError, match="was altered"):
            search(sources, output, TASK, SETTINGS, GRID)
        write_checksummed_json(path, {"format_version": 2})
        with pytest.raises(
            DamagedFileError, match=r"search\.json isn.t the result of a search: format_version"
        ):
            search(sources, output, TASK, SETTINGS, GRID)
    finally:
        path.write_bytes(before)


def test_the_time_that_is_left_follows_from_epochs():
    trials = [Trial(Cell(1e-5, 8, epochs), 0) for epochs in (2.0, 3.0, 4.0, None)]
    assert describe_time_left(0.0, 0.0, trials) == ""
    assert describe_time_left(120.0, 2.0, trials[1:]) == "; about 8 min left in all"
    assert describe_time_left(180.0, 3.0, trials[3:]) == "; about 1 min left in all"
