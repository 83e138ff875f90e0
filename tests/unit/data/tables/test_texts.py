"""Row n of a file is text n, whatever stands in it; what isn't a text is named by its row."""

import csv
import gzip
import io
import json
import os
import random
import sys
import threading
from pathlib import Path

import pytest
from tests.unit.data.corpora import COMPRESS, pack_parquet
from tests.unit.data.tables.labeled import write

from bertkit.base.errors import BertkitError, InputError, MissingFileError, StorageError
from bertkit.data.tables import decoder
from bertkit.data.tables.decoder import MAX_ROW_BYTES
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.texts import open_texts

TEXTS = ["Erst.", "", "zwei, drei", 'ein "Wort"', "n\0l", "ü\u2028x", " z "]
JSONL = "".join(json.dumps({"id": 1, "text": text}) + "\n" for text in TEXTS)


def write_csv(texts: list[str], **options: object) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, **options).writerows([["id", "text"], *((1, text) for text in texts)])
    return buffer.getvalue().encode()


FILES = {
    "a.txt": "\n".join(TEXTS).encode(),
    "a.log": "\r\n".join(TEXTS).encode() + b"\r\n",
    "a": "\r".join(TEXTS).encode() + b"\r",
    "a.jsonl": JSONL.encode(),
    "a.ndjson": "\n".join(json.dumps(text) for text in TEXTS).encode(),
    "a.csv": write_csv(TEXTS),
    "a.tsv": b"id\ttext\n" + "".join(f"1\t{text}\n" for text in TEXTS).encode(),
    "a.parquet": pack_parquet(id=[1] * len(TEXTS), text=TEXTS),
}


def read(path: Path | str, **settings: str) -> list[str]:
    return [row.text for row in open_texts(path, TableSettings(**settings)).rows()]


