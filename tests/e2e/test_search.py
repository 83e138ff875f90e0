"""`bertkit similarity` and `bertkit search` as a user runs them."""

import io
import json
import re
import sys

import pytest
from tests.e2e.small import run as run_command

TEXTS = ["the cat saw a dog .", "a hat", "the dog lost\tthe hat", "a \x1b[31mcat", "a " * 200]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "passages.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> tuple[str, str]:
    return run_command(capsys, *words, "--engine", "torch", code=code)


def search(capsys, model, corpus, *words, code=0):
    return run(capsys, "search", "--model", model, "--corpus", corpus, *words, code=code)


def test_two_texts_are_one_number_and_more_a_table(model, tmp_path, capsys):
    path = tmp_path / "texts.txt"
    path.write_text("a hat\na hat\nthe dog\n\n")
    assert run(capsys, "similarity", "--model", model, "a hat", "a hat")[0] == "1.000\n"
    words = ["similarity", "--model", model, "a hat", "the dog", "--similarity", "euclidean"]
    assert float(run(capsys, *words)[0]) < 0
    out, _ = run(capsys, "similarity", "--model", model, "--file", path)
    rows = [[float(cell) for cell in line.split()] for line in out.splitlines()]
    assert [rows[number][number] for number in range(3)] == [1.0] * 3
    assert rows[0][1] == rows[1][0] == 1.0
    assert rows[0][2] == rows[2][0] < 1
    out, _ = run(capsys, "similarity", "--model", model, "--file", path, "--json")
    facts = json.loads(out)
    assert facts["similarity"] == "cosine"
    assert facts["texts"] == ["a hat", "a hat", "the dog"]
    assert rows[0][2] == round(facts["scores"][0][2], 3)


@pytest.mark.parametrize("num_texts", [1, 1001])
def test_one_text_or_too_many_are_refused(model, tmp_path, capsys, num_texts):
    path = tmp_path / "texts.txt"
    path.write_text("a\n" * num_texts)
    out, err = run(capsys, "similarity", "--model", model, "--file", path, code=2)
    assert out == ""
    assert f"got {num_texts:,} text{'s' * (num_texts > 1)}; give two, or up to 1,000" in err


def test_texts_are_found(model, corpus, capsys):
    out, _ = search(capsys, model, corpus, "a hat", "the cat", "--top-k", 2)
    lines = out.splitlines()
    assert lines[0] == "a hat"
    assert lines[1] == "    1.000  row 1        a hat"
    assert lines[3] == "the cat"
    assert len(lines) == 6
    again, err = search(capsys, model, corpus, "a hat", "the cat", "--top-k", 2)
    assert again == out
    assert re.fullmatch(r"precision (fp32|bf16), as the index was made\n", err)


def test_texts_of_a_folder_are_found_with_their_file(model, tmp_path, capsys):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("the cat\n\na hat\n")
    out, err = search(capsys, model, docs, "a hat", "--top-k", 1)
    assert out.splitlines()[1] == "    1.000  docs/a.txt:3 a hat"
    assert "1 empty row left out" in err
    faq = tmp_path / "faq.jsonl"
    faq.write_text('{"no": 7, "text": "a hat"}\n{"no": 8, "text": "the cat"}\n')
    words = ["--id-column", "no", "the cat", "--top-k", 1]
    shown = search(capsys, model, faq, *words)[0].splitlines()
    assert shown[1] == "    1.000  8            the cat"
    assert json.loads(search(capsys, model, faq, *words, "--json")[0])["hits"][0]["id"] == "8"
    out, _ = search(capsys, model, docs, "--corpus", faq, "a hat", "--top-k", 2)
    assert [line.split()[1] for line in out.splitlines()[1:]] == [
        "docs/a.txt:3",
        f"{tmp_path.name}/faq.jsonl:1",
    ]


def test_foreign_texts_are_cut_and_steer_no_terminal_and_json_has_them_whole(model, corpus, capsys):
    out, _ = search(capsys, model, corpus, "cat")
    assert "\x1b" not in out
    assert "the dog lost the hat" in out
    assert max(map(len, out.splitlines())) < 190
    assert "a a a a…" in out
    out, _ = search(capsys, model, corpus, "cat", "--json")
    facts = json.loads(out)
    assert facts["query"] == "cat"
    assert {hit["row"]: hit["text"] for hit in facts["hits"]} == dict(enumerate(TEXTS))
    scores = [hit["score"] for hit in facts["hits"]]
    assert scores == sorted(scores, reverse=True)


def test_queries_come_from_a_file_or_standard_input(model, corpus, tmp_path, capsys, monkeypatch):
    path = tmp_path / "queries.txt"
    path.write_text("a hat\n\nthe cat\n")
    words = ["search", "--model", model, "--corpus", corpus, "--top-k", 1]
    out, _ = run(capsys, *words, "--file", path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a hat\nthe cat\n")))
    assert run(capsys, *words, "-")[0] == out
    assert out.startswith("a hat\n")
