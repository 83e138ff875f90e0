"""A table → a fine-tuned model → its answers, through the command line."""

import importlib.util
import json
from pathlib import Path

import pytest
from tests.unit.recipes.finetune.small import make_rows, save_model, write_rows, write_tables

from bertkit.cli.main import main
from bertkit.tasks.metrics.calibration import CalibrationError


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finetune")
    save_model(folder / "model")
    write_tables(folder)
    return folder


def words(workshop: Path, output: Path, *more: str, train: str = "train.csv") -> list[str]:
    return (
        f"finetune classify --model {workshop}/model --train {workshop}/{train}"
        f" --dev {workshop}/dev.csv --output {output} --max-length 12 --epochs 4 --batch-size 8"
        " --learning-rate 1e-2 --dropout 0 --device cpu"
    ).split() + list(more)


@pytest.fixture(scope="module")
def trained(workshop, tmp_path_factory):
    """A model that nothing interrupted."""
    output = tmp_path_factory.mktemp("trained") / "model"
    assert main(words(workshop, output)) == 0
    return output


def test_a_classifier_learns_and_its_folder_is_whole(workshop, trained, capsys):
    capsys.readouterr()
    assert main(words(workshop, trained)) == 0  # which finds it finished
    captured = capsys.readouterr()
    assert "is already finished" in captured.err
    assert "accuracy 100.0 %" in captured.out
    found = json.loads((trained / "metrics.json").read_text())["calibration"]
    assert found["low"] <= found["value"] <= found["high"]
    error = CalibrationError(**found).describe()
    assert "15 bins; 95 % interval" in error
    for text in (
        captured.out,
        (trained / "README.md").read_text(),
        (trained / "report.html").read_text(),
    ):
        assert error in text.replace("\N{NO-BREAK SPACE}", " ")
    names = {path.name for path in trained.iterdir()}
    assert {"README.md", "metrics.json", "report.html", "task.json", "config.json"} <= names
    assert main(["classify", str(trained), "the cat", "a dog saw", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["label"] for each in found] == ["good", "bad"]
    assert main(words(workshop, trained, "--json")) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["accuracy"] == 1.0
    assert main(words(workshop, trained, "--seed", "1")) == 2
    assert "--seed 0 → 1" in capsys.readouterr().err


def test_broken_rows_are_counted_and_named(workshop, tmp_path, capsys):
    rows = [*make_rows(20, 1), "the cat", "a dog,", ",good"]
    write_rows(workshop / "broken.csv", rows)
    command = words(workshop, tmp_path / "out", "--json", train="broken.csv")
    assert main([*command, "--max-broken", "0.01"]) == 2
    assert "2 of 23 rows (8.7 %) are broken, and at most 0 (1.0 %) may" in capsys.readouterr().err
    assert main(command) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["output"] == str(tmp_path / "out")
    for shown in ("broken and left out", "line 22", "line 23", "1 of them without text"):
        assert shown in captured.err, shown
    saved = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert (saved["train"]["num_broken"], saved["train"]["num_empty"]) == (2, 1)


def test_the_example_of_the_papers_grid_tries_all_choices(workshop, monkeypatch):
    path = Path(__file__).parents[2] / "examples/grid_search.py"
    spec = importlib.util.spec_from_file_location("grid_search", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    assert len(example.LEARNING_RATES) * len(example.BATCH_SIZES) * len(example.EPOCHS) == 18
    monkeypatch.setattr(example, "LEARNING_RATES", (1e-9, 1e-2))
    monkeypatch.setattr(example, "BATCH_SIZES", (8,))
    monkeypatch.setattr(example, "EPOCHS", (4,))
    settings = {"model": f"{workshop}/model", "dev": f"{workshop}/dev.csv", "device": "cpu"}
    found = list(example.search(f"{workshop}/train.csv", max_length=12, dropout=0.0, **settings))
    assert [choice["learning_rate"] for choice, _ in found] == [1e-9, 1e-2]
    assert found[0][1] < found[1][1] == 1.0
