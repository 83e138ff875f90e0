import dataclasses
import json
import shutil
from functools import partial
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
from bertkit.recipes.finetune import seeds as recipe
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.recipes.finetune.seeds import finetune_seeds
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.training.run import Run

# Of two seeds, 0 learns all of the held-out examples.
SETTINGS = FineTuneSettings(
    epochs=2, batch_size=8, learning_rate=1e-2, dropout=0.0, device="cpu", seed=0
)


@pytest.fixture(scope="module")
def whole(made, tmp_path_factory):
    """Two seeds that nothing interrupted."""
    output = tmp_path_factory.mktemp("seeds") / "model"
    sources = Sources(
        "classify", str(made / "model"), str(made / "train.csv"), str(made / "dev.csv")
    )
    return output, finetune_seeds(sources, output, TASK, SETTINGS, 2)


def find_best(result) -> str:
    return f"seed{result.comparison.best_seed}"


def find_other(result) -> str:
    return f"seed{1 - result.comparison.best_seed}"


def test_the_best_run_becomes_the_model(whole):
    output, result = whole
    assert result.output == output
    values = result.comparison.values
    assert list(values) == [0, 1]
    assert result.saved.metrics["accuracy"] == max(values.values())
    best = output / "seeds" / find_best(result)
    for name in ("model.safetensors", "config.json", "task.json", "metrics.json"):
        assert (output / name).read_bytes() == (best / name).read_bytes(), name
    classify = Classifier.load(output, engine="torch")
    assert [each.label for each in classify(["the cat", "a dog lost"])] == ["good", "bad"]


def test_only_the_best_keeps_its_weights_and_all_keep_their_metrics(whole):
    output, result = whole
    weights = [path.parent.name for path in output.glob("seeds/*/model.safetensors")]
    assert weights == [find_best(result)]
    assert len(list(output.glob("seeds/*/metrics.json"))) == 2
    assert not list(output.glob("seeds/*/run/checkpoints/*"))
    saved = json.loads((output / "seeds.json").read_text())
    assert saved["best"] == result.comparison.best_seed
    assert list(saved["values"]) == ["0", "1"]


def test_card_and_report_compare_the_runs(whole):
    output, _ = whole
    card, page = ((output / name).read_text() for name in ("README.md", "report.html"))
    assert "\n# model\n" in card
    assert "## Seeds\n\naccuracy over 2 seeds: mean " in card
    assert "from a test set" in card
    assert "accuracy of the runs" in page
    assert "Training curves" in page


def copy_without(whole: Path, output: Path, *names: str) -> Path:
    """The same runs at an earlier time."""
    shutil.copytree(whole, output)
    for name in ("seeds.json", *names):
        remove_folder(output / name)
    return output


def test_stopped_runs_go_on_to_the_same_bits(whole, sources, tmp_path, monkeypatch, capsys):
    output = copy_without(whole[0], tmp_path / "model", "seeds/seed1")
    if find_best(whole[1]) == "seed1":
        remove_folder(output / "seeds/seed0")
    with monkeypatch.context() as patch:
        stop_at(6, patch)
        with pytest.raises(StoppedError, match="the same command resumes"):
            finetune_seeds(sources, output, TASK, SETTINGS, 2)
    errors = capsys.readouterr().err
    assert errors.count("40 examples; labels") == 1  # the data is told once
    for owner, name in ((recipe, "write_best"), (recipe.SavedSeeds, "save")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, interrupt)
            with pytest.raises(StoppedError, match="resumes with the runs that aren't finished"):
                finetune_seeds(sources, output, TASK, SETTINGS, 2)
        assert not (output / "seeds.json").exists()
    assert "resuming after step 7" in capsys.readouterr().err
    finetune_seeds(sources, output, TASK, SETTINGS, 2)
    assert read_files(output) == read_files(whole[0])


