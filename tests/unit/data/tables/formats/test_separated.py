"""A quote that is never closed costs its own row; what it swallowed is read again."""

import csv
import io
import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.data.tables.labeled import read, read_values, refuse, write
from tests.waiting import little_computing

from bertkit.base.errors import InputError, MissingFileError
from bertkit.data.tables.formats import glue, separated
from bertkit.data.tables.records import open_records
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.texts import open_texts

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
BROKEN = '"swallows, what comes'


def texts_of(path, **settings):
    found, report = read(path, **settings)
    return [record.values["text"] for record in found], report


def test_what_an_open_quote_swallowed_is_read_again(tmp_path):
    path = write(tmp_path, "a.csv", 'text,label\na,1\n"b,2\nc,3\n"d, d",4\ne,5\n')
    found, report = read(path)
    assert [record.values["text"] for record in found] == ["a", "c", "d, d", "e"]
    assert [record.place[-1] for record in found] == ["2", "4", "5", "6"]
    assert (report.num_rows, report.num_broken) == (5, 1)
    assert report.first_broken[0].startswith(f"{path}, line 3 isn't CSV (',' expected after '\"')")


def test_an_open_quote_at_the_end_costs_one_row(tmp_path):
    texts, report = texts_of(write(tmp_path, "a.csv", 'text\na\n"b\n' + "c\n" * 500 + '"d\n'))
    assert texts == ["a", *["c"] * 500]
    assert (report.num_rows, report.num_broken) == (503, 2)
    assert "line 3 isn't CSV (',' expected" in report.first_broken[0]
    assert "line 504 isn't CSV (unexpected end of data)" in report.first_broken[1]


@pytest.mark.parametrize(("mark", "shown"), [(";", "unexpected end of data"), ("|", "'|' exp")])
def test_an_open_quote_that_another_separator_brings_is_named(tmp_path, mark, shown):
    end = "" if "end" in shown else '" x\n'
    path = write(tmp_path, "a.csv", f'text{mark}"label\na{mark}1\n{end}')
    refuse(path, r"a\.csv, line 1 isn't CSV \(" + re.escape(shown))
    with pytest.raises(InputError, match="row 1 isn't CSV"):
        list(open_texts(path, TableSettings(text_column="text")).rows())


def test_an_open_quote_swallows_no_more_than_a_row_may_have(tmp_path, monkeypatch):
    monkeypatch.setattr(separated, "MAX_ROW_BYTES", 100)
    texts, report = texts_of(write(tmp_path, "a.csv", 'text\n"b\n' + "c\n" * 500))
    assert texts == ["c"] * 500
    assert "line 2 isn't CSV (over 0 MiB)" in report.first_broken[0]


def test_lines_that_all_swallow_all_others_end_in_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(separated, "MAX_AGAIN_BYTES", 1 << 20)
    path = write(tmp_path, "a.csv", "text,label\n" + 'a","b\n' * 5000)
    with little_computing():
        refuse(
            path, r"a\.csv, line \d+ and rows before it have quotes that are never closed; close"
        )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blank_lines_are_rows_in_one_column_and_none_in_several(tmp_path, end):
    blank = end * 3
    one = f"{blank}text{end}a{blank}b{end}"
    found, report = read(write(tmp_path, "a.csv", one))
    assert [record.values["text"] for record in found] == ["a", "", "", "b"]
    two = f'{blank}text,label{end}a,1{blank}"b{blank}c",2{end}'
    found, report = read(write(tmp_path, "b.csv", two))
    assert [record.values["text"] for record in found] == ["a", f"b{blank}c"]
    assert [record.place.split()[-1] for record in found] == ["5", "8"]
    assert report.num_rows == 2


