"""Documents of files and of Python: ids, fields, what is left out, and what changed."""

import datetime as dt
import gzip
import hashlib
import json
import sqlite3

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from bertkit.base.errors import InputError, SettingsError
from bertkit.data.tables.decoder import NotTextError
from bertkit.data.tables.settings import CorpusSettings
from bertkit.retrieval.documents import (
    compare_sources,
    name_corpus,
    open_sources,
    place_index,
    read_rows,
)

ROWS = [
    {"key": 7, "body": "one", "year": 2020, "tags": ["a", 1], "made": None},
    {"key": "x", "body": "two", "year": 1.5, "tags": [], "made": {"by": True}},
]
NOTES = '["notes"]'
READING = CorpusSettings(text_column="body", id_column="key")


def read(inputs, reading=READING):
    return [one for source in open_sources(inputs, reading) for one in source.documents()]


def digits(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_further_columns_are_fields_in_every_format(tmp_path):
    fields = [{key: row[key] for key in ("year", "tags", "made")} for row in ROWS]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "b.json").write_text(json.dumps(ROWS))
    for source in (tmp_path / "a.jsonl", tmp_path / "b.json"):
        found = read([source])
        assert [(one.id, one.text, one.is_row) for one in found] == [
            ("7", "one", True),
            ("x", "two", True),
        ]
        assert [one.fields for one in found] == fields
    assert [one.fields for one in read_rows(ROWS, text="body", id="key")] == fields
    (tmp_path / "c.csv").write_text(",key,body,year\n0,7,one,2020\n")
    (tmp_path / "d.tsv").write_text("body\tyear\tkey\none\t2020\t7\n")
    book = openpyxl.Workbook()
    for row in (["key", "body", "year"], [7, "one", 2020]):
        book.active.append(row)
    book.save(tmp_path / "e.xlsx")
    for name in ("c.csv", "d.tsv", "e.xlsx"):
        (found,) = read([tmp_path / name])
        assert (found.id, found.text, found.fields) == ("7", "one", {"year": "2020"})
    day, number = dt.date(2026, 11, 28), float("inf")
    table = pa.table({"key": [7], "body": ["one"], "day": [day], "much": [number]})
    pq.write_table(table, tmp_path / "f.parquet")
    assert read([tmp_path / "f.parquet"])[0].fields == {"day": "2026-11-28", "much": None}


def test_files_of_plain_text_are_documents_by_name_beside_rows(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.md").write_text("One.\n\nTwo.\n")
    (folder / "deep" / "b.csv").write_text("text,n\nthree,1\n,2\n")
    (folder / "picture.jpg").write_bytes(b"\xff\xd8")
    (folder / "settings.json").write_text('{"a": 1}')
    (folder / "sums.csv").write_text("n,m\n1,2\n")
    (folder / "noise.txt").write_bytes(bytes(range(256)) * 9)
    found = read([folder], CorpusSettings())
    assert [(one.id, one.text) for one in found] == [
        ("notes/a.md", "One.\n\nTwo.\n"),
        ("notes/deep/b.csv:1", "three"),
        ("notes/deep/b.csv:2", ""),
    ]
    assert [one.is_row for one in found] == [False, True, True]
    assert found[1].place.endswith("b.csv, line 2")
    said = capsys.readouterr().err
    assert said.count("left out: ") == 4
    assert all(name in said for name in ("picture.jpg", "noise.txt", "settings.json", "sums.csv"))
    with pytest.raises(NotTextError, match="isn't text"):
        read([folder / "noise.txt"])
    monkeypatch.chdir(folder)
    assert [one.id for one in read(["a.md"], CorpusSettings())] == ["notes/a.md"]
    with pytest.raises(NotTextError, match="isn't text"):
        read(["./noise.txt"])


def test_rows_without_a_text_are_left_out_and_said(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": 5}\n[]\n{"n": 1}\n' + '{"text": "t"}\n' * 30)
    found = read([path], CorpusSettings())
    assert [one.text for one in found] == ["", *["t"] * 30]
    said = capsys.readouterr().err
    assert "2 of 33 rows" in said
    assert "line 1 has a int in text where a text should be" in said
    path.write_text('{"text": 5}\n{"text": [1]}\n')
    with pytest.raises(InputError, match=r"has no row with a text: .* line 1 has a int"):
        read([path], CorpusSettings())
    table = tmp_path / "a.csv"
    table.write_bytes(b"text,\xff\n")  # no rows at all
    assert read([table], CorpusSettings()) == []


def test_another_encoding_is_read_or_refused(tmp_path, capsys):
    western = "Größe und Länge, schön über die Brücke für Mädchen.\n" * 3
    for name in ("a.txt", "b.csv"):
        (tmp_path / name).write_bytes(f"text\n\n{western}".encode("cp1252"))
        found = read([tmp_path / name], CorpusSettings(delimiter=";"))
        assert western.strip() in "\n".join(one.text for one in found)
        assert "read as cp1252" in capsys.readouterr().err
    (tmp_path / "c.txt").write_bytes(("Пётр и Анна жили в деревне у реки.\n" * 9).encode("cp1251"))
    (tmp_path / "d.txt").write_bytes("Öl und Wein. ".encode() * 9 + b"\xff.")
    assert read([tmp_path / "d.txt"], CorpusSettings())[0].text.endswith("\ufffd.")
    assert "invalid UTF-8 was replaced" in capsys.readouterr().err
    with pytest.raises(InputError, match="--encoding"):
        read([tmp_path / "c.txt"], CorpusSettings())
    assert read([tmp_path / "c.txt"], CorpusSettings(encoding="cp1251"))[0].text[:4] == "Пётр"


def test_rows_from_python_are_numbered_or_known_by_their_text():
    texts = ["a", "b", "a", "\ud800"]
    assert [one.id for one in read_rows(texts, first=0)] == ["0", "1", "2", "3"]
    found = list(read_rows(texts))
    first = digits("a")
    assert [one.id for one in found] == [first, digits("b"), f"{first}-2", digits("\ufffd")]
    frame = pd.DataFrame({"text": ["a", None], "year": [2020, 2021]})
    assert [(one.text, one.fields) for one in read_rows(frame)] == [
        ("a", {"year": 2020}),
        ("", {"year": 2021}),
    ]


def test_a_value_that_is_nested_too_deeply_is_a_broken_row(tmp_path, capsys):
    endless: list[object] = []
    endless.append(endless)
    found = read_rows([{"text": "a", "n": endless}, {"text": "a", "n": 1}])
    assert [one.fields for one in found] == [{"n": 1}]
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "a", "n": {"[" * 800}{"]" * 800}}}\n{{"text": "a", "n": 1}}\n')
    assert [one.fields for one in read([path], CorpusSettings())] == [{"n": 1}]
    assert capsys.readouterr().err.count("1 has a value that is nested too deeply") == 2


