"""Files of spreadsheets, of other countries and of other programs are read, or told apart."""

import gzip
import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError
from tests.unit.data.tables.labeled import read, read_values, refuse, write

from bertkit.base.errors import InputError
from bertkit.data.tables.records import open_records
from bertkit.data.tables.settings import RecordSettings, TableSettings
from bertkit.data.tables.texts import open_texts
from bertkit.tasks.columns import find_column

ROWS = [{"text": "Schön, ja", "label": "gut"}, {"text": "Öde", "label": "schlecht"}]
GERMAN = "text;label\nSchön, ja;gut\nÖde;schlecht\n"
NESTED = [{"doc": {"body": "one", "n": 1}, "label": "x"}, {"doc": {"body": "two"}, "label": "y"}]


def texts(path, **settings) -> list[str]:
    return [row.text for row in open_texts(path, TableSettings(**settings)).rows()]


@pytest.mark.parametrize(
    ("content", "settings"),
    [
        (GERMAN.encode(), {}),
        (GERMAN.replace(";", "|").encode(), {}),
        (GERMAN.replace("\n", "\r\n").encode("utf-8-sig"), {}),  # Excel's CSV UTF-8
        (b'"text";"label"\n"Sch\xc3\xb6n, ja";"gut"\n"\xc3\x96de";"schlecht"\n', {}),  # R
        (GERMAN.replace(";", "\t").encode("utf-16"), {}),  # Excel's Unicode text
        (GERMAN.encode("cp1252"), {"encoding": "cp1252"}),
        (GERMAN.encode("utf-16-le"), {"encoding": "utf-16-le"}),
        (GERMAN.replace(";", "\x1f").encode(), {"delimiter": "\x1f"}),
        (GERMAN.replace(";", "\t").encode("latin-1"), {"delimiter": "tab", "encoding": "latin-1"}),
    ],
)
def test_a_spreadsheet_is_read(tmp_path, content, settings):
    path = write(tmp_path, "a.csv", content)
    assert read_values(path, **settings) == ROWS
    packed = write(tmp_path, "b.csv.gz", gzip.compress(content))
    assert read_values(packed, **settings) == ROWS
    assert texts(path, **settings) == [row["text"] for row in ROWS]


def test_a_header_that_no_separator_explains_is_refused(tmp_path):
    refuse(write(tmp_path, "a.csv", '"text" label\na,b\n'), "line 1 isn't CSV")
    refuse(write(tmp_path, "b.csv", '"a";"b"|"c"\n1;2|3\n'), "line 1 isn't CSV")


def test_a_header_with_commas_keeps_the_comma(tmp_path):
    path = write(tmp_path, "a.csv", "text,label; or not\na;b,x\n")
    assert read_values(path) == [{"text": "a;b", "label; or not": "x"}]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_files_with_byte_order_marks_are_joined(tmp_path, encoding):
    content = '"text",label\n"Schön, ja",gut\nÖde,schlecht\n'.encode(encoding)
    path = write(tmp_path, "a.csv", content + content)
    records, report = read(path)
    assert [dict(record.values) for record in records] == ROWS + ROWS
    assert report.first_broken == [f"{path}, line 4 has the names of the columns again"]
    report.check_share(0.01)
    lines = "".join(json.dumps(row) + "\n" for row in ROWS).encode(encoding)
    assert read_values(write(tmp_path, "a.jsonl", lines + lines)) == ROWS + ROWS
    tagged = "Ada\tB\nfell\tO\n\n".encode(encoding)
    tokens = [row["tokens"] for row in read_values(write(tmp_path, "a.conll", tagged + tagged))]
    assert tokens == [["Ada", "fell"]] * 2


def test_numbers_of_32_bits_are_those_that_were_written(tmp_path):
    numbers = np.array([0.1, 3.7, -2.5, 5.0, np.nan], dtype=np.float32)
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame({"label": numbers})
    frame.to_parquet(path)
    rows = [{"label": number} for number in numbers]
    expected = [{"label": label} for label in (0.1, 3.7, -2.5, 5.0, None)]
    assert read_values(path) == read_values(frame) == read_values(rows) == expected