FRAME = pd.DataFrame(
    {"text": ['a "b" c', "plain", "two\nlines", '"all"'], "label": ["x", "y", "x", '"y"']}
)


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("num_rows", [1, 4, pytest.param(40_000, marks=pytest.mark.exhaustive)])
def test_tsv_of_other_programs_is_read_without_its_quotes(tmp_path, quoting, num_rows):
    frame = pd.concat([FRAME] * (num_rows // 4 + 1))[:num_rows]
    path = tmp_path / "a.tsv"
    frame.to_csv(path, sep="\t", index=False, quoting=quoting)
    records, report = read(path)
    assert [dict(record.values) for record in records] == frame.to_dict("records")
    assert report.notes == ["cells are quoted as in CSV, and are read without the quotes"]
    texts = [row.text for row in open_texts(path).rows()]
    assert texts == frame["text"].tolist()


@pytest.mark.parametrize(
    "rows",
    [
        'text\tlabel\n"Go," he said.\tx\n"No."\ty\n',
        'text\tlabel\n"Go."\tx\n"No."\ty\n',
        '"\tlabel\n""\tx\n',
        '"Go home now."\n"No," he said.\n',
        'text\tlabel\n"a ""b"" c"\tx\na "b"\ty\n',
    ],
)
def test_quotes_of_a_text_stay_in_tsv(tmp_path, rows):
    _, *cells = [line.split("\t") for line in rows.splitlines()]
    records, report = read(write(tmp_path, "a.tsv", rows))
    assert [list(record.values.values()) for record in records] == cells
    assert len(report.notes) == ('""b""' in rows)


def test_cells_that_are_quoted_later_are_told(tmp_path, capsys):
    path = write(tmp_path, "a.tsv", "text\n" + "plain words\n" * 9000 + '"a ""b"""\n')
    records, report = read(path)
    assert records[-1].values["text"] == '"a ""b"""'
    (note,) = report.notes
    assert note.startswith("1 row looks quoted (first: ")
    assert note.endswith("TSV keeps quotes; to remove them use --format csv --delimiter tab")
    assert list(open_texts(path).rows())
    assert "1 row looks quoted" in capsys.readouterr().err


@settings(max_examples=40)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=8), st.data())
def test_broken_rows_cost_no_other(tmp_path_factory, rows, data):
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["text", "label"])
    rows = [(f"x{first}", second) for first, second in rows]  # "" would go on with the quote
    num_broken = 0
    for row in rows:
        if data.draw(st.booleans()):
            buffer.write(BROKEN + "\n")
            num_broken += 1
        writer.writerow(row)
    path = write(tmp_path_factory.mktemp("cells"), "a.csv", buffer.getvalue())
    found, report = read(path)
    assert [tuple(record.values.values()) for record in found] == rows
    assert (report.num_rows, report.num_broken) == (len(rows) + num_broken, num_broken)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_places_are_lines_whatever_ends_them(tmp_path, ending):
    content = ending.join(["text,label", '"a', 'b",1', "c,2", "d", "e,3"])
    found, report = read(write(tmp_path, "a.csv", content))
    assert [record.place.rpartition(", ")[2] for record in found] == ["line 2", "line 4", "line 6"]
    assert "line 5 has 1 cell " in report.first_broken[0]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_lone_return_is_a_part_of_its_cell(tmp_path, name):
    mark = {"a.csv": ",", "a.tsv": "\t"}[name]
    rows = [["te\rxt", "n"], ["\ra\r\rb", "1"], ["c\r", "2"], ["d", "e\r\rf"], ["g", "h\ri"]]
    for end in ("\n", "\r\n"):
        path = write(tmp_path, name, end.join(["x" + mark + "y", *map(mark.join, rows)]))
        assert [[*row.values()] for row in read_values(path)] == rows
        texts = [row.text for row in open_texts(path, TableSettings(text_column="x")).rows()]
        assert texts == [text for text, _ in rows]
    quoted = write(tmp_path, "b.csv", 'x,y\r\n"a\r\nb\rc",d\re\r\n')
    assert read_values(quoted) == [{"x": "a\r\nb\rc", "y": "d\re"}]


def test_columns_have_names_without_blanks_around_them(tmp_path):
    path = write(tmp_path, "a.csv", "  body, the label\t\n x ,y\nbody , the label\n")
    found, report = read(path)
    assert [record.values for record in found] == [{"body": " x ", "the label": "y"}]
    assert "line 3 has the names of the columns again" in report.first_broken[0]
    refuse(write(tmp_path, "b.csv", "a,b, a\n1,2,3\n"), "has the column a twice")
    assert read_values(path, header=False)[0] == {"1": "  body", "2": " the label\t"}


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t")])
def test_names_that_are_empty_at_the_end_of_the_header_are_no_columns(tmp_path, name, mark):
    lines = ["x,y,, ", "a,1,,", "b,2", "c,3, ", "d,4,,late", "e,5,,,"]
    path = write(tmp_path, name, "\n".join(lines).replace(",", mark))
    found, report = read(path)
    assert [[*record.values.values()] for record in found] == [["a", "1"], ["b", "2"], ["c", "3"]]
    assert "line 5 has 4 cells where there are 2 columns" in report.first_broken[0]
    assert "line 6 has 5 cells where there are 2 columns" in report.first_broken[1]
    only = write(tmp_path, name, "\n".join(["body,,", "a,,", "b,,"]).replace(",", mark))
    assert [row.text for row in open_texts(only).rows()] == ["a", "b"]
    within = write(tmp_path, name, "\n".join(["x,,y", "a,b,c"]).replace(",", mark))
    assert read_values(within) == [{"x": "a", "": "b", "y": "c"}]


