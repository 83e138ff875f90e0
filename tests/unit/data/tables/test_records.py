"""Every format gives the same records; what can't be used is left out, counted and named."""

import hashlib
import io
import json
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.data.corpora import COMPRESS, pack_parquet
from tests.unit.data.tables.labeled import read, read_values, refuse, write

from bertkit.base.errors import InputError, MissingFileError
from bertkit.data.documents import JOINERS
from bertkit.data.sources import CorpusFormat
from bertkit.data.tables import formats, records
from bertkit.data.tables.decoder import RowDecoder
from bertkit.data.tables.formats import jsonl
from bertkit.data.tables.records import BrokenRowError, Record, open_records
from bertkit.data.tables.settings import RecordFormat, RecordSettings, TableFormat

ROWS = [("so, so", "bad"), ('ein "Wort"', "good"), ("", "bad"), (" ü\u2028\0 ", "good")]
COLUMNS = ("text", "label")
DICTS = [dict(zip(COLUMNS, cells, strict=True)) for cells in ROWS]
LINES = [",".join('"{}"'.format(cell.replace('"', '""')) for cell in cells) for cells in ROWS]


FILES = {
    "a.csv": ("text,label\n" + "\n".join(LINES)).encode(),
    "a.tsv": ("text\tlabel\r\n" + "".join("\t".join(cells) + "\r\n" for cells in ROWS)).encode(),
    "a.jsonl": "".join(json.dumps(values) + "\n" for values in DICTS).encode(),
    "a.parquet": pack_parquet(text=[text for text, _ in ROWS], label=[label for _, label in ROWS]),
}


@pytest.mark.parametrize("suffix", ["", *COMPRESS])
@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_records(tmp_path, name, suffix):
    content = COMPRESS[suffix](FILES[name]) if suffix else FILES[name]
    path = write(tmp_path, name + suffix, content)
    table = open_records(path)
    assert table.columns == COLUMNS
    assert (table.name, table.format, table.roles) == (str(path), name[2:], {})
    assert read_values(path) == DICTS
    found, report = read(path)
    first_place = {"a.parquet": "row 1", "a.jsonl": "line 1"}.get(name, "line 2")
    assert found[0].place == f"{path}, {first_place}"
    assert report.summary_lines() == []
    assert report.num_bytes > 0


def test_formats_and_endings_agree():
    tables, corpora = set(RecordFormat.__args__), set(CorpusFormat.__args__)
    assert tables | corpora == {"auto", *formats.FORMATS}
    assert corpora == {"auto", "parquet", *JOINERS}
    assert set(TableFormat.__args__) < tables
    assert set(formats.EXTENSIONS.values()) == set(formats.FORMATS) - {"squad"}


def test_columns_without_a_header_are_called_by_their_numbers(tmp_path):
    path = write(tmp_path, "a.tsv", "one\t0\ntwo\t1\n")
    assert read_values(path, header=False) == [{"1": "one", "2": "0"}, {"1": "two", "2": "1"}]
    assert [record.place for record in read(path, header=False)[0]] == [
        f"{path}, line 1",
        f"{path}, line 2",
    ]
    assert read_values(path) == [{"one": "two", "0": "1"}]
    assert read_values(write(tmp_path, "a.csv", '"a\nb",1\nc,2'), header=False) == [
        {"1": "a\nb", "2": "1"},
        {"1": "c", "2": "2"},
    ]


def test_a_header_again_is_no_record(tmp_path):
    path = write(tmp_path, "a.csv", b"text,label\na,x\ntext,label\nb,y\n")
    found, report = read(path)
    assert [record.values["text"] for record in found] == ["a", "b"]
    assert report.first_broken == [f"{path}, line 3 has the names of the columns again"]
    found, _ = read(path, header=False)
    assert len(found) == 4
    assert read_values(write(tmp_path, "one.csv", b"text\ntext\n")) == [{"text": "text"}]


