"""`bertkit review` says in a line what is wrong with a file, whatever it holds."""

import random

import pytest
from tests.unit.recipes.finetune.small import save_model

from bertkit.cli.main import main

WORDS = ["the", "cat", "dog", "saw", "met", "a", "man", "woman", "good", "bad", "happy", "sad"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("review") / "model"
    save_model(folder)
    return folder


def write_rows(*labels: str, number: int = 30, separator: str = ",") -> str:
    """Rows of random words, with each label in turn."""
    choose = random.Random(0).choices
    rows = [
        f"{' '.join(choose(WORDS, k=7))}{separator}{labels[each % len(labels)]}\n"
        for each in range(number)
    ]
    return f"text{separator}label\n{''.join(rows)}"


PLAIN = write_rows("good", "bad")
REVIEWED = {  # name → content, and what the review says
    "a class with one row": (f"{PLAIN}the cat,rare\n", "rarest label: rare, 1 row"),
    "a typing error": (
        f"{write_rows('positive', 'negative')}the cat,positve\n",
        "labels that may be typing errors: 'positve' (1) may be 'positive' (15)",
    ),
    "equal texts": (
        "text,label\n" + "the cat saw a dog .,good\nthe cat saw a dog .,bad\n" * 10,
        "20 rows of one text are too few to check labels",
    ),
    "two texts": (
        "text,label\n" + "the cat,good\nthe dog,bad\n" * 10,
        "20 rows of 2 different texts are too few to check labels",
    ),
    "one class": (write_rows("good"), "all rows have the label good"),
    "many classes": (
        write_rows(*(f"x{each}" for each in range(1500)), number=1500),
        "1,500 different labels in 1,500 rows, too many to check",
    ),
    "empty rows": (f"{PLAIN},good\n,\n   ,bad\n", "2 of them without text, kept"),
    "a label that moves a cursor": (write_rows("go\x1b[2Jod", "b\u202ead"), "b�ad 15, go␛[2Jod 15"),
    "numbers": (
        write_rows(*(f"{each / 7:.2f}" for each in range(30))),
        "numbers from 0 to 4.14",
    ),
}


@pytest.mark.parametrize("name", REVIEWED)
def test_a_review_says_what_is_odd(tmp_path, monkeypatch, capsys, model, name):
    monkeypatch.chdir(tmp_path)
    content, said = REVIEWED[name]
    (tmp_path / "rows.csv").write_text(content, encoding="utf-8")
    assert main(["review", "rows.csv", "--model", str(model)]) == 0
    output = capsys.readouterr()
    assert said in output.out
    assert "\x1b" not in output.out
    assert not any(f"; --{flag}" in output.out for flag in ("class-weights", "labels"))


@pytest.mark.parametrize(
    ("encoding", "said"),
    [("cp1252", "rows.csv: read as cp1252"), ("utf-16", ""), ("utf-8-sig", "")],
)
def test_encodings_of_spreadsheets_are_read(tmp_path, monkeypatch, capsys, model, encoding, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(write_rows("für", "gegen", separator=";"), encoding)
    assert main(["review", "rows.csv", "--model", str(model)]) == 0
    output = capsys.readouterr()
    assert "für 15, gegen 15" in output.out
    assert said in output.err


REFUSED = {
    "nothing": ("", "rows.csv has no rows"),
    "no rows": ("text,label\n", "rows.csv has no rows"),
    "no labels": ("text\nthe cat\nthe dog\n", "has no column for the label"),
    "empty labels": ("text,label\nthe cat,\nthe dog,\n", "2 of 2 rows (100.0 %) are broken"),
    "one number": (write_rows("1.5"), "all examples have the number 1.5"),
    "another table": (PLAIN.replace("text,label", "a,b,c"), "rows.csv"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_reviewed_is_refused_in_a_line(tmp_path, monkeypatch, capsys, model, name):
    monkeypatch.chdir(tmp_path)
    content, said = REFUSED[name]
    (tmp_path / "rows.csv").write_text(content, encoding="utf-8")
    words = ["review", "rows.csv", "--model", str(model), "--output", "out.csv"]
    assert main(words) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("bertkit:")]
    assert said in line
    assert not (tmp_path / "out.csv").exists()