@pytest.mark.parametrize("mark", [";", ",", "|", "\t", "^"])
def test_a_first_line_that_names_the_separator_for_excel_is_no_header(tmp_path, mark):
    content = "SEP=;\r\nx;y\r\na;1\r\n".replace(";", mark)
    path = write(tmp_path, "a.csv", content)
    assert read_values(path) == [{"x": "a", "y": "1"}]
    assert read(path)[0][0].place == f"{path}, line 3"
    assert read_values(path, delimiter=mark) == [{"x": "a", "y": "1"}]
    assert [*read_values(path, header=False)[0].values()] == ["x", "y"]
    assert open_records(write(tmp_path, "b.csv", f"sep={mark}\n")).columns is None
    tabbed = write(tmp_path, "a.tsv", "sep=\t\nx\ty\na\t1\n")
    assert read_values(tabbed) == [{"x": "a", "y": "1"}]


# The first lines of the files as they are distributed, by task.
HEADERS = {
    "SST-2": ("sentence\tlabel", "index\tsentence"),
    "MRPC": (
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        "index\t#1 ID\t#2 ID\t#1 String\t#2 String",
    ),
    "QQP": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "id\tquestion1\tquestion2"),
    "STS-B": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2",
    ),
    "MNLI": (
        "index\tpromptID\tpairID\tgenre\tsentence1_parse\tsentence1\tsentence2\tlabel1\tgold_label",
        "index\tpromptID\tpairID\tgenre\tsentence1_parse\tsentence1\tsentence2",
    ),
    "QNLI": ("index\tquestion\tsentence\tlabel", "index\tquestion\tsentence"),
    "RTE": ("index\tsentence1\tsentence2\tlabel", "index\tsentence1\tsentence2"),
    "WNLI": ("index\tsentence1\tsentence2\tlabel", "index\tsentence1\tsentence2"),
}


@pytest.mark.parametrize("task", HEADERS)
def test_columns_have_their_roles(tmp_path, task):
    train, test = HEADERS[task]
    suffix = "_matched" if task == "MNLI" else ""
    for name, header in (("train", train), (f"dev{suffix}", train), (f"test{suffix}", test)):
        cells = "\t".join(f"<{column}>" for column in header.split("\t"))
        write(tmp_path, f"{name}.tsv", f"{header}\n{cells}\n")
    layout = glue.LAYOUTS[task]
    pair = {"pair": layout.pair} if layout.pair else {}
    for split in ("train", "dev"):
        table = open_records(tmp_path, split=split)
        assert table.roles == {"text": layout.text, **pair, "label": layout.label}
    table = open_records(tmp_path, split="test")
    assert table.roles == {"text": layout.text, **pair}
    assert (table.format, table.name) == ("tsv", str(tmp_path / f"test{suffix}.tsv"))
    (record,), _ = read(tmp_path, split="test")
    assert record.values[layout.text] == f"<{layout.text}>"


def test_cola_has_no_header_but_in_test(tmp_path):
    assert {*HEADERS, "CoLA"} == set(glue.LAYOUTS)
    write(tmp_path, "train.tsv", "gj04\t1\t\tOur friends.\ngj04\t0\t*\tFriends our.\n")
    write(tmp_path, "test.tsv", "index\tsentence\n0\tBill.\n")
    table = open_records(tmp_path)
    assert table.roles == {"text": "4", "label": "2"}
    found, report = read(tmp_path)
    assert [record.values["2"] for record in found] == ["1", "0"]
    assert report.num_broken == 0
    assert open_records(tmp_path, split="test").roles == {"text": "sentence"}


def test_other_files_and_columns(tmp_path):
    refuse(tmp_path, r"has no train\.tsv, .*; it has no TSV file; name a file", MissingFileError)
    write(tmp_path, "dev_mismatched.tsv", HEADERS["MNLI"][0] + "\n")
    write(tmp_path, "readme.txt", "")
    refuse(tmp_path, r"has no train\.tsv, .*; it has dev_mismatched\.tsv; name", MissingFileError)
    assert open_records(tmp_path, split="dev_mismatched").roles["label"] == "gold_label"
    write(tmp_path, "train.tsv", "words\tclass\na\tb\n")
    assert open_records(tmp_path).roles == {}
    assert open_records(tmp_path).columns == ("words", "class")
    write(tmp_path, "train.tsv", "")
    assert open_records(tmp_path).columns is None