def test_rows_that_are_ragged_are_left_out_and_named(tmp_path):
    path = write(tmp_path, "a.csv", "text,label\na,1\nb,b,1\n\nc\n\nd,2\n")
    found, report = read(path)
    assert [record.values["text"] for record in found] == ["a", "d"]
    assert [record.place for record in found] == [f"{path}, line 2", f"{path}, line 7"]
    assert (report.num_rows, report.num_broken) == (4, 2)
    assert report.first_broken[0].startswith(f"{path}, line 3 has 3 cells where there are 2 colu")
    assert report.first_broken[1].startswith(f"{path}, line 5 has 1 cell where there are 2 colum")
    assert read_values(write(tmp_path, "b.csv", "text\na\n\nb\n")) == [
        {"text": "a"},
        {"text": ""},
        {"text": "b"},
    ]


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ('["x"]', "a.jsonl, line 2 has an array where an object should be"),
        ("3", "a.jsonl, line 2 has a single value where an object"),
        ("null", "a.jsonl, line 2 has a single value where an object"),
        ('{"text": "x"', "a.jsonl, line 2 isn't JSON (Expecting"),
        ('{"a": 1, "a": 2}', "a.jsonl, line 2 isn't JSON (the key 'a' appears twice"),
        ("[" * 100_000, "a.jsonl, line 2 isn't JSON ("),
        ('{"a":' * 100_000, "a.jsonl, line 2 isn't JSON ("),
        ("9" * 5000, "a.jsonl, line 2 isn't JSON ("),
        ("x", "a.jsonl, line 2 isn't JSON"),
    ],
)
def test_a_line_that_is_no_object_is_left_out_and_named(tmp_path, line, match):
    path = write(tmp_path, "a.jsonl", f'{{"text": "a"}}\n{line}\n\n{{"text": "b"}}\n')
    found, report = read(path)
    assert [record.values for record in found] == [{"text": "a"}, {"text": "b"}]
    assert found[1].place.endswith("line 4")
    assert (report.num_rows, report.num_broken) == (3, 1)
    assert match in report.first_broken[0]


SPARSE = [{"text": "a"}, {"text": "b", "tag": "x"}, {"tag": "y", "note": "z"}]


@pytest.mark.parametrize("form", ["a.jsonl", "a.json", "rows"])
def test_columns_are_those_of_all_rows_with_keys_of_their_own(tmp_path, form):
    lines = [json.dumps(row) for row in SPARSE]
    content = f"[{', '.join(lines)}]" if form == "a.json" else "\n".join(lines)
    source = SPARSE if form == "rows" else write(tmp_path, form, content)
    assert open_records(source).columns == ("text", "tag", "note")
    assert read_values(source) == SPARSE


def test_the_columns_of_lines_are_those_of_the_first_thousands(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "MAX_FIRST_ROWS", 2)
    content = "\n".join(["3", *map(json.dumps, SPARSE)])
    path = write(tmp_path, "a.jsonl", content)
    assert open_records(path).columns == ("text", "tag")
    found, report = read(path)
    assert [record.values for record in found] == SPARSE
    assert (report.num_rows, report.num_broken, report.num_bytes) == (4, 1, len(content))
    monkeypatch.setattr(jsonl, "MAX_FIRST_BYTES", 1)
    assert open_records(path).columns == ("text",)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    found, report = read("-", format="jsonl")
    assert [record.values for record in found] == SPARSE
    assert (report.num_rows, report.num_broken, report.num_bytes) == (4, 1, len(content))


def test_json_too_large_or_too_deep_is_a_broken_row(tmp_path, monkeypatch):
    path = write(tmp_path, "a.jsonl", '{"a": ' + "[" * 600 + '"\\ud800"' + "]" * 600 + "}\n{}")
    limit = sys.getrecursionlimit()
    monkeypatch.setattr(RowDecoder, "replace_surrogates", dig)
    found, report = read(path)
    assert sys.getrecursionlimit() == limit
    assert len(found) == 1
    assert "line 1 is nested too deeply" in report.first_broken[0]
    path = write(tmp_path, "b.jsonl", "[" + "1," * (1 << 20) + "1]\n{}")
    assert (
        "line 1 has 1,048,577 commas and brackets; at most 1,048,576"
        in read(path)[1].first_broken[0]
    )


def dig(decoder: object, text: object) -> object:
    """Goes as deep as Python allows."""
    return dig(decoder, text)


def test_what_is_not_unicode_is_replaced_and_counted_once_a_row(tmp_path):
    raw = [b"a\xffb\xfe", b"good", b"\xe9t\xe9"]
    table = pa.table({"text": pa.array(raw).view(pa.string()), "n": [1, 2, 3]})
    pq.write_table(table, tmp_path / "a.parquet")
    write(tmp_path, "a.csv", b"text,n\n" + b"".join(b"%s,1\n" % text for text in raw))
    write(tmp_path, "a.tsv", b"text\tn\n" + b"".join(b"%s\t1\n" % text for text in raw))
    write(tmp_path, "a.jsonl", b"".join(b'{"text": "%s"}\n' % text for text in raw))
    for name in ("a.parquet", "a.csv", "a.tsv", "a.jsonl"):
        found, report = read(tmp_path / name)
        texts = [record.values["text"] for record in found]
        assert texts == ["a\ufffdb\ufffd", "good", "\ufffdt\ufffd"]
        assert report.num_undecodable == 2
        assert report.summary_lines() == [
            f"{name}: 2 of 3 rows (66.7 %) with invalid UTF-8, replaced by \ufffd"
        ]


