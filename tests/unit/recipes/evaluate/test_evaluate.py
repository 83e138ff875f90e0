"""An evaluation: what is found, told and written, and what is refused."""

import io
import json
import math
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tests.unit.inference.small_task import LABELS, save_answerer, save_classifier

from bertkit.base import storage
from bertkit.base.json_files import with_nulls
from bertkit.base.output import list_names
from bertkit.cli.main import main
from bertkit.inference.predictor import Answerer, Classifier
from bertkit.recipes.evaluate.result import describe_calibration, describe_confusion
from bertkit.recipes.evaluate.run import measure_chance
from bertkit.recipes.evaluate.text import align, render, render_mistakes
from bertkit.recipes.finetune.saved import SavedFineTuning
from bertkit.tasks.evaluation import Evaluation, Mistake

TEXTS = ("the cat", "a dog saw the hat", "", "the hat lost a cat", "hat dog")
CONTEXT = "the cat saw a dog . the dog lost the hat . a cat saw the hat ."


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def model(models):
    return save_classifier(models / "labels")


@pytest.fixture
def run(capsys):
    def call(*words, exit_code=0):
        assert main(list(map(str, words))) == exit_code
        return capsys.readouterr()

    return call


@pytest.fixture
def rows(tmp_path, model):
    """A file whose first label is wrong, and the others what the model says."""
    answers = [answer.label for answer in Classifier.load(model)(list(TEXTS))]
    wrong = next(label for label in LABELS if label != answers[0])
    path = tmp_path / "test.jsonl"
    lines = [
        json.dumps({"text": text, "label": label})
        for text, label in zip(TEXTS, [wrong, *answers[1:]], strict=True)
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_metrics_and_mistakes_are_told(run, model, rows):
    found = run("evaluate", model, rows)
    lines = found.out.splitlines()
    assert lines[0] == f"{model} on {rows}: 5 examples"
    (accuracy,) = [line for line in lines if line.split()[0] == "accuracy"]
    assert accuracy.split()[1] == "80.0"
    assert accuracy.endswith(")")
    assert any(line.startswith(f"  {rows}, line 1: expected ") for line in lines)
    assert "  the cat" in "\n".join(lines)
    assert "calibration error" in found.out
    assert "(15 bins; 95 % interval" in found.out
    assert "1 of them without text" in found.err


def test_json_is_all_of_it(run, model, rows):
    shown = json.loads(run("evaluate", model, rows, "--json").out)
    assert shown["task"] == "classify"
    assert shown["metrics"]["accuracy"] == 0.8
    low, high = shown["intervals"]["accuracy"]
    assert 0 <= low <= 0.8 <= high <= 1
    assert np.trace(shown["confusion"]["counts"]) == 4
    assert shown["confusion"]["labels"] == list(LABELS)
    assert shown["data"]["num_examples"] == 5
    assert shown["data"]["num_empty"] == 1
    assert [mistake["place"] for mistake in shown["mistakes"]] == [f"{rows}, line 1"]
    assert shown["calibration"]["accuracy"] == 0.8
    assert shown["calibration"]["num_bins"] == 15
    low, high = shown["calibration"]["interval"]
    assert low <= shown["calibration"]["expected_calibration_error"] <= high


def test_everything_is_written(run, model, rows, tmp_path):
    output = tmp_path / "found"
    run("evaluate", model, rows, "--output", output)
    assert list_names(output) == {"answers.jsonl", "metrics.json", "report.html"}
    metrics = json.loads((output / "metrics.json").read_text("utf-8"))
    assert metrics == json.loads(run("evaluate", model, rows, "--json").out)
    answers = [
        json.loads(line) for line in (output / "answers.jsonl").read_text("utf-8").splitlines()
    ]
    assert [one["label"] for one in answers] == [
        one.label for one in Classifier.load(model)(list(TEXTS))
    ]
    assert answers[1]["place"] == f"{rows}, line 2"
    assert "test.jsonl" in (output / "report.html").read_text("utf-8")
    assert "isn't empty" in run("evaluate", model, rows, "--output", output, exit_code=2).err
    (output / "notes.txt").write_text("mine")
    (output / "null_odds.json").write_text("{}")  # of a model that answers
    run("evaluate", model, rows, "--output", output, "--overwrite")
    assert (output / "notes.txt").read_text() == "mine"
    assert not (output / "null_odds.json").exists()


def test_a_disk_that_is_full_leaves_no_metrics(run, model, rows, tmp_path, monkeypatch):
    output = tmp_path / "found"
    run("evaluate", model, rows, "--output", output)

    def refuse(path):
        if path.name.startswith("report"):
            raise OSError(28, "No space left on device")
        return whole(path)

    whole = storage.open_new
    monkeypatch.setattr(storage, "open_new", refuse)
    found = run("evaluate", model, rows, "--output", output, "--overwrite", exit_code=2)
    assert "No space left" in found.err
    assert found.out == ""
    assert list_names(output) == {"answers.jsonl"}


def test_an_output_that_is_not_its_own_is_refused(run, model, rows, tmp_path):
    (tmp_path / "file").touch()
    for output, message in (
        (model, "is a model folder"),
        (tmp_path / "file", "is a file, and must be a folder"),
        (rows, "is the input"),
    ):
        words = ["--output", output, "--overwrite"]
        assert message in run("evaluate", model, rows, *words, exit_code=2).err
    assert (
        "--overwrite needs --output" in run("evaluate", model, rows, "--overwrite", exit_code=2).err
    )


def test_rows_that_can_not_be_used_are_left_out_and_told(run, model, rows, tmp_path):
    lines = rows.read_text().splitlines()
    rows.write_text("\n".join([*lines[:2], '{"text": "the cat"}', *lines[2:]]))
    refused = run("evaluate", model, rows, exit_code=2).err
    assert f"{rows}, line 3" in refused
    words = ["--max-broken", "0.5", "--output", tmp_path / "found"]
    found = run("evaluate", model, rows, *words)
    answers = (tmp_path / "found" / "answers.jsonl").read_text("utf-8").splitlines()
    lines = [1, 2, 4, 5, 6]
    assert [json.loads(line)["place"] for line in answers] == [f"{rows}, line {n}" for n in lines]
    assert f"{rows}, line 3" in found.err
    assert ": 5 examples" in found.out.splitlines()[0]


def test_labels_that_the_model_does_not_know_are_mistakes(run, model, rows):
    lines = rows.read_text().splitlines()
    lines[1] = json.dumps({"text": TEXTS[1], "label": "new"})
    rows.write_text("\n".join(lines))
    found = run("evaluate", model, rows)
    assert "accuracy" in found.out
    assert f"{rows}, line 2: 'new'" in found.err
    metrics = json.loads(run("evaluate", model, rows, "--json").out)["metrics"]
    assert metrics["accuracy"] == 0.6
    rows.write_text("".join(json.dumps({"text": t, "label": "new"}) + "\n" for t in TEXTS))
    assert "aren't among the training labels" in run("evaluate", model, rows, exit_code=2).err


def test_columns_are_named_and_foreign_ones_refused(run, model, rows, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text(rows.read_text().replace('"text"', '"body"').replace('"label"', '"stars"'))
    words = ["--text-column", "body", "--label-column", "stars", "--json"]
    assert json.loads(run("evaluate", model, other, *words).out)["metrics"]["accuracy"] == 0.8
    assert "no column" in run("evaluate", model, other, exit_code=2).err
    assert (
        "this task has no question_column"
        in run("evaluate", model, rows, "--question-column", "x", exit_code=2).err
    )


def test_data_that_is_not_there_is_refused(run, model, tmp_path, monkeypatch):
    assert "doesn't exist" in run("evaluate", model, tmp_path / "none.csv", exit_code=2).err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"the cat\n")))
    assert "write it to a file first" in run("evaluate", model, "-", exit_code=2).err


