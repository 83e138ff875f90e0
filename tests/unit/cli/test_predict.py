"""`bertkit <task>` and its words, files, standard input and outputs."""

import csv
import io
import json
import math
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.closeness import close
from tests.unit.inference.small_task import LABELS, save_classifier

from bertkit.base.errors import InputError, SettingsError
from bertkit.cli.main import main
from bertkit.cli.output import format_json
from bertkit.cli.predict import describe, list_facts
from bertkit.cli.texts import find_source
from bertkit.inference import stream
from bertkit.inference.predictor import Classifier
from bertkit.recipes.finetune.saved import CrossValidated
from bertkit.recipes.finetune.verdict import Verdict
from bertkit.reports.text import format_percent

SAVED = SimpleNamespace(
    best_step=1200,
    num_steps=3000,
    metrics={"pearson": math.nan, "mse": 0.25},
    intervals={"mse": (0.2, 0.3)},
    dev=SimpleNamespace(num_examples=40),
    calibration=None,
    cross_validated=None,
    verdict_lines=[],
    warnings=("every prediction is 'x'",),
)
RESULT = SimpleNamespace(output=Path("out"), comparison=None, saved=SAVED)


def with_metrics(**metrics):
    """The result with other metrics, and without warnings."""
    saved = SimpleNamespace(**{**vars(SAVED), "metrics": metrics, "warnings": ()})
    return SimpleNamespace(**{**vars(RESULT), "saved": saved})


def test_a_result_is_told_in_a_line_and_what_is_odd_behind_it():
    first, warning = describe(RESULT).splitlines()
    step = "out: best after step 1,200 of 3,000; 40 held-out examples"
    assert first == f"{step}: pearson not defined, mse 0.250 (0.200–0.300)"
    assert warning == "WARNING: every prediction is 'x'"
    found = CrossValidated(num_examples=305, metrics={"mse": 0.5}, intervals={"mse": (0.4, 0.6)})
    saved = SimpleNamespace(**{**vars(SAVED), "cross_validated": found})
    _, line, _ = describe(SimpleNamespace(**{**vars(RESULT), "saved": saved})).splitlines()
    head = "By cross-validation on all 305 rows, of a head solved on the frozen encoder"
    assert line == f"{head}: mse 0.500 (0.400–0.600)"


def test_the_last_line_is_the_verdict():
    numbers = {"before": 0.4, "after": 0.5, "difference": 0.1, "low": -0.1, "high": 0.3}
    counts = {"num_rows": 45, "num_groups": 45, "num_changed": 20, "chosen": (0, 20)}
    word = "NO CLEAR DIFFERENCE"
    verdict = Verdict(word=word, metric="ndcg@10", unit="query", **numbers, **counts)
    changed = {**vars(SAVED), "verdict_lines": ["What usually helps: …", verdict.describe()]}
    found = SimpleNamespace(**{**vars(RESULT), "saved": SimpleNamespace(**changed)})
    *_, advice, last = describe(found).splitlines()
    assert advice == "What usually helps: …"
    assert last.endswith("+10.0 (-10.0 to 30.0) on 45 held-out queries: NO CLEAR DIFFERENCE")
    assert json.loads(format_json({"verdict": verdict}))["verdict"]["word"] == word


def test_a_label_steers_no_terminal():
    (line,) = describe(with_metrics(**{"f1 a\nb\x1b[31m": 1.0})).splitlines()
    assert line.endswith("f1 a b␛[31m 100.0 %")


def test_metrics_of_many_labels_stay_a_line():
    metrics = {"accuracy": 0.5, **{f"f1 {number} {'x' * 99}": 0.25 for number in range(100)}}
    (line,) = describe(with_metrics(**metrics)).splitlines()
    assert line.endswith(f"f1 10 {'x' * 33}… 25.0 % and 89 more in metrics.json")


def test_what_is_not_defined_is_null_in_json():
    assert json.loads(format_json(list_facts(RESULT, "calibration"))) == {
        "output": "out",
        "metrics": {"pearson": None, "mse": 0.25},
        "calibration": None,
        "warnings": ["every prediction is 'x'"],
    }


ROWS = [("the cat", "a hat"), ("a dog saw", "the dog"), ("", ""), ("the hat, lost", "a - cat")]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_classifier(tmp_path_factory.mktemp("models") / "labels")


@pytest.fixture(scope="module")
def classify(model):
    return Classifier.load(model)