def test_a_row_without_an_id_gets_one(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("key,body\n1,a\n ,b\n")
    assert [one.id for one in read([path])] == ["1", f"{tmp_path.name}/a.csv:2"]
    assert "1 row without key" in capsys.readouterr().err
    assert [one.id for one in read([path], READING.model_copy(update={"id_column": ""}))] == [
        f"{tmp_path.name}/a.csv:{number}" for number in (1, 2)
    ]
    rows = [{"id": 0, "text": "a"}, {"text": "b"}, {"id": None, "text": "b"}]
    expected = ["0", digits("b"), f"{digits('b')}-2"]
    assert [one.id for one in read_rows(rows, first=0)] == expected
    assert [one.id for one in read_rows(rows, id="id")] == expected
    assert [one.id for one in read_rows(rows, id="", first=4)] == ["4", "5", "6"]
    path.write_text("text\na\n")
    with pytest.raises(InputError, match="has no column key"):
        read([path])


def test_what_changed_and_what_is_gone(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (folder / name).write_text(name)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE sources (name TEXT, corpus TEXT, stamp TEXT)")
    sources = open_sources([folder], CorpusSettings())
    assert compare_sources(connection, sources, NOTES) == (sources, [])
    rows = [(one.name, NOTES, one.stamp) for one in sources]
    rows += [("other/d.txt", "other", '["other/d.txt"]'), ("single.txt", "", '["single.txt"]')]
    connection.executemany("INSERT INTO sources VALUES (?, ?, ?)", rows)
    assert compare_sources(connection, sources, NOTES) == ([], [])
    (folder / "a.txt").unlink()
    (folder / "b.txt").write_text("longer")
    sources = open_sources([folder], CorpusSettings())
    changed, gone = compare_sources(connection, sources, NOTES)
    assert ([one.name for one in changed], gone) == (["notes/b.txt"], ["notes/a.txt"])
    otherwise = open_sources([folder], CorpusSettings(encoding="latin-1"))
    assert len(compare_sources(connection, otherwise, NOTES)[0]) == 2


def test_the_index_stands_beside_its_corpus(tmp_path, monkeypatch):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a")
    place = place_index([tmp_path / "notes"])
    assert place == tmp_path / "notes.bertkit"
    assert place_index([tmp_path / "notes" / "a.txt"]) == tmp_path / "notes" / "a.txt.bertkit"
    name = name_corpus([tmp_path / "notes"], place)
    monkeypatch.chdir(tmp_path / "notes")
    assert name_corpus(["."], tmp_path / "notes.bertkit") == name == '["notes"]'
    assert name_corpus(["*.txt"], place) != name


def test_the_index_of_several_stands_in_their_folder_and_is_no_part_of_a_corpus(
    tmp_path, monkeypatch
):
    for name in ("a", "b"):
        (tmp_path / "all" / name).mkdir(parents=True)
        (tmp_path / "all" / name / "c.txt").write_text(name)
    place = place_index([tmp_path / "all" / "a", tmp_path / "all" / "b" / "*.txt"])
    assert (place.parent, place.suffix) == (tmp_path / "all", ".bertkit")
    monkeypatch.chdir(tmp_path / "all")
    assert place_index(["b/*.txt", "a"]) == place != place_index(["a/c.txt", "b"])
    for suffix in ("", "-wal"):
        place.with_name(f"{place.name}{suffix}").write_bytes(b"SQLite format 3\0")
    for corpus in (".", "*", "**"):
        assert sorted(one.text for one in read([corpus], CorpusSettings())) == ["a", "b"]
    with pytest.raises(SettingsError, match="name a file with --index"):
        place_index(["memory://all"])


def test_remote_files_are_documents():
    files = MemoryFileSystem()
    files.pipe("/notes/a.md", b"One.")
    files.pipe("/notes/b.jsonl.gz", gzip.compress(b'{"text": "two", "n": 1}\n'))
    try:
        found = open_sources(["memory://notes"], CorpusSettings())
        read_twice = [list(one.documents()) for one in found for _ in range(2)]
    finally:
        files.rm("/notes", recursive=True)
    assert [one.size_bytes for one in found] == [4, 0]  # that of the compressed one tells nothing
    assert [one.name.rpartition("/")[2] for one in found] == ["a.md", "b.jsonl.gz"]
    assert [[one.text for one in each] for each in read_twice] == [
        ["One."],
        ["One."],
        ["two"],
        ["two"],
    ]
