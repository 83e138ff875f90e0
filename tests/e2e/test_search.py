"""`bertkit similarity` and `bertkit search` as a user runs them."""

import io
import json
import re
import sys

import pytest
from tests.e2e.small import run as run_command

TEXTS = ["the cat saw a dog .", "a hat", "the dog lost\tthe hat", "a \x1b[31mcat", "a " + "x" * 200]


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


def test_texts_are_found_and_only_what_changed_is_read_again(model, corpus, capsys):
    out, err = search(capsys, model, corpus, "a hat", "the cat", "--top-k", 2)
    lines = out.splitlines()
    assert lines[0] == "a hat"
    scores, _, rest = lines[2].partition(f"  {corpus.parent.name}/passages.jsonl:2 ")
    assert re.fullmatch(r"    1\.000 +[\d.]+ +1\.00", scores)
    assert rest == "a hat"
    assert lines[4] == "the cat"
    assert len(lines) == 8
    assert f"{corpus}.bertkit: 5 documents added" in err
    again, err = search(capsys, model, corpus, "a hat", "the cat", "--top-k", 2)
    assert again == out
    assert "added" not in err
    with corpus.open("a") as file:
        file.write('{"text": "a hat a hat"}\n')
    assert "1 document added" in search(capsys, model, corpus, "a hat")[1]
    assert {path.name for path in corpus.parent.iterdir()} == {
        "passages.jsonl",
        "passages.jsonl.bertkit",
    }


def test_texts_of_a_folder_are_found_with_their_file(model, tmp_path, capsys):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("the cat\n\na hat\n")
    out, _ = search(capsys, model, docs, "a hat", "--top-k", 1)
    assert out.splitlines()[2].endswith("  docs/a.txt:3 a hat")
    faq = tmp_path / "faq.jsonl"
    faq.write_text('{"no": 7, "text": "a hat"}\n{"no": 8, "text": "the cat"}\n')
    words = ["--id-column", "no", "the cat", "--top-k", 1]
    shown = search(capsys, model, faq, *words)[0].splitlines()
    assert shown[2].endswith("  8            the cat")
    assert json.loads(search(capsys, model, faq, *words, "--json")[0])["hits"][0]["id"] == "8"
    out, _ = search(capsys, model, docs, "--corpus", faq, "a hat", "--top-k", 2)
    assert [line.split()[3] for line in out.splitlines()[2:]] == [
        "docs/a.txt:3",
        f"{tmp_path.name}/faq.jsonl:1",
    ]


def test_foreign_texts_are_cut_and_steer_no_terminal_and_json_has_them_whole(model, corpus, capsys):
    out, _ = search(capsys, model, corpus, "cat", "--by", "vectors", "--by-document")
    assert "\x1b" not in out
    assert "the dog lost the hat" in out
    assert max(map(len, out.splitlines())) < 240
    assert "xxxx…" in out
    out, _ = search(capsys, model, corpus, "cat", "--by", "vectors", "--by-document", "--json")
    facts = json.loads(out)
    assert facts["query"] == "cat"
    assert {hit["id"]: hit["text"] for hit in facts["hits"]}[
        f"{corpus.parent.name}/passages.jsonl:4"
    ] == TEXTS[3]
    scores = [hit["score"] for hit in facts["hits"]]
    assert scores == sorted(scores, reverse=True)


def test_columns_of_scores_are_apart_however_small_they_are(model, tmp_path, capsys):
    (tmp_path / "two.txt").write_text("a hat\na hat\n")
    out, _ = search(capsys, model, tmp_path / "two.txt", "hat", "--top-k", 1)
    assert out.splitlines()[2].split()[1] == "0.00"