def test_halves_of_characters_are_replaced_at_any_depth(tmp_path):
    line = '{"a\\ud83d": ["\\ud83d", {"b": "\\uDE00x"}, 1], "c": "\\ud83d\\ude00"}\n'
    found, report = read(write(tmp_path, "a.jsonl", line))
    emoji = "\N{GRINNING FACE}"
    assert found[0].values == {"a\ufffd": ["\ufffd", {"b": "\ufffdx"}, 1], "c": emoji}
    assert report.num_undecodable == 1


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.txt", "a.conll", "a.json"])
def test_a_file_without_rows_is_told_when_it_is_gathered(tmp_path, name):
    for content in (b"", b"\xef\xbb\xbf", b"\n\n" if name != "a.txt" else b""):
        table = open_records(write(tmp_path, name, content))
        with pytest.raises(InputError, match=rf"{name} has no rows; is it the right file"):
            table.read(str)


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.jsonl", bytes(range(256)) * 20, r"a\.jsonl isn't text: much of it is NUL"),
        ("a.json", b"\0" * 100, r"a\.json isn't text: much of it is NUL"),
        ("a.csv", b'"id;text"\n"1;x"\n', r"has one column, 'id;text'; name the separator of its"),
        ("a.csv", b"id;a|b\n1;x|y\n", r"has one column, 'id;a|b'; name the separator of its"),
        ("a.csv", b"a,b,a\n1,2,3\n", r"a\.csv has the column a twice; rename one of them"),
        ("a.csv", b'"a,b\n', r"a\.csv, line 1 isn't CSV"),
        ("a.csv.gz", b"no gzip at all", r"a\.csv\.gz isn't compressed as \.gz says"),
        ("a.parquet", FILES["a.parquet"][:-10], r"a\.parquet is damaged or cut short after row 0"),
        ("a.parquet", b"", r"a\.parquet is damaged or cut short after row 0"),
        ("a.xyz", b"", r"a\.xyz doesn't show its format; name it with --format: conll, csv, j"),
        ("a.zip", b"", r"a\.zip isn't text: unpack it first"),
        ("a.ods", b"PK", r"a\.ods isn't text: save it as CSV first"),
        ("a", b"", r"a doesn't show its format; name"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, name, content, match):
    refuse(write(tmp_path, name, content), match)


def test_what_is_no_file_is_refused(tmp_path):
    refuse(tmp_path / "no.csv", r"no\.csv doesn't exist", MissingFileError)
    os.mkfifo(tmp_path / "pipe.csv")
    refuse(
        tmp_path / "pipe.csv", r"pipe\.csv must be a file; the records of a pipe are read with -"
    )
    table = open_records(path := write(tmp_path, "a.csv", "a,b\n1,2\n"))
    path.unlink()
    assert len(list(table.records())) == 1  # of the file that was opened
    assert len(table.sha256) == 64
    with pytest.raises(MissingFileError, match=r"a\.csv doesn't exist"):
        list(table.records())


def test_what_is_cut_short_is_an_error_after_the_rows_that_came(tmp_path):
    content = "text,label\n" + "".join(f"text {number**7},1\n" for number in range(20_000))
    path = write(tmp_path, "a.csv.gz", COMPRESS[".gz"](content.encode())[:-2000])
    table = open_records(path)
    with pytest.raises(InputError, match=r"cut short after row [\d,]+ \(it ends too early\)"):
        list(table.records())
    assert table.report.num_rows > 1000
    packed = COMPRESS[".gz"](FILES["a.parquet"])
    refuse(write(tmp_path, "a.parquet.gz", packed[:-9]), r"damaged or cut short after row 0 \(")