def refuse(path: Path | str, match: str, error: type[BertkitError] = InputError, **settings: str):
    with pytest.raises(error, match=match) as caught:
        read(path, **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", ["", *COMPRESS])
@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_texts(tmp_path, name, suffix):
    content = COMPRESS[suffix](FILES[name]) if suffix else FILES[name]
    table = open_texts(write(tmp_path, name + suffix, content))
    rows = list(table.rows())
    assert [row.text for row in rows] == TEXTS
    assert table.num_undecodable == 0
    told, size = sum(row.num_bytes for row in rows), len(content)
    assert table.size_bytes == size
    assert told == size if "parquet" not in name else size - len(TEXTS) < told <= size


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.tsv"])
def test_an_empty_file_has_no_rows_and_a_byte_order_mark_is_none_of_the_text(tmp_path, name):
    assert read(write(tmp_path, name, b"")) == []
    assert read(write(tmp_path, f"b{name}", b"\xef\xbb\xbf" + FILES[name])) == TEXTS


def test_blank_lines_and_nulls_are_empty_texts(tmp_path):
    assert read(write(tmp_path, "a.txt", b"\n\na\n\n")) == ["", "", "a", ""]
    lines = b'{"text": "a"}\n\n{"text": null}\n \nnull\n""\n'
    assert read(write(tmp_path, "a.jsonl", lines)) == ["a", "", "", "", "", ""]
    assert read(write(tmp_path, "a.csv", b'line\na\n\n""\nb\n')) == ["a", "", "", "b"]
    assert read(write(tmp_path, "a.parquet", pack_parquet(t=["a", None, ""]))) == ["a", "", ""]


def test_other_fields_may_be_odd(tmp_path):
    content = b'{"text": "a", "n": 1, "n": NaN}\n{"n": Infinity, "text": "b"}\n{"text": NaN}\n'
    assert read(write(tmp_path, "a.jsonl", content)) == ["a", "b", ""]


def test_the_field_is_the_only_one_or_text_or_the_named_one(tmp_path):
    two = {
        "a.csv": b"id,body\n1,x\n",
        "a.tsv": b"id\tbody\n1\tx\n",
        "a.jsonl": b'{"id": "1", "body": "x"}\n',
        "a.parquet": pack_parquet(id=[1], body=["x"]),
    }
    for name, content in two.items():
        path = write(tmp_path, name, content)
        assert read(path, text_column="body") == ["x"]
        refuse(path, rf"{name} has the columns id, body, and none is named text; name the one")
        refuse(
            path, r"has no column bode; name with --text-column one of id, body", text_column="bode"
        )
    assert read(write(tmp_path, "b.jsonl", b'{"title": "x"}\n{"title": "y", "a": 1}')) == ["x", "y"]
    for name, content in (("c.jsonl", b"%s\n%s"), ("c.json", b"[%s, %s]")):
        path = write(tmp_path, name, content % (b'{"title": "x"}', b'{"title": "y", "text": "z"}'))
        refuse(path, r"row 2 has a field text, and the first row has only title; name the one")
        assert read(path, text_column="title") == ["x", "y"]
    refuse(write(tmp_path, "b.csv", b"text,a,text\n1,2,3\n"), r"has the column text twice")
    many = ",".join(f"column-{number}" for number in range(30)).encode()
    refuse(write(tmp_path, "c.csv", many), r"column-9 and 20 more, and none")


@pytest.mark.parametrize(
    ("line", "match"),
    [
        (b'{"text": 3}', r"a\.jsonl, row 2 has a number where a text should be"),
        (b'{"text": ["x"]}', r"row 2 has an array where"),
        (b"true", r"row 2 has true or false where"),
        (b'{"text": {}}', r"row 2 has an object where"),
        (b'{"body": "x", "n": 1}', r"row 2 has no field text; it has body, n"),
        (b"{}", r"row 2 has no field text; it is empty"),
        (b'{"text": "x"', r"row 2 isn't JSON \(Expecting"),
    ],
)
def test_a_line_that_is_no_text_is_named(tmp_path, line, match):
    refuse(write(tmp_path, "a.jsonl", b'{"text": "fine"}\n' + line + b'\n"more"\n'), match)


def test_a_record_with_more_or_fewer_cells_is_named(tmp_path):
    refuse(
        write(tmp_path, "a.csv", b"a,text\n1,x\n2\n"),
        r"a\.csv, row 2 has 1 cell where there are 2 col",
    )
    refuse(
        write(tmp_path, "b.csv", b"text\nx\ny, z\n"), r"row 2 has 2 cells where there are 1 column"
    )
    refuse(write(tmp_path, "c.csv", b"a,text\n1,x\n\n2,y\n"), r"row 2 has 1 cell ")
    refuse(write(tmp_path, "a.tsv", b"a\ttext\n1\n"), r"row 1 has 1 cell where there are 2 columns")


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.tsv"])
def test_a_row_without_end_is_refused_before_it_fills_the_memory(name, monkeypatch):
    class Endless(io.RawIOBase):
        num_read = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:
            buffer[:] = b"x" * len(buffer)
            self.num_read += len(buffer)
            return len(buffer)

    monkeypatch.setattr(decoder, "MAX_ROW_BYTES", 1 << 20)
    monkeypatch.setattr("bertkit.data.tables.formats.lines.MAX_ROW_BYTES", 1 << 20)
    endless = Endless()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(endless)))
    kinds = {"a.txt": "text", "a.jsonl": "jsonl", "a.csv": "csv", "a.tsv": "tsv"}
    refuse("-", r"standard input, row 1 has more than 1 MiB", format=kinds[name])
    assert endless.num_read < 4 << 20


