"""`bertkit summarize` as a user runs it."""

import io
import json
import sys

import pytest
from tests.e2e.small import without_precision

from bertkit.cli.main import main

BUNDLED = "the model that comes with bertkit; --model names another"
TEXT = "the cat saw a dog. a dog lost the hat.\n\nthe hat\n\na cat saw the hat. the dog saw.\n"


@pytest.fixture
def article(tmp_path):
    path = tmp_path / "article.txt"
    path.write_text(TEXT)
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert main(["summarize", *map(str, words)]) == code
    captured = capsys.readouterr()
    return captured.out, without_precision(captured.err)


def test_sentences_of_a_file_in_its_order(model, article, capsys):
    out, err = run(capsys, "--model", model, article, "--length", 2, "--engine", "torch")
    lines = out.splitlines()
    assert len(lines) == 2
    assert TEXT.index(lines[0]) < TEXT.index(lines[1])
    assert err == ""
    told, _ = run(capsys, "--model", model, article, "--length", 2, "--engine", "torch", "--json")
    found = json.loads(told)
    assert found["summary"] == " ".join(lines)
    assert (found["file"], found["row"]) == (str(article), None)
    assert (found["num_sentences"], found["num_candidates"]) == (5, 4)
    for sentence, line in zip(found["sentences"], lines, strict=True):
        assert TEXT[sentence["start"] : sentence["stop"]] == sentence["text"] == line


def test_rows_and_several_files_say_which_they_are(model, article, tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(f"{json.dumps({'body': text})}\n" for text in (TEXT, "", "a cat.")))
    out, err = run(capsys, "--model", model, rows, "--text-column", "body", "--length", 1)
    lines = out.splitlines()
    assert lines[0] == f"{rows}, row 1"
    assert lines[2:] == [f"{rows}, row 2", f"{rows}, row 3", "a cat."]
    assert err == (
        "3 summarized; 1 without a sentence; 1 with no more sentences than requested, left whole\n"
    )
    out, err = run(capsys, "--model", model, article, article, "--length", 1)
    assert out.splitlines()[0] == out.splitlines()[2] == str(article)
    assert err == "2 summarized\n"
    told, _ = run(capsys, "--model", model, rows, "--text-column", "body", "--json")
    assert [json.loads(line)["row"] for line in told.splitlines()] == [0, 1, 2]


def test_standard_input(model, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode() * 9 + b"\xff")))
    out, err = run(capsys, "--model", model, "-", "--length", 1)
    assert len(out.splitlines()) == 1
    assert err == "1 summarized; 1 with bytes that aren't UTF-8, read as \ufffd\n"


def test_without_a_model_the_bundled_one_extracts(article, capsys):
    out, err = run(capsys, article, "--length", 1, "--engine", "torch")
    assert f"with {BUNDLED}" in err
    assert out.strip() in TEXT


def test_a_missing_file_is_told_before_anything_is_read(tmp_path, article, capsys):
    out, err = run(capsys, "--model", tmp_path, article, "none.txt", code=2)
    assert (out, err) == ("", "bertkit: none.txt doesn't exist\n")
