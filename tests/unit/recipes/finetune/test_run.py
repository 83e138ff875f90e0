import dataclasses
import json
import shutil
import signal

import pytest
from tests.unit.recipes.finetune.small import QUICK, TASK, make_rows, save_model, write_rows
from tests.unit.recipes.stopping import interrupt, read_files, read_rows, stop_at

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
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.inference.predictor import Classifier
from bertkit.recipes.finetune import result as result_module
from bertkit.recipes.finetune import run as recipe
from bertkit.recipes.finetune.run import finetune
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.regress import RegressSettings
from bertkit.training import lifecycle, loop


@pytest.fixture(scope="session")
def whole(made, tmp_path_factory):
    """A model that nothing interrupted."""
    output = tmp_path_factory.mktemp("whole") / "model"
    sources = recipe.Sources(
        "classify", str(made / "model"), str(made / "train.csv"), str(made / "dev.csv")
    )
    finetune(sources, output, TASK, QUICK)
    return output


def test_it_learns_and_keeps_the_best_epoch(whole):
    saved = json.loads((whole / "metrics.json").read_text())
    assert saved["metrics"]["accuracy"] == 1.0
    assert saved["baseline"]["accuracy"] == 0.5
    evaluations = [row for row in read_rows(whole) if row["event"] == "eval"]
    assert [row["step"] for row in evaluations] == [0, 5, 10, 15, 20]
    best = max(evaluations[1:], key=lambda row: (row["accuracy"], -row["step"]))
    assert saved["best_step"] == best["step"]
    assert saved["best_epoch"] == best["step"] / 5
    classify = Classifier.load(whole, engine="torch")
    assert [each.label for each in classify(["the cat", "a dog lost"])] == ["good", "bad"]


def test_where_the_metric_is_not_defined_the_loss_selects_the_step_and_a_line_says_so(
    made, tmp_path
):
    train = write_rows(tmp_path / "train.csv", ["the cat,2", "a dog,-2", "the hat,1"] * 6)
    dev = write_rows(tmp_path / "dev.csv", ["a cat saw,-9", "the dog,-9", "a hat,-9"])
    sources = recipe.Sources("regress", str(made / "model"), str(train), str(dev))
    found = finetune(sources, tmp_path / "model", RegressSettings(max_length=12), QUICK)
    evaluations = [row for row in read_rows(tmp_path / "model") if row["event"] == "eval"]
    assert {row["pearson"] for row in evaluations} == {None}
    best = min(evaluations[1:], key=lambda row: row["loss"])
    assert found.saved.best_step == best["step"] < evaluations[-1]["step"]
    assert (
        "pearson isn't defined on 3 held-out examples, so the held-out loss selected the best step;"
        " give more, and different ones, with --dev"
    ) in found.saved.warnings


def test_a_stopped_run_goes_on_in_the_precision_that_it_was_begun_in(
    sources, tmp_path, monkeypatch, capsys
):
    output, usual = tmp_path / "model", QUICK.model_copy(update={"epochs": 1.0})
    in_bf16 = usual.model_copy(update={"precision": "bf16"})
    finetune(sources, tmp_path / "whole", TASK, in_bf16)
    with monkeypatch.context() as patch:
        stop_at(2, patch)
        with pytest.raises(StoppedError):
            finetune(sources, output, TASK, in_bf16)
    in_fp32 = usual.model_copy(update={"precision": "fp32"})
    with pytest.raises(ResumeError, match="--precision bf16 → fp32"):
        finetune(sources, output, TASK, in_fp32)
    finetune(sources, output, TASK, usual)
    errors = capsys.readouterr().err
    assert f"resuming after step 3 of {output / 'run'}, in bf16 as before\n" in errors
    assert "bit for bit" not in errors
    name = "model.safetensors"
    assert (output / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert finetune(sources, output, TASK, usual).output == output
    with pytest.raises(ResumeError, match="--precision bf16 → fp32"):
        finetune(sources, output, TASK, in_fp32)


def test_what_is_killed_before_its_folder_is_whole_is_finished_by_the_same_call(
    whole, sources, tmp_path, monkeypatch
):
    output = tmp_path / "model"
    steps = [
        (recipe, "evaluate_model"),
        (result_module, "write_descriptions"),
        (recipe.SavedFineTuning, "write"),
    ]
    for place, name in steps:
        with monkeypatch.context() as patch:
            patch.setattr(place, name, interrupt)
            with pytest.raises(StoppedError, match="resumes from"):
                finetune(sources, output, TASK, QUICK)
    assert list_checkpoints(output / "run")
    monkeypatch.setattr(loop, "take_step", None)  # no step is left to be done
    finetune(sources, output, TASK, QUICK)
    assert read_files(output) == read_files(whole)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "vocab.txt", "task.json"])