@pytest.fixture
def run(capsys):
    def call(*words, exit_code=0):
        assert main(list(map(str, words))) == exit_code
        return capsys.readouterr()

    return call


@pytest.fixture
def write_csv(tmp_path):
    def write(name, columns, rows):
        path = tmp_path / name
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([columns, *rows])
        return path

    return write


def read_json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def matches(shown, answers):
    assert [each["label"] for each in shown] == [each.label for each in answers]
    assert [each["probability"] for each in shown] == close(
        [each.probability for each in answers], "float32"
    )
    return True


def test_texts_are_answered_a_line_each(run, model, classify):
    found = run("classify", model, "the cat", "a\ndog")
    answers = classify(["the cat", "a\ndog"])
    assert found.out.splitlines() == [
        f"{answer.label}\t{format_percent(answer.probability)}\t{text}"
        for answer, text in zip(answers, ["the cat", "a dog"], strict=True)
    ]
    engine = classify.engine
    said = f"computing on cpu in {engine.precision}, engine {engine.name}"
    assert found.err.splitlines() == [said]


def test_a_second_text_makes_a_pair(run, model, classify):
    shown = read_json_lines(
        run("classify", model, "a cat", "dog", "--pair", "the hat", "--json").out
    )
    assert matches(shown, classify([("a cat", "the hat"), ("dog", "the hat")]))
    assert "a cat ||| the hat" in run("classify", model, "a cat", "--pair", "the hat").out


@pytest.mark.parametrize("name", ["texts.csv", "texts.jsonl", "texts.txt"])
def test_each_row_of_a_file_has_its_answer(run, model, classify, tmp_path, write_csv, name):
    path = write_csv("texts.csv", ["text", "note"], ROWS)
    if name.endswith("jsonl"):
        path = tmp_path / name
        path.write_text("".join(f'{{"text": {json.dumps(text)}}}\n' for text, _ in ROWS))
    if name.endswith("txt"):
        path = tmp_path / name
        path.write_text("".join(f"{text}\n" for text, _ in ROWS))
    found = run("classify", model, "--file", path, "--json")
    assert matches(read_json_lines(found.out), classify([text for text, _ in ROWS]))
    assert "4 answered, " in found.err
    assert "; 1 empty\nWARNING: 1 of 9 tokens (11.1 %) is not in the vocabulary" in found.err


def test_columns_are_named_for_a_file(run, model, classify, write_csv):
    path = write_csv("rows.csv", ["one", "other"], ROWS)
    words = ["--text-column", "one", "--pair-column", "other", "--json"]
    found = run("classify", model, "--file", path, *words)
    assert matches(read_json_lines(found.out), classify(ROWS))
    message = run("classify", model, "--file", path, exit_code=2).err
    assert "the text could be one or other; choose with --text-column" in message


@pytest.mark.parametrize("words", [[], ["-"]])
def test_standard_input_is_a_text_a_line(run, model, classify, monkeypatch, words):
    data = io.TextIOWrapper(io.BytesIO(b"the cat\n\na \xff dog\n"))
    monkeypatch.setattr(sys, "stdin", data)
    found = run("classify", model, *words, "--json")
    assert matches(read_json_lines(found.out), classify(["the cat", "", "a \ufffd dog"]))
    assert "1 empty, 1 with bytes that aren't UTF-8" in found.err.replace("; ", ", ")