def test_the_runs_go_on_in_the_precision_that_was_asked_for(whole, sources, tmp_path, monkeypatch):
    output = copy_without(whole[0], tmp_path / "model", "seeds/seed1")
    run = Run(output / "seeds")
    record = run.read_record()
    run.write_record(
        record.model_copy(update={"settings": {**record.settings, "precision": "bf16"}})
    )
    chosen = []
    monkeypatch.setattr(recipe, "finetune", lambda *given: chosen.append(given[3]) or interrupt())
    with pytest.raises(StoppedError):
        finetune_seeds(sources, output, TASK, SETTINGS, 2)
    assert [each.precision for each in chosen] == ["bf16"]
    other = SETTINGS.model_copy(update={"precision": "fp32"})
    with pytest.raises(ResumeError, match="--precision bf16 → fp32"):
        finetune_seeds(sources, output, TASK, other, 2)


def test_what_killed_runs_left_is_removed(whole, sources, tmp_path):
    """Killed while checkpoints or weights were removed, of a run that was finished."""
    output = copy_without(whole[0], tmp_path / "model")
    other = output / "seeds" / find_other(whole[1])
    left = [
        other / "run" / "checkpoints" / "step-00000020.partial",
        other / "model.safetensors.partial",
    ]
    left[0].mkdir(parents=True)
    left[1].touch()
    finetune_seeds(sources, output, TASK, SETTINGS, 2)
    assert not any(path.exists() for path in left)


def test_seeds_share_one_split_and_may_grow(sources, tmp_path, capsys):
    output = tmp_path / "model"
    settings = SETTINGS.model_copy(update={"learning_rate": 3e-3, "epochs": 1.0, "held_out": 0.4})
    undivided = dataclasses.replace(sources, dev=None)
    found = finetune_seeds(undivided, output, TASK, settings, 2)
    # A run is known by its settings, and comes to the same alone.
    folder, alone = output / "seeds/seed1", tmp_path / "alone"
    assert Run(folder / "run").read_record().settings["split_seed"] == 0
    finetune(undivided, alone, TASK, settings.model_copy(update={"seed": 1, "split_seed": 0}))
    assert (folder / "metrics.json").read_bytes() == (alone / "metrics.json").read_bytes()
    capsys.readouterr()
    grown = finetune_seeds(undivided, output, TASK, settings, 3)
    errors = capsys.readouterr().err
    assert "run 3 of 3: seed 2" in errors
    assert "run 2 of 3" not in errors
    assert list(grown.comparison.values)[:2] == list(found.comparison.values)
    assert len(list(output.glob("seeds/*/model.safetensors"))) == 1


def test_weights_that_were_dropped_are_trained_again(whole, sources, tmp_path, capsys):
    lost = f"seeds/{find_best(whole[1])}/model.safetensors"
    output = copy_without(whole[0], tmp_path / "model", lost)
    finetune_seeds(sources, output, TASK, SETTINGS, 2)
    assert "is trained again, because its weights were removed" in capsys.readouterr().err
    assert read_files(output) == read_files(whole[0])


def test_a_run_that_fails_is_the_worst(whole, sources, tmp_path, monkeypatch, capsys):
    output = copy_without(whole[0], tmp_path / "model", "seeds/seed1")

    def fail(*_):
        raise NonFiniteError("the loss isn't finite")

    monkeypatch.setattr(recipe, "finetune", fail)
    if find_best(whole[1]) == "seed0":
        found = finetune_seeds(sources, output, TASK, SETTINGS, 2)
        assert "seed1 failed, and counts as the worst" in capsys.readouterr().err
        assert found.comparison.best_seed == 0
        assert found.comparison.to_json()["values"]["1"] is None
    with pytest.raises(NonFiniteError, match="none of 2 runs has a value for accuracy"):
        finetune_seeds(sources, tmp_path / "none", TASK, SETTINGS, 2)