def test_standard_input_is_read_once(monkeypatch):
    def give(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    give(b"one\ntwo")
    assert read_values("-") == [{"text": "one"}, {"text": "two"}]
    for name, content in FILES.items():
        give(content)
        table = open_records("-", RecordSettings(format=name[2:]))
        assert (table.name, table.columns) == ("standard input", COLUMNS)
        assert table.is_standard_input
        assert [record.values for record in table.records()] == DICTS
        with pytest.raises(InputError, match="standard input can be read once; write it to a fi"):
            list(table.records())
    give(b'x\n3\n{"a": "\xff"}\n[\n')
    found, report = read("-", format="jsonl")
    assert [record.values for record in found] == [{"a": "\ufffd"}]
    assert (report.num_rows, report.num_broken, report.num_undecodable) == (4, 3, 1)
    assert report.num_bytes == 17
    assert [message[16:22] for message in report.first_broken] == ["line 1", "line 2", "line 4"]
    monkeypatch.setattr(sys, "stdin", None)
    refuse("-", "there is no standard input; name a file of records")


def test_data_are_known_again_by_their_content(tmp_path):
    path = write(tmp_path, "a.csv", "a,b\n1,2\n")
    identity = open_records(path).identity
    sha256 = hashlib.sha256(b"a,b\n1,2\n").hexdigest()
    assert identity == {"name": "a.csv", "format": "csv", "sha256": sha256}
    path.write_text("a,b\n1,3\n")
    assert open_records(path).identity != identity


def parse(record: Record) -> int:
    number = record.values["n"]
    if number == "x":
        raise BrokenRowError(f"{record.place} is no number")
    return int(str(number))


def test_broken_rows_are_left_out_up_to_a_share(tmp_path):
    rows = "".join("x\n" if number % 100 == 99 else f"{number}\n" for number in range(1000))
    path = write(tmp_path, "a.csv", "n\n" + rows)
    table = open_records(path)
    table.report.name = "a.csv"
    examples, report = table.read(parse), table.report
    assert examples == [number for number in range(1000) if number % 100 != 99]
    assert (report.num_rows, report.num_broken) == (1000, 10)
    lines = report.summary_lines()
    assert lines[0] == "a.csv: 10 of 1,000 rows (1.0 %) broken and left out:"
    assert lines[1:] == [
        *(f"  {path}, line {number * 100 + 1} is no number" for number in range(1, 6)),
        "  …",
    ]
    path.write_text("n\nx\n" + rows)
    table = open_records(path)
    table.report.name = "a.csv"
    with pytest.raises(InputError) as caught:
        table.read(parse)
    message = str(caught.value)
    assert message.startswith(
        "a.csv: 11 of 1,001 rows (1.1 %) are broken, and at most 10 (1.0 %) may be: "
    )
    assert f"{path}, line 2 is no number; {path}, line 102 is no number" in message
    assert message.endswith(
        "line 402 is no number; …; correct them, or leave them out with --max-broken"
    )
    assert caught.value.flags == (("--max-broken", "0.02"),)
    assert "\n" not in message
    table = open_records(path, RecordSettings(max_broken=0.02))
    assert len(table.read(parse)) == 990


@pytest.mark.parametrize(("num_rows", "most"), [(305, 5), (50, 5), (49, 4), (9, 0), (700, 7)])
def test_a_few_broken_rows_are_left_out_unless_a_share_is_given(num_rows, most):
    def read_rows(num_broken: int, **settings: float) -> int:
        rows = [{"n": "x" if number < num_broken else number} for number in range(num_rows)]
        return len(open_records(rows, RecordSettings(**settings)).read(parse))

    assert read_rows(most) == num_rows - most
    with pytest.raises(InputError, match=f"and at most {most} .* may be"):
        read_rows(most + 1)
    share = 0.01
    if most > share * num_rows:
        with pytest.raises(InputError, match=r"and at most . \(1\.0 %\) may be") as caught:
            read_rows(most, max_broken=share)
        assert caught.value.flags == ()


def test_nothing_but_broken_rows_is_an_error_whatever_the_share(tmp_path):
    table = open_records(write(tmp_path, "a.csv", "n\nx\n"), RecordSettings(max_broken=1.0))
    with pytest.raises(
        InputError, match=r"1 of 1 rows \(100\.0 %\) are broken, .*line 2 is no num"
    ):
        table.read(parse)


def test_more_rows_than_memory_may_hold_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_BYTES", 60)
    for name, content in (
        ("a.csv", b"n\n" + b"1234567\n" * 9),
        ("a.jsonl", b'{"n": 1}\n' * 9),
        ("a.parquet", pack_parquet(n=list(range(9)))),
        ("a.conll", b"a\tO\n\n" * 60),
    ):
        path = write(tmp_path, name, content)
        with pytest.raises(
            InputError, match=rf"{name}, .* is beyond the 0 GiB that are held in mem"
        ):
            open_records(path).read(str)


def test_blank_lines_are_counted_as_bytes(tmp_path):
    content = '{"text": "a"}\n' + "\n" * 1000 + '{"text": "b"}\n'
    report = read(write(tmp_path, "a.jsonl", content))[1]
    assert (report.num_rows, report.num_bytes) == (2, len(content))