def test_a_finished_model_whose_files_are_cut_is_not_reported(whole, sources, name, tmp_path):
    output = tmp_path / "model"
    shutil.copytree(whole, output)
    path = output / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedFileError, match=f"{name} isn't what was written; restore it, or"):
        finetune(sources, output, TASK, QUICK)


def test_a_card_may_be_written_on(whole, sources, tmp_path):
    output = tmp_path / "model"
    shutil.copytree(whole, output)
    (output / "README.md").write_text("# Mine\n")
    assert finetune(sources, output, TASK, QUICK).saved.num_steps == 20


def test_checkpoints_that_a_killed_end_left_are_removed_later(sources, tmp_path, monkeypatch):
    output = tmp_path / "model"
    short = QUICK.model_copy(update={"epochs": 1.0})
    with monkeypatch.context() as patch:
        patch.setattr(lifecycle, "drop_checkpoints", interrupt)
        with pytest.raises(StoppedError):
            finetune(sources, output, TASK, short)
    finetune(sources, output, TASK, short.model_copy(update={"keep": 1}))
    assert list_checkpoints(output / "run")
    finetune(sources, output, TASK, short)
    assert not list_checkpoints(output / "run")


def test_checkpoints_that_are_kept_stay_whatever_comes_later(sources, tmp_path):
    output = tmp_path / "model"
    keeping = QUICK.model_copy(update={"keep": 1, "epochs": 1.0})
    finetune(sources, output, TASK, keeping)
    kept = list_checkpoints(output / "run")
    finetune(sources, output, TASK, keeping.model_copy(update={"keep": None}))
    assert kept
    assert list_checkpoints(output / "run") == kept


def test_other_settings_model_or_data_are_refused(whole, sources, made, tmp_path):
    other = QUICK.model_copy(update={"learning_rate": 1e-3})
    with pytest.raises(ResumeError, match=r"--learning-rate 0\.01 → 0\.001"):
        finetune(sources, whole, TASK, other)
    with pytest.raises(ResumeError, match="--max-length 12 → 11"):
        finetune(sources, whole, TASK.model_copy(update={"max_length": 11}), QUICK)
    path = write_rows(tmp_path / "train.csv", make_rows(40, 3))
    with pytest.raises(ResumeError, match="data: different data"):
        finetune(dataclasses.replace(sources, train=str(path)), whole, TASK, QUICK)
    save_model(tmp_path / "other", initializer_range=0.2)
    for name in ("other", "nothing"):
        with pytest.raises(ResumeError, match=f"--model .* → .*{name}"):
            finetune(dataclasses.replace(sources, model=str(tmp_path / name)), whole, TASK, QUICK)


def test_a_stopped_run_goes_on_to_the_same_bits_wherever_its_parent_was_moved(
    whole, sources, made, tmp_path, monkeypatch, capsys
):
    shutil.copytree(made / "model", tmp_path / "copy")
    moved = dataclasses.replace(sources, model=str(tmp_path / "copy"))
    assert finetune(moved, whole, TASK, QUICK).saved.num_steps == 20
    for step, number in ((1, signal.SIGINT), (7, signal.SIGTERM)):
        with monkeypatch.context() as patch:
            stop_at(step, patch, number)
            with pytest.raises(StoppedError, match="the same command resumes from there"):
                finetune(sources, tmp_path / "model", TASK, QUICK)
        assert not (tmp_path / "model" / "metrics.json").exists()
    finetune(moved, tmp_path / "model", TASK, QUICK)
    assert "resuming after step 8" in capsys.readouterr().err
    assert read_files(tmp_path / "model") == read_files(whole)
    assert read_rows(tmp_path / "model") == read_rows(whole)