def test_answers_are_evaluated_and_written_for_official_scorers(run, models, tmp_path):
    model, path = save_answerer(models / "answers"), tmp_path / "test.json"
    answer = Answerer.load(model)(("a cat", CONTEXT))
    asked = {
        "id": "x7",
        "question": "a cat",
        "answers": [{"text": answer.text, "answer_start": answer.start}],
    }
    content = {"data": [{"title": "t", "paragraphs": [{"context": CONTEXT, "qas": [asked]}]}]}
    path.write_text(json.dumps({"version": "1.1", **content}))
    found = run("evaluate", model, path, "--output", tmp_path / "found", "--json")
    shown = json.loads(found.out)
    assert shown["metrics"]["exact_match"] == shown["metrics"]["f1"] == 1.0
    predictions = json.loads((tmp_path / "found" / "predictions.json").read_text("utf-8"))
    assert predictions == {"x7": answer.text}
    assert (tmp_path / "found" / "nbest_predictions.json").exists()


def test_of_very_many_labels_only_what_came_is_told():
    labels = tuple(map(str, range(50_000)))
    metrics = {f"f1 {label}": 0.5 for label in labels}
    evaluation = Evaluation(metrics, labels=labels, confusion={(7, 9): 3, (9, 9): 1})
    assert describe_confusion(evaluation) == {"labels": labels, "pairs": [[7, 9, 3], [9, 9, 1]]}
    counted = "4 examples"
    result = SimpleNamespace(model="m", name="t.csv", counted=counted, evaluation=evaluation)
    lines = list(render(result))
    assert len(lines) == 104
    assert "  … and 49,900 more; --json has all" in lines
    assert lines[-1] == "  3 of 7 for 9 (100.0 %)"