def test_what_can_not_be_meant_is_refused(run, model, monkeypatch, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("the cat\n")
    assert (
        "give texts or --file, not both"
        in run("classify", model, "a", "--file", path, exit_code=2).err
    )
    assert "not both" in run("classify", model, "--pair", "a", "--file", path, exit_code=2).err
    assert (
        "--overwrite needs --output" in run("classify", model, "a", "--overwrite", exit_code=2).err
    )
    assert "there is no option --jsn" in run("classify", model, "a", "--jsn", exit_code=2).err
    assert "doesn't exist" in run("classify", model, "--file", tmp_path / "b.txt", exit_code=2).err
    assert (
        "for the task classify; use `bertkit classify`" in run("tag", model, "a", exit_code=2).err
    )
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert "there is no text: give one" in run("classify", model, exit_code=2).err


def test_which_input_is_meant(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert find_source((), None) == find_source(("-",), None) == "-"
    assert find_source((), "a.csv") == "a.csv"
    assert find_source(("a",), None, has_other_inputs=True) is None
    assert find_source((), None, has_other_inputs=True) is None
    for words, file in (((), "a.csv"), (("-",), None), (("a",), "a.csv"), (("a", "-"), None)):
        with pytest.raises(SettingsError, match="not both"):
            find_source(words, file, has_other_inputs=True)
    monkeypatch.setattr(sys, "stdin", None)  # as `<&-` leaves it
    with pytest.raises(InputError, match="there is no text"):
        find_source((), None)


def test_a_broken_row_ends_what_was_answered_before_it(run, model, monkeypatch, tmp_path):
    monkeypatch.setattr(stream, "WINDOW_TEXTS", 2)
    path = tmp_path / "texts.jsonl"
    lines = ['{"text": "a cat"}', '{"text": "a"}', '{"text": "dog"}', '{"text": 3}']
    path.write_text("".join(f"{line}\n" for line in lines))
    found = run("classify", model, "--file", path, exit_code=2)
    assert len(found.out.splitlines()) == 3  # a whole window, and what the next one had by then
    assert f"{path}, line 4 has " in found.err
    path.write_text("".join(f"{line}\n" for line in [*lines[:2], "{", lines[2]]))
    found = run("classify", model, "--file", path, exit_code=2)
    assert f"{path}, line 3 isn't JSON" in found.err
    assert found.err.rstrip().endswith("correct or remove it")
    output = tmp_path / "answers.jsonl"
    run("classify", model, "--file", path, "--output", output, exit_code=2)
    assert list(tmp_path.iterdir()) == [path]


def test_answers_are_written_whole(run, model, classify, tmp_path, write_csv):
    path = write_csv("texts.csv", ["text", "pair"], ROWS)
    answers = classify(ROWS)
    output = tmp_path / "answers.jsonl"
    found = run("classify", model, "--file", path, "--output", output)
    assert found.out == ""
    assert found.err.splitlines()[-1].startswith(f"{output}: 4 answered")
    assert matches(read_json_lines(output.read_text("utf-8")), answers)
    assert (
        "exists; name another"
        in run("classify", model, "--file", path, "--output", output, exit_code=2).err
    )
    run("classify", model, "the cat", "--output", output, "--overwrite")
    assert len(output.read_text("utf-8").splitlines()) == 1


def test_a_table_comes_back_with_its_predictions(run, model, tmp_path):
    (tmp_path / "in.csv").write_text("nr;text;label\n17;the cat saw;x\n18;a dog;x\n")
    words, out = ("classify", model, "--file", tmp_path / "in.csv"), tmp_path / "out.csv"
    run(*words, "--output", out)
    header, first, _ = out.read_text().splitlines()
    assert header.startswith("nr;text;label;predicted_label;predicted_probability;predicted_prob")
    assert first.startswith("17;the cat saw;x;")
    run(*words, "--keep-columns", "nr", "--output", out, "--overwrite")
    assert out.read_text().startswith("nr;label;probability;probability_")
    found = run(*words, "--json", "--id-column", "nr")
    assert [row["id"] for row in read_json_lines(found.out)] == ["17", "18"]
    message = "has no column no; it has nr, text, label"
    assert message in run(*words, "--id-column", "no", exit_code=2).err


def test_a_settings_file_has_tables_of_tasks(run, model, tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text("[classify]\njson = true\n[finetune.classify]\nepochs = 2\n")
    found = run("classify", model, "the cat", "--config", path)
    assert read_json_lines(found.out)[0]["label"] in LABELS
    for text, message in (
        ("[finetune]\nepochs = 2", "unknown tables or keys: finetune.epochs; tables"),
        (
            "[finetune.sort]\nx = 1",
            "unknown tables or keys: finetune.sort; tables are finetune.classify",
        ),
        (
            "[finetune.classify]\nepoch = 2",
            "table finetune.classify has keys that aren't flags of `bertkit finetune",
        ),
        ("[finetune]\nclassify = 2", "finetune.classify must be a table, got 2"),
        ("[classify]\nlearning-rate = 2", "aren't flags of `bertkit classify`: learning-rate"),
    ):
        path.write_text(text)
        assert message in run("classify", model, "a", "--config", path, exit_code=2).err


def test_the_likeliest_labels_are_given(run, model, classify, write_csv, tmp_path):
    full = classify("a dog saw").probabilities
    best = dict(sorted(full.items(), key=lambda pair: -pair[1])[:2])
    assert len(best) < len(full)
    top = classify("a dog saw", top_k=2)
    assert list(top.probabilities.items()) == list(best.items())
    assert classify(["a dog saw"], top_k=99)[0].probabilities == full
    with pytest.raises(SettingsError, match="top_k"):
        classify("a dog saw", top_k=0)

    words = ["classify", model, "a dog saw", "--top-k", "2", "--engine", "torch"]
    first, text = run(*words).out.rstrip("\n").split("\t")
    assert [part.split()[0] for part in first.split(", ")] == list(best)
    assert text == "a dog saw"
    (found,) = read_json_lines(run(*words, "--json").out)
    assert list(found["probabilities"]) == list(best)
    assert found["label"] == top.label

    table = write_csv("in.csv", ["text"], [[text]])
    output = tmp_path / "out.csv"
    run("classify", model, "--file", table, "--top-k", "2", "--output", output)
    (row,) = csv.DictReader(io.StringIO(output.read_text()))
    assert list(json.loads(row["probabilities"])) == list(best)
    assert "--top-k must be at least 1" in run(*words[:3], "--top-k", "0", exit_code=2).err


def test_the_words_that_decided_are_shown_below_in_files_and_in_color_on_a_terminal(
    run, model, write_csv, tmp_path, monkeypatch
):
    words = ["classify", model, "a dog saw the cats, a hat.", "--explain", "--engine", "torch"]
    first, weights, check = run(*words).out.rstrip("\n").split("\n")
    assert first.endswith("\ta dog saw the cats, a hat.")
    label = first.split("\t")[0]
    assert re.fullmatch(rf"  (\w+ [+-]\d+\.\d,? ){{6}} \(percentage points for {label}\)", weights)
    assert re.fullmatch(
        rf"  with .+ left out, {label} has .+ %; with .+ random .+ left out, .+ %", check
    )
    (found,) = read_json_lines(run(*words, "--json").out)
    (explained,) = found["explanations"]
    assert [word["text"] for word in explained["words"]] == [
        "a",
        "dog",
        "saw",
        "the",
        "cats",
        "a",
        "hat",
    ]
    assert explained["target"] == label

    table = write_csv("in.csv", ["text"], [["a dog saw the cats, a hat."]])
    output = tmp_path / "out.csv"
    run("classify", model, "--file", table, "--explain", "--output", output, "--engine", "torch")
    (row,) = csv.DictReader(io.StringIO(output.read_text()))
    assert row["explanation"] == weights.partition("  (")[0].strip()

    monkeypatch.setattr("bertkit.cli.streams.StandardOutput.isatty", lambda _: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[3" in run(*words).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run(*words).out


def test_many_files_have_an_output_each_also_of_several_processes(run, model, tmp_path):
    rows = tmp_path / "rows"
    rows.mkdir()
    for name in ("a", "b"):
        (rows / f"{name}.csv").write_text(f"text,pair\nthe cat,{name}\n")
    (rows / "broken.csv").write_text("text,pair\none\n")
    words = ("classify", model, "--output-format", "csv", "--engine", "torch", "--output")
    many = (tmp_path / "out", "--file", rows)
    assert "1 of 3 files failed" in run(*words, *many, "--workers", 2, exit_code=2).err
    (rows / "broken.csv").unlink()
    assert "2 files, 2 of them done before" in run(*words, *many).out
    for name in ("a", "b"):
        one = tmp_path / f"{name}.csv"
        run(*words[:2], "--engine", "torch", "--file", rows / one.name, "--output", one)
        many_one = tmp_path / "out" / f"{name}.csv.csv"
        (header, *found), (expected_header, *expected) = (
            list(csv.reader(path.read_text().splitlines())) for path in (many_one, one)
        )
        assert header == expected_header
        assert [row[:3] for row in found] == [row[:3] for row in expected]


def test_with_labels_the_first_word_may_be_standard_input_or_begin_with_a_hyphen(
    monkeypatch, capsys
):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a cat\n")))
    assert main(["classify", "--labels", "cat,dog", "-"]) == 0
    assert capsys.readouterr().out.endswith("a cat\n")
    assert main(["classify", "--labels", "cat,dog", "-5 dogs"]) == 0
    assert capsys.readouterr().out.endswith("-5 dogs\n")
    assert main(["classify", "-x", "a dog"]) == 2
    assert "there is no option -x" in capsys.readouterr().err