def test_a_parent_that_changed_is_refused_before_the_first_checkpoint(
    sources, made, tmp_path, monkeypatch
):
    shutil.copytree(made / "model", tmp_path / "model")
    moved = dataclasses.replace(sources, model=str(tmp_path / "model"))
    output = tmp_path / "out"
    monkeypatch.setattr(lifecycle, "train_to_end", interrupt)
    with pytest.raises(StoppedError, match="starts again"):
        finetune(moved, output, TASK, QUICK)
    save_model(tmp_path / "model", initializer_range=0.2)
    with pytest.raises(ResumeError, match="source: different files"):
        finetune(moved, output, TASK, QUICK)


def test_another_run_is_replaced_only_with_overwrite(whole, sources, tmp_path, capsys):
    output, other = tmp_path / "model", QUICK.model_copy(update={"seed": 9, "epochs": 1.0})
    shutil.copytree(whole, output)
    (output / "notes.txt").write_text("mine")
    with pytest.raises(ResumeError, match="another --output, or replace it with --overwrite"):
        finetune(sources, output, TASK, other)
    assert read_files(output) == read_files(whole) | {"notes.txt": b"mine"}
    replacing = other.model_copy(update={"overwrite": True})
    finetune(sources, output, TASK, replacing)
    assert f"{output}: replacing the previous run" in capsys.readouterr().err
    finetune(sources, tmp_path / "alone", TASK, other)
    made = read_files(output)
    assert made.pop("notes.txt") == b"mine"
    assert made["model.safetensors"] == read_files(tmp_path / "alone")["model.safetensors"]
    assert read_rows(output) == read_rows(tmp_path / "alone")
    finetune(sources, output, TASK, replacing)  # the same run stays
    assert "is already finished" in capsys.readouterr().err
    finetune(sources, output, TASK, other)
    assert (output / "model.safetensors").read_bytes() == made["model.safetensors"]


def test_replacing_that_was_interrupted_is_begun_again(
    whole, sources, tmp_path, monkeypatch, capsys
):
    changes = {"seed": 9, "overwrite": True, "epochs": 1.0}
    output, other = tmp_path / "model", QUICK.model_copy(update=changes)
    shutil.copytree(whole, output)
    with monkeypatch.context() as patch:
        patch.setattr(lifecycle, "train_to_end", interrupt)  # what there was is removed by then
        with pytest.raises(StoppedError):
            finetune(sources, output, TASK, other)
    assert not (output / "model.safetensors").exists()
    assert not (output / "report.html").exists()
    finetune(sources, output, TASK, other)
    assert (output / "metrics.json").exists()


def test_a_model_stays_if_what_replaces_it_cannot_be_trained(whole, sources, tmp_path):
    output, rows = tmp_path / "model", tmp_path / "one_label.csv"
    shutil.copytree(whole, output)
    rows.write_text("text,label\n" + "a b,x\n" * 20)
    wrong = dataclasses.replace(sources, train=str(rows), dev=None)
    with pytest.raises(InputError, match="at least two labels"):
        finetune(wrong, output, TASK, QUICK.model_copy(update={"overwrite": True}))
    assert read_files(output) == read_files(whole)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["notes.txt", "run/notes.txt", "config.json"])
def test_a_folder_of_something_else_is_left_alone(sources, tmp_path, name, overwrite):
    settings = QUICK.model_copy(update={"overwrite": overwrite})
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(ResumeError, match="choose another --output"):
        finetune(sources, tmp_path / "out", TASK, settings)
    assert path.read_text() == "mine"
    with pytest.raises(ResumeError, match="choose another --output"):
        finetune(sources, path, TASK, settings)


def test_a_finished_folder_that_lost_or_got_something_says_so(whole, sources, tmp_path):
    output = tmp_path / "model"
    shutil.copytree(whole, output)
    (output / "model.safetensors").unlink()
    with pytest.raises(MissingFileError, match=r"remove .*metrics\.json to train again"):
        finetune(sources, output, TASK, QUICK)
    saved = output / "metrics.json"
    saved.write_text(saved.read_text().replace("classify", "classifz"))
    with pytest.raises(DamagedFileError, match="was altered"):
        finetune(sources, output, TASK, QUICK)
    write_checksummed_json(saved, {"format_version": 9})
    with pytest.raises(DamagedFileError, match=r"metrics\.json isn't .*: format_version"):
        finetune(sources, output, TASK, QUICK)


def test_what_official_scorers_read_is_written_too(sources, tmp_path, monkeypatch):
    monkeypatch.setattr(Classify, "scorer_files", {"labels.json": "label"})
    settings = QUICK.model_copy(update={"epochs": 1.0})
    finetune(sources, tmp_path / "out", TASK, settings)
    assert len(json.loads((tmp_path / "out" / "labels.json").read_text())) == 16