@pytest.mark.parametrize("first", ["It rained.", "我喜欢这个。", "a row of five words"])
def test_a_first_row_that_seems_to_be_a_text_is_told(tmp_path, capsys, first):
    path = write(tmp_path, "a.csv", f'"{first}"\nIt snowed.\n')
    assert texts(path) == ["It snowed."]
    assert f"the first row, '{first}', is read as the name of the col" in capsys.readouterr().err
    assert texts(path, text_column=first) == ["It snowed."]
    assert texts(write(tmp_path, "b.csv", "Full review text\nIt snowed.\n")) == ["It snowed."]
    assert capsys.readouterr().err == ""
    table = open_records(write(tmp_path, "c.csv", f"{first},x\nIt snowed.,y\n"))
    with pytest.raises(InputError, match=r"if its first row is data, give --no-header$"):
        find_column(table, "text", None, ("text",))


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_numbers_that_are_missing_are_null_in_every_table(tmp_path, name):
    rows = [{"text": "one", "n": math.nan}, {"text": "two", "n": -math.inf}]
    lines = [json.dumps(row) for row in rows] + ['{"text": NaN, "n": 1e999}']
    content = "\n".join(lines) if name == "a.jsonl" else f"[{','.join(lines)}]"
    path = write(tmp_path, name, content)
    assert read_values(path) == [{"text": text, "n": None} for text in ("one", "two", None)]
    assert texts(path, format=name[2:]) == ["one", "two", ""]


@pytest.mark.parametrize("num_rows", [3, 300])
def test_rows_that_would_lose_characters_are_refused(tmp_path, num_rows):
    rows = "".join(f"Złoty {n},x\n" for n in range(num_rows))
    path = write(tmp_path, "a.csv", ("text,label\n" + rows).encode("cp1250"))
    at = r"the first at .*a\.csv, line 2, byte 2 \(0xB3\); name its encoding, such as"
    refuse(path, rf"lines \([79].*%\) aren't UTF-8 and would lose characters, {at}")
    with pytest.raises(InputError, match="aren't UTF-8 and would lose characters"):
        texts(path)
    few = "text,label\n" + "plain,x\n" * 70 + "Złoty,x\n" * 3
    path = write(tmp_path, "b.csv", few.encode("cp1250"))
    refuse(path, "3 of 74 lines")
    assert read(path, encoding="utf-8")[1].num_undecodable == 3
    isolated = few.encode("cp1250") + "Złoty,x\n".encode() * 3
    assert read(write(tmp_path, "c.csv", isolated))[1].num_undecodable == 3


def test_a_file_of_json_in_another_encoding_is_refused(tmp_path):
    rows = [{"text": f"Złoty {n}", "label": "x"} for n in range(9)]
    content = json.dumps(rows, ensure_ascii=False).encode("cp1250")
    refuse(write(tmp_path, "a.json", content), r"9 of 10 lines .* byte 13 \(0xB3\)")


def test_a_wrong_encoding_is_told(tmp_path):
    path = write(tmp_path, "a.csv", b"text\n\x81\x8d\n")
    refuse(path, r"a\.csv isn't in cp1252 .*; name another encoding", encoding="cp1252")
    with pytest.raises(ValidationError, match="unknown encoding; try utf-8, cp1252"):
        RecordSettings(encoding="klingon")
    with pytest.raises(ValidationError, match="must be one character, or tab, comma"):
        RecordSettings(delimiter="::")


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(ROWS),
        json.dumps(ROWS, indent=2),
        json.dumps({"version": 1, "rows": ROWS}),
        "\n".join(map(json.dumps, ROWS)),
    ],
    ids=["list", "indented", "in an object", "lines"],
)
def test_json_of_any_shape_is_read(tmp_path, content):
    path = write(tmp_path, "a.json", content)
    assert read_values(path) == ROWS
    assert texts(path) == [row["text"] for row in ROWS]


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ('{"a": 1, "b": {}}', r"a\.json is an object with a, b, and rows are expected"),
        ('{"a": [{}], "b": [{}]}', r"a\.json is an object with a, b, and rows"),
        ("3", r"a\.json has a single value, and no rows"),
        ("[3", r"a\.json isn't JSON .*; if each line is an object, name it with --format jsonl"),
    ],
)
def test_json_without_rows_is_told(tmp_path, content, match):
    refuse(write(tmp_path, "a.json", content), match)


def test_a_row_of_json_that_is_no_object_is_broken(tmp_path):
    _, report = read(write(tmp_path, "a.json", json.dumps([*ROWS, 3])))
    assert report.num_broken == 1
    assert texts(write(tmp_path, "b.json", '["a", null, "b"]')) == ["a", "", "b"]


def write_nested(folder, name):
    if name.endswith("parquet"):
        pq.write_table(pa.Table.from_pylist(NESTED), folder / name)
        return folder / name
    content = json.dumps(NESTED) if name == "a.json" else "\n".join(map(json.dumps, NESTED))
    return write(folder, name, content)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.parquet"])
def test_a_field_of_a_column_is_named_with_a_dot(tmp_path, name):
    path = write_nested(tmp_path, name)
    assert texts(path, text_column="doc.body") == ["one", "two"]
    with pytest.raises(InputError, match=r"doc\.no|no such field"):
        texts(path, text_column="doc.no")