def test_a_long_row_is_read_and_one_byte_more_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(decoder, "MAX_ROW_BYTES", 1000)
    monkeypatch.setattr("bertkit.data.tables.formats.lines.MAX_ROW_BYTES", 1000)
    assert read(write(tmp_path, "a.txt", b"x" * 999 + b"\ny" * 2)) == ["x" * 999, "y", "y"]
    refuse(write(tmp_path, "b.txt", b"y\n" + b"x" * 1001), r"b\.txt, row 2 has more than")
    monkeypatch.setattr("bertkit.data.tables.formats.parquet.MAX_ROW_BYTES", 1000)
    refuse(write(tmp_path, "a.parquet", pack_parquet(text=["x" * 1001])), r"row 1 has more than")
    assert MAX_ROW_BYTES == 16 << 20


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (FILES["a.parquet"][:-10], r"a\.parquet is damaged or cut short after row 0"),
        (b"", r"damaged or cut short after row 0"),
        (b"text\n" * 100, r"damaged or cut short after row 0"),
        (pack_parquet(text=[1, 2]), r"the column text holds int64 where text should be"),
        (pack_parquet(text=[["x"]]), r"the column text holds list<"),
    ],
)
def test_parquet_that_is_no_table_of_texts(tmp_path, content, match):
    refuse(write(tmp_path, "a.parquet", content), match)


def test_what_is_no_text_is_refused(tmp_path):
    refuse(
        write(tmp_path, "b.txt", random.Random(0).randbytes(5000)),
        r"b\.txt isn't text: much of it is NUL",
    )
    refuse(write(tmp_path, "a.zip", b"PK"), r"a\.zip isn't text: unpack it first")
    refuse(write(tmp_path, "a.ods", b"PK"), r"a\.ods isn't text: save it as CSV first")
    refuse(write(tmp_path, "a.json", b'{"a": 1}'), r"an object with a, and rows are expected")
    assert read(write(tmp_path, "b.json", b'"x"'), format="jsonl") == ["x"]
    refuse(tmp_path, r"is a folder; name one file of texts")
    refuse(tmp_path / "no.txt", r"no\.txt doesn't exist", MissingFileError)
    path = write(tmp_path, "c.txt", b"a")
    table = open_texts(path)
    path.unlink()
    with pytest.raises(MissingFileError, match=r"c\.txt doesn't exist"):
        list(table.rows())
    with pytest.raises(StorageError, match=r"can't be read: File name too long"):
        open_texts("x" * 5000)


def test_standard_input_and_pipes_are_read_once(tmp_path, monkeypatch):
    def give(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    give(FILES["a.txt"])
    table = open_texts("-")
    assert [row.text for row in table.rows()] == TEXTS
    assert (table.identity(), table.size_bytes) == (None, None)
    give(FILES["a.csv"])
    assert read("-", format="csv", text_column="text") == TEXTS
    give(FILES["a.parquet"])
    assert read("-", format="parquet") == TEXTS
    monkeypatch.setattr(sys, "stdin", None)
    refuse("-", "there is no standard input; name a file of texts")
    refuse("-", "there is no standard input; name a file of texts", format="parquet")
    pipe = tmp_path / "pipe.txt.gz"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(FILES["a.txt"]),))
    writer.start()
    table = open_texts(pipe)
    assert table.identity() is None
    assert [row.text for row in table.rows()] == TEXTS
    writer.join()


def test_the_same_input_is_known_again_and_another_one_is_not(tmp_path):
    path = write(tmp_path, "a.txt", b"one\ntwo\n")
    identity = open_texts(path).identity()
    assert open_texts(path).identity() == identity
    assert json.loads(json.dumps(identity)) == identity
    changed_ns = path.stat().st_mtime_ns
    os.utime(path, ns=(changed_ns, changed_ns + 1))
    assert open_texts(path).identity() != identity
    os.utime(path, ns=(changed_ns, changed_ns))
    assert open_texts(path).identity() == identity
    assert open_texts(path, TableSettings(format="csv")).identity() != identity
    path.write_bytes(b"one\nTWO\n")
    os.utime(path, ns=(changed_ns, changed_ns))
    assert open_texts(path).identity() != identity