def test_a_mistake_without_a_text_is_one_line():
    mistakes = [Mistake("a.csv, line 2", text, "x", "y", 1.0) for text in ("", "the cat")]
    assert list(render_mistakes(Evaluation({}, mistakes=tuple(mistakes)))) == [
        "the worst mistakes",
        "  a.csv, line 2: expected x, predicted y",
        "  a.csv, line 2: expected x, predicted y",
        "    the cat",
    ]


def test_a_label_of_two_lines_is_one():
    counted = "1 example"
    evaluation = Evaluation({"f1 a\nb": 0.5, "accuracy": 1.0}, {"accuracy": (0.0, 1.0)})
    result = SimpleNamespace(model="m", name="t.csv", counted=counted, evaluation=evaluation)
    assert list(render(result)) == [
        "m on t.csv: 1 example",
        "  f1 a b    50.0 %",
        "  accuracy  100.0 % (0.0–100.0 %)",
    ]


def test_a_table_is_aligned():
    rows = [["", "good", "a very long name"], ["good", 12_345, 0]]
    assert list(align(rows)) == ["          good  a very long…", "  good  12,345             0"]


def test_what_is_not_defined_is_null():
    assert with_nulls({"a": [math.nan, 1.0, (math.inf,)], "b": "c"}) == {
        "a": [None, 1.0, [None]],
        "b": "c",
    }
    assert describe_calibration(Evaluation({})) is None
    none = np.empty(0)
    assert describe_calibration(Evaluation({}, confidences=none, is_right=none > 0)) is None


def test_chance_is_the_share_of_the_most_frequent_label_and_known_for_accuracy_alone():
    counts = SimpleNamespace(labels={"good": 3, "bad": 1})
    assert measure_chance(counts, "accuracy") == {"accuracy": 0.75}
    assert measure_chance(counts, "macro_f1") == {}
    assert measure_chance(SimpleNamespace(labels={}), "accuracy") == {}


@pytest.mark.parametrize(
    ("is_held_out", "advice"),
    [
        (False, "evaluate it on rows that it hasn't seen"),
        (
            True,
            "its report has those of the 5 rows held out; or evaluate it on rows that it hasn't",
        ),
    ],
)
def test_the_file_of_the_training_is_named(run, model, rows, tmp_path, is_held_out, advice):
    """A model that was trained on the file that it is evaluated on."""
    folder = shutil.copytree(model, tmp_path / "known")
    counts = json.loads(run("evaluate", folder, rows, "--json").out)["data"]
    other = counts | {"sha256": "0" * 64}
    record = {"warnings": [], "num_steps": 0, "best_step": 0, "has_ended_early": False}
    record |= {"task": "classify", "metric": "accuracy", "metrics": {}, "intervals": {}}
    record |= {"baseline": {}, "best_epoch": 0.0}
    trained = SavedFineTuning(**record, train=counts, dev=counts if is_held_out else other)
    trained.write(folder)
    (line,) = [line for line in run("evaluate", folder, rows).out.splitlines() if "SHA-256" in line]
    assert line.startswith(f"warning: the model was trained on {rows} (same SHA-256): metrics on")
    assert advice in line
    SavedFineTuning(**record, train=other, dev=counts).write(folder)
    assert "SHA-256" not in run("evaluate", folder, rows).out