def test_queries_come_from_a_file_or_standard_input(model, corpus, tmp_path, capsys, monkeypatch):
    path = tmp_path / "queries.txt"
    path.write_text("a hat\n\nthe cat\n")
    words = ["search", "--model", model, "--corpus", corpus, "--top-k", 1]
    out, _ = run(capsys, *words, "--file", path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a hat\nthe cat\n")))
    assert run(capsys, *words, "-")[0] == out
    assert out.startswith("a hat\n")


@pytest.fixture
def faq(tmp_path, model, capsys):
    """An index of three rows with fields."""
    path, index = tmp_path / "faq.csv", tmp_path / "faq.bertkit"
    path.write_text("no,text,year\n7,a hat,2009\n8,the cat saw,2020\n9,the dog,2021\n")
    words = ["index", "add", index, path, "--id-column", "no", "--model", model]
    assert run(capsys, *words)[0] == "3 documents added; 3 passages, 3 embedded\n"
    return index


def list_ids(capsys, index, *words):
    out, _ = run_command(capsys, "search", "--index", index, *words, "--json")
    return [hit["id"] for hit in json.loads(out)["hits"]]


def test_documents_of_an_index_are_replaced_deleted_and_described(faq, tmp_path, capsys):
    (tmp_path / "more.csv").write_text("no,text,year\n8,the hat,2022\n10,a dog,2022\n")
    words = ["index", "add", faq, tmp_path / "more.csv", "--id-column", "no"]
    assert (
        run_command(capsys, *words)[0]
        == "1 document added, 1 document replaced; 2 passages, 2 embedded\n"
    )
    info = run_command(capsys, "index", "info", faq)[0]
    assert re.search(r"^documents +4\b", info, re.MULTILINE)
    assert "year (4)" in info
    out, err = run_command(capsys, "index", "delete", faq, "--id", "7", "--id", "none")
    assert out == "1 document deleted, 3 left\n"
    assert "no document has the id none" in err
    out, _ = run_command(capsys, "index", "delete", faq, "--where", "year >= 2022", "--json")
    assert json.loads(out) == {"deleted": 2, "documents": 1}
    assert list_ids(capsys, faq, "a hat") == ["9"]


def test_a_search_of_an_index_is_by_words_and_fields(faq, capsys):
    assert list_ids(capsys, faq, "the CAT", "--by", "words") == ["8"]
    words = ["search", "--index", faq, "zebra", "--by", "words"]
    assert run_command(capsys, *words)[0] == "zebra\n  nothing found\n"
    words = ["the cat", "--by", "both", "--where", "year < 2010 or year = 2021"]
    assert sorted(list_ids(capsys, faq, *words)) == ["7", "9"]
    _, err = run_command(capsys, "search", "--index", faq, "cat", "--where", "yaer > 1", code=2)
    assert "yaer" in err
    assert "year" in err


def test_an_index_follows_its_folder(model, tmp_path, capsys):
    notes, index = tmp_path / "notes", tmp_path / "notes.bertkit"
    notes.mkdir()
    for name, text in {"a": "a hat", "b": "the cat", "c": "the dog"}.items():
        (notes / f"{name}.txt").write_text(text)
    words = ["index", "update", index, "--corpus", notes]
    assert "3 documents added" in run(capsys, *words, "--model", model)[0]
    (notes / "a.txt").unlink()
    (notes / "b.txt").write_text("the hat saw")
    out, _ = run(capsys, *words)
    assert out.startswith("1 document replaced, 1 document deleted; 1 passage")
    assert sorted(list_ids(capsys, index, "a hat")) == ["notes/b.txt", "notes/c.txt"]


def test_an_index_folder_of_an_earlier_version_is_made_anew(model, corpus, capsys):
    place = corpus.with_name("passages.jsonl.bertkit")
    place.mkdir()
    for name in ("index.json", "vectors.npy", "texts.bin", "text_ends.npy", ".lock"):
        (place / name).write_text("old")
    out, err = search(capsys, model, corpus, "a hat", "--top-k", 1)
    assert out.splitlines()[2].endswith("a hat")
    assert "is an index of an older form" in err
    assert place.is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["search", "a hat"], "name what to search: texts by --corpus, or an index by --index"),
        (["search", "a hat", "--index", "none.bertkit"], "none.bertkit doesn't exist; `bertkit"),
        (["index", "info", "none.bertkit"], "none.bertkit doesn't exist; `bertkit index add"),
        (["index", "delete", "none.bertkit"], "none.bertkit doesn't exist"),
        (["index", "add", "none.bertkit"], "give files or folders of texts to add"),
    ],
)
def test_what_is_missing_is_told_in_one_line(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert message in run_command(capsys, *words, code=2)[1]
    assert list(tmp_path.iterdir()) == []
