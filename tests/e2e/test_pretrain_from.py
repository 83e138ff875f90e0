"""Going on with pre-training from somebody's checkpoint, through the command line."""

import shutil
from pathlib import Path

import pytest
import torch
from tests.closeness import assert_close, close
from tests.e2e.small import pretrain_words

from bertkit import BertForMaskedLM, BertModel, Tokenizer
from bertkit.base.checksummed_json import read_checksummed_json
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.cli.main import main
from bertkit.recipes.pretrain.job import load_source
from bertkit.recipes.pretrain.run import Pretraining
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.training.log import read_log
from bertkit.training.run import Run


def from_words(workshop: Path, source: Path | str, output: Path, *more: str) -> list[str]:
    """The command line of a small run that goes on from a checkpoint."""
    words = pretrain_words(workshop, output, *more, steps=4)
    place = words.index("--size")
    return [*words[:place], "--model", str(source), *words[place + 2 :]]


def read_errors(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


@pytest.fixture(scope="module")
def begun(workshop, tmp_path_factory):
    """A run that has hardly begun."""
    folder = tmp_path_factory.mktemp("begun")
    assert main(pretrain_words(workshop, folder, steps=2)) == 0
    return folder


@pytest.fixture(scope="module")
def model(begun, tmp_path_factory):
    """Its model as a folder of its own."""
    folder = tmp_path_factory.mktemp("model")
    assert main(["convert", str(begun), str(folder)]) == 0
    return folder


@pytest.fixture
def words_only(model, tmp_path):
    """The same with the head for masked words alone."""
    folder = tmp_path / "words-only"
    BertForMaskedLM.from_pretrained(model).save_pretrained(folder)
    Tokenizer.load(model).save(folder)
    return folder


def test_it_begins_where_the_checkpoint_ended(workshop, begun, model, tmp_path):
    run = tmp_path / "run"
    assert main(from_words(workshop, model, run)) == 0
    *_, ended = (row for row in read_log(begun / "log.jsonl") if row["event"] == "eval")
    first, *_, last = (row for row in read_log(run / "log.jsonl") if row["event"] == "eval")
    assert first["step"] == 0
    assert first["loss"] == close(ended["loss"], "float32")
    assert last["loss"] != first["loss"]
    record = read_checksummed_json(run / "settings.json")
    assert record["settings"]["model"] == str(model)
    assert record["settings"]["size"] is None
    assert len(record["source"]["sha256"]["model.safetensors"]) == 64


def test_resuming_needs_no_source_and_grows(workshop, model, words_only, tmp_path, capsys):
    copy, run = tmp_path / "copy", tmp_path / "run"
    shutil.copytree(model, copy)
    assert main(from_words(workshop, copy, run)) == 0
    shutil.rmtree(copy)
    words = from_words(workshop, f"{copy}/", run)  # as a shell completes it
    words[words.index("--steps") + 1] = "6"
    assert main(words) == 0
    assert list_checkpoints(run)[-1].name.endswith("06")
    assert read_checksummed_json(run / "settings.json")["source"]["sha256"]
    moved = from_words(workshop, model, run)  # the same files elsewhere
    moved[moved.index("--steps") + 1] = "7"
    assert main(moved) == 0
    error = read_errors(from_words(workshop, words_only, run), capsys)
    assert f"--model {copy} → {words_only}" in error
    error = read_errors(pretrain_words(workshop, run, steps=4), capsys)
    assert f"--model {copy} → not given" in error


def test_a_missing_head_is_drawn_and_named(workshop, words_only, tmp_path, capsys):
    assert main(from_words(workshop, words_only, tmp_path / "run")) == 0
    assert "new weights for pooler, next_sentence, which" in capsys.readouterr().err


def test_a_new_head_for_words_begins_at_their_frequencies(workshop, model, tmp_path):
    headless = tmp_path / "headless"
    BertModel.from_pretrained(model).save_pretrained(headless)
    Tokenizer.load(model).save(headless)
    settings = PretrainSettings(model=str(headless), max_length=32, steps=4)
    recipe = Pretraining(workshop / "shards", settings)
    recipe.open_data()
    occurrences = torch.from_numpy(recipe.shards.token_counts.astype("float32")) + 1
    model = load_source(recipe.source, recipe.settings, recipe.shards.token_counts)
    bias = model.masked_lm.bias
    assert_close(bias, (occurrences / occurrences.sum()).log())


def test_the_tokenizer_must_be_that_of_the_source(workshop, model, tmp_path, capsys):
    other = tmp_path / "other"
    shutil.copytree(model, other)
    for name in ("tokenizer_manifest.json", "tokenizer.json"):
        (other / name).unlink()
    (other / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    error = read_errors(from_words(workshop, other, tmp_path / "run"), capsys)
    assert f"bertkit prepare … --tokenizer {other}" in error
    assert not (tmp_path / "run").exists()


def test_a_dry_run_names_the_source(workshop, model, tmp_path, capsys):
    assert main(from_words(workshop, model, tmp_path / "run", "--dry-run")) == 0
    assert capsys.readouterr().out.startswith(f"{model}: ")
    assert not (tmp_path / "run").exists()


def test_a_run_of_every_objective_goes_on_by_default(workshop, tmp_path, capsys):
    for objective, metric in (("mlm", "mlm_loss"), ("causal", "clm_loss"), ("bert", "nsp_loss")):
        run, more = tmp_path / objective, tmp_path / f"more-{objective}"
        assert main(pretrain_words(workshop, run, "--objective", objective, steps=2)) == 0
        words = from_words(workshop, run, more)
        place = words.index("--objective")
        del words[place : place + 2]
        assert main(words) == 0
        *_, last = (row for row in read_log(more / "log.jsonl") if row["event"] == "eval")
        assert metric in last
        assert Run(more).read_record().settings["objective"] == objective
        capsys.readouterr()
        words[words.index("--steps") + 1] = "6"
        assert main(words) == 0
        assert "resuming after step 4" in capsys.readouterr().err
