"""Rows in every format: what is quoted, which types stay, and what can't be written."""

import codecs
import csv
import io
import json
import math

import pandas as pd
import pyarrow.parquet as pq
import pytest

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.files import durable_file
from bertkit.data.tables.record import CsvStyle
from bertkit.data.tables.records import open_records
from bertkit.data.tables.settings import RecordSettings
from bertkit.data.writers import ROW_WRITERS, check_output, write_rows

ROWS = [
    {"id": 7, "text": 'a "film", long', "stars": 4.5, "tags": ["x"], "is_new": True},
    {"id": 8, "text": None, "stars": 3, "tags": None, "is_new": False},
]


def write(path, rows):
    with durable_file(path) as file:
        ROW_WRITERS[path.suffix](file, iter(rows))
    return path


def test_csv_quotes_and_has_json_for_what_is_nested(tmp_path):
    text = write(tmp_path / "a.csv", ROWS).read_text("utf-8")
    found = list(csv.DictReader(io.StringIO(text)))
    assert found[0] == {
        "id": "7",
        "text": 'a "film", long',
        "stars": "4.5",
        "tags": '["x"]',
        "is_new": "true",
    }
    assert found[1]["text"] == ""


def test_csv_quotes_every_line_end_in_a_cell(tmp_path):
    rows = [{"n": 1, "text": "one\rcell"}, {"n": 2, "text": "\r"}, {"n": 3, "text": "a\nb\r\n"}]
    path = write(tmp_path / "a.csv", rows)
    assert path.read_bytes() == b'n,text\n1,"one\rcell"\n2,"\r"\n3,"a\nb\r\n"\n'
    assert pd.read_csv(path)["text"].tolist() == [row["text"] for row in rows]


@pytest.mark.parametrize(
    ("content", "settings", "delimiter", "has_mark"),
    [
        ("text,label\nä,b\n".encode(), {}, ",", False),
        ("text;label\nä,;b\n".encode("utf-8-sig"), {}, ";", True),
        ("text;label\nä,;b\n".encode("cp1252"), {"encoding": "cp1252"}, ";", True),
        ("text\tlabel\nä,\tb\n".encode("utf-16"), {}, "\t", True),
        ("text|label\nä,|b\n".encode(), {"delimiter": "|"}, "|", False),
    ],
)
def test_csv_is_written_as_the_file_was_that_it_is_made_of(
    tmp_path, content, settings, delimiter, has_mark
):
    (tmp_path / "a.csv").write_bytes(content)
    table = open_records(tmp_path / "a.csv", RecordSettings(**settings))
    write_rows(tmp_path / "b.csv", (dict(one.values) for one in table.records()), table.csv_style)
    made = (tmp_path / "b.csv").read_bytes()
    assert made.startswith(codecs.BOM_UTF8) == has_mark
    assert made.decode("utf-8-sig").splitlines()[0] == f"text{delimiter}label"
    again = open_records(tmp_path / "b.csv", RecordSettings(delimiter=settings.get("delimiter")))
    assert [one.values["text"] for one in again.records()] == ["ä" if delimiter == "," else "ä,"]


def test_other_files_have_no_separator_for_csv(tmp_path):
    (tmp_path / "a.tsv").write_text("text\tlabel\na\tb\n")
    assert open_records(tmp_path / "a.tsv").csv_style == CsvStyle()


def test_numbers_that_are_not_finite_are_missing(tmp_path):
    rows = [{"n": math.nan, "list": [1.0, math.inf]}]
    assert write(tmp_path / "a.csv", rows).read_text() == 'n,list\n,"[1.0, null]"\n'
    assert write(tmp_path / "a.jsonl", rows).read_text() == '{"n": null, "list": [1.0, null]}\n'


def test_tsv_quotes_nothing_and_refuses_tabs(tmp_path):
    text = write(tmp_path / "a.tsv", ROWS).read_text("utf-8")
    assert text.splitlines()[1] == '7\ta "film", long\t4.5\t["x"]\ttrue'
    with pytest.raises(InputError, match=r"row 2 has a tab or a line end in a cell.*\.parquet"):
        write(tmp_path / "b.tsv", [{"a": "x"}, {"a": "x\ty"}])
    assert not (tmp_path / "b.tsv").exists()


def test_parquet_keeps_types(tmp_path):
    table = pq.read_table(write(tmp_path / "a.parquet", ROWS))
    assert list(map(str, table.schema.types)) == ["int64", "string", "double", "string", "bool"]
    assert table.to_pylist()[1] == {
        "id": 8,
        "text": None,
        "stars": 3.0,
        "tags": None,
        "is_new": False,
    }


def test_a_type_that_changes_later_is_told(tmp_path):
    rows = [{"a": 1}] * 4096 + [{"a": "x"}]
    with pytest.raises(InputError, match="the column a has other types of values from row 4,097"):
        write(tmp_path / "a.parquet", rows)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet"])
def test_a_column_that_comes_later_is_told(tmp_path, name):
    rows = [{"a": 1}] * 4096 + [{"a": 1, "b": 2}]
    with pytest.raises(InputError, match=r"row 4,097 has b, which the first row lacks; write"):
        write(tmp_path / name, rows)
    lines = write(tmp_path / "a.jsonl", rows).read_text("utf-8").splitlines()
    assert json.loads(lines[-1]) == {"a": 1, "b": 2}


def test_another_ending_is_told(tmp_path):
    with pytest.raises(
        SettingsError, match=r"with \.jsonl or \.csv or \.tsv or \.parquet or \.xlsx"
    ):
        check_output(tmp_path / "a.ods", overwrite=False)