def test_other_settings_or_data_and_other_kinds_of_runs_are_refused(whole, sources, tmp_path):
    output, _ = whole
    other = SETTINGS.model_copy(update={"layer_decay": 0.5})
    with pytest.raises(ResumeError, match=r"layer_decay 1 → 0\.5"):
        finetune_seeds(sources, output, TASK, other, 2)
    path = write_rows(tmp_path / "train.csv", make_rows(40, 3))
    changed = dataclasses.replace(sources, train=str(path))
    with pytest.raises(ResumeError, match="data: different data"):
        finetune_seeds(changed, output, TASK, SETTINGS, 2)
    with pytest.raises(ResumeError, match="holds runs of several seeds; give --seeds"):
        finetune(sources, output, TASK, SETTINGS)
    single = tmp_path / "single"
    (single / "run").mkdir(parents=True)
    with pytest.raises(ResumeError, match="holds a single run; leave out --seeds"):
        finetune_seeds(sources, single, TASK, SETTINGS, 2)
    old = tmp_path / "old"
    (old / "search").mkdir(parents=True)
    (old / "search" / "settings.json").touch()
    for train in (finetune, partial(finetune_seeds, num_seeds=2)):
        with pytest.raises(ResumeError, match=r"of an earlier version.* use its model"):
            train(sources, old, TASK, SETTINGS)
    (tmp_path / "mine" / "seeds").mkdir(parents=True)
    (tmp_path / "mine" / "seeds" / "notes.txt").write_text("mine")
    with pytest.raises(ResumeError, match="didn't write; choose another --output"):
        finetune_seeds(sources, tmp_path / "mine", TASK, SETTINGS, 2)


def test_other_runs_are_replaced_only_with_overwrite(whole, sources, tmp_path):
    output, other = tmp_path / "model", SETTINGS.model_copy(update={"seed": 3, "epochs": 1.0})
    shutil.copytree(whole[0], output)
    with pytest.raises(ResumeError, match="or replace it with --overwrite"):
        finetune_seeds(sources, output, TASK, other, 1)
    replacing = other.model_copy(update={"overwrite": True})
    (tmp_path / "one_label.csv").write_text("text,label\n" + "a b,x\n" * 20)
    wrong = dataclasses.replace(sources, train=str(tmp_path / "one_label.csv"), dev=None)
    with pytest.raises(InputError, match="at least two labels"):
        finetune_seeds(wrong, output, TASK, replacing, 1)
    assert (output / "model.safetensors").exists()
    assert (output / "seeds.json").exists()
    finetune_seeds(sources, output, TASK, replacing, 1)
    alone = finetune_seeds(sources, tmp_path / "alone", TASK, other, 1)
    assert (output / "seeds.json").read_bytes() == (tmp_path / "alone/seeds.json").read_bytes()
    assert sorted(path.name for path in (output / "seeds").iterdir()) == sorted(
        path.name for path in (alone.output / "seeds").iterdir()
    )


def test_a_wrong_call_leaves_nothing_behind(sources, tmp_path):
    output = tmp_path / "out"
    wrong = dataclasses.replace(sources, dev=str(tmp_path / "no.csv"))
    with pytest.raises(MissingFileError):
        finetune_seeds(wrong, output, TASK, SETTINGS, 2)
    largest = SETTINGS.model_copy(update={"seed": 2**31 - 1})
    with pytest.raises(SettingsError, match="seed 2147483648: seed"):
        finetune_seeds(sources, output, TASK, largest, 2)
    assert not output.exists()


def test_a_damaged_record_is_told(whole, sources, tmp_path):
    shutil.copytree(whole[0], tmp_path / "model")
    path = tmp_path / "model" / "seeds.json"
    path.write_bytes(path.read_bytes().replace(b"accuracy", b"accurasy"))
    with pytest.raises(DamagedFileError, match="was altered"):
        finetune_seeds(sources, path.parent, TASK, SETTINGS, 2)
    write_checksummed_json(path, {"format_version": 2})
    words = r"seeds\.json isn.t the result of several seeds: format_version"
    with pytest.raises(DamagedFileError, match=words):
        finetune_seeds(sources, path.parent, TASK, SETTINGS, 2)