def test_a_wrong_call_leaves_nothing_behind(sources, tmp_path):
    output = tmp_path / "out"
    other = str(write_rows(tmp_path / "other.csv", ["the cat,1", "a dog,2", "the hat,good"]))
    cases = [
        (dataclasses.replace(sources, dev=other), TASK, QUICK, InputError),
        (dataclasses.replace(sources, dev=str(tmp_path / "no.csv")), TASK, QUICK, MissingFileError),
        (sources, TASK.model_copy(update={"label_column": "x"}), QUICK, InputError),
        (sources, TASK.model_copy(update={"max_length": 99}), QUICK, InputError),
        (sources, TASK, QUICK.model_copy(update={"freeze": "9"}), SettingsError),
        (dataclasses.replace(sources, train="-"), TASK, QUICK, InputError),
        (dataclasses.replace(sources, model=str(tmp_path / "no/model/x")), TASK, QUICK, None),
        (dataclasses.replace(sources, model="m" * 5000), TASK, QUICK, None),
    ]
    for odd, task, settings, kind in cases:
        with pytest.raises(kind or MissingFileError):
            finetune(odd, output, task, settings)
        assert not output.exists()


def test_patience_ends_a_run_early(sources, tmp_path):
    patient = QUICK.model_copy(update={"patience": 1, "epochs": 30.0, "keep": 1})
    found = finetune(sources, tmp_path / "out", TASK, patient)
    saved = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert saved["has_ended_early"]
    assert found.saved.num_steps == found.saved.best_step + 5 < 150
    assert "ended early" in (tmp_path / "out" / "README.md").read_text()
    best, last = list_checkpoints(tmp_path / "out" / "run")
    weights = (tmp_path / "out" / "model.safetensors").read_bytes()
    assert weights == (best / "model.safetensors").read_bytes()
    assert weights != (last / "model.safetensors").read_bytes()


def test_the_lowest_loss_can_tell_the_best(sources, tmp_path):
    task = TASK.model_copy(update={"metric": "loss"})
    found = finetune(sources, tmp_path / "out", task, QUICK)
    losses = {
        row["step"]: row["loss"] for row in read_rows(tmp_path / "out") if row["event"] == "eval"
    }
    assert found.saved.best_step == min(list(losses)[1:], key=losses.__getitem__)


def test_without_dev_a_share_is_held_out(sources, tmp_path, capsys):
    settings = QUICK.model_copy(update={"held_out": 0.25, "epochs": 1.0})
    finetune(dataclasses.replace(sources, dev=None), tmp_path / "out", TASK, settings)
    saved = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert (saved["train"]["num_examples"], saved["dev"]["num_examples"]) == (30, 10)
    assert saved["dev"]["name"] == "train.csv, held out"
    assert "held out: 10 examples" in capsys.readouterr().err


def test_held_out_examples_of_one_label_are_told(sources, tmp_path):
    dev = write_rows(tmp_path / "dev.csv", ["the cat,good", "a cat,good"])
    found = finetune(dataclasses.replace(sources, dev=str(dev)), tmp_path / "out", TASK, QUICK)
    assert found.saved.metrics["accuracy"] == 1.0
    (warning,) = [each for each in found.saved.warnings if "all held-out" in each]
    assert "all held-out examples have the label 'good': " in warning


def test_a_model_that_learns_nothing_is_told(sources, tmp_path):
    settings = QUICK.model_copy(update={"learning_rate": 1e-9, "epochs": 0.2})
    found = finetune(sources, tmp_path / "out", TASK, settings)
    (warning,) = found.saved.warnings  # one for one fact
    assert "the model tells nothing apart" in warning
    assert "tells nothing apart" in (tmp_path / "out" / "README.md").read_text()


def test_a_regression_that_diverges_ends_as_such(made, tmp_path):
    rows = [row.replace(",good", ",1").replace(",bad", ",-1") for row in make_rows(40, 1)]
    train = write_rows(tmp_path / "train.csv", rows)
    sources = recipe.Sources("regress", str(made / "model"), str(train))
    settings = QUICK.model_copy(update={"learning_rate": 1e18, "eval_every": 1, "warmup": 0.0})
    with pytest.raises(NonFiniteError):
        finetune(sources, tmp_path / "out", RegressSettings(max_length=12), settings)
