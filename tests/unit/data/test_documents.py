"""Every kind of unusable input has its outcome: counted, named, and what can be kept is kept."""

import gzip
import io
import json
import random
import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from tests.closeness import close
from tests.unit.data.corpora import COMPRESS, DOCUMENTS, LONG, TEXT, read, write, write_parquet

from bertkit.base.errors import InputError
from bertkit.data.documents import open_corpus
from bertkit.data.problems import FAULTS, MAX_PLACES, ReadReport
from bertkit.data.sources import ReaderSettings, memory_source
from bertkit.data.tables.formats import lines

PARAGRAPH = "This docstring is a sentence of its own."


def test_a_file_that_vanishes_is_counted(folder):
    path = write(folder / "a.txt", TEXT)
    write(folder / "b.txt", TEXT)
    corpus = open_corpus([str(folder)], ReaderSettings())
    path.unlink()
    assert [document.lines for document in corpus.documents()] == DOCUMENTS
    assert corpus.report.counts == {"unreadable-file": 1}
    assert corpus.report.places["unreadable-file"] == ["in/a.txt (No such file or directory)"]


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.parquet", "a.xml", "a.txt.gz"])
def test_an_empty_file_is_counted_in_every_format(folder, name):
    documents, report = read(write(folder / name, b""))
    assert documents == []
    assert report.counts == {"empty-file": 1}
    assert report.places["empty-file"] == [f"in/{name}"]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.bz2", "a.txt.zst"])
def test_encodings_are_named_or_known_by_a_mark(folder, name):
    compress = COMPRESS.get(Path(name).suffix, bytes)
    text = "Größe\nläßt\n\nsich lösen\n"
    documents = [("Größe", "läßt"), ("sich lösen",)]
    for encoding in ("latin-1", "cp1252", "utf-16-le", "utf-8-sig"):
        path = write(folder / name, compress(text.encode(encoding)))
        assert read(path, encoding=encoding) == (documents, ReadReport())
    path = write(folder / name, compress(text.encode("utf-16")))
    assert read(path) == (documents, ReadReport())


def test_a_text_in_another_encoding_is_refused_and_named(folder):
    book = "Plain prose, line after line.\n" * 500 + "Ein König.\n" * 3
    path = write(folder / "a.txt", book.encode("latin-1"))
    message = (
        r"^in/a\.txt: 3 of 503 lines \(0\.6 %\) aren't UTF-8 and would lose characters, the first"
        r" at in/a\.txt:501, byte 6 \(0xF6\); name its encoding, such as --encoding latin-1"
    )
    with pytest.raises(InputError, match=message):
        read(path)
    assert read(path, encoding="latin-1")[1].counts == {}
    assert read(path, encoding="utf-8")[1].counts == {"invalid-utf8": 3}
    write(folder / "a.txt", "Привет всем\n".encode("cp1251") * 30)
    with pytest.raises(InputError, match=r"^in/a\.txt is text, but not in UTF-8"):
        read(path)


def test_many_small_files_in_another_encoding_are_refused(folder):
    for number in range(3):
        write(folder / f"{number}.jsonl", '{"text": "Schön."}\n'.encode("latin-1"))
    with pytest.raises(InputError, match=r"^the input: 3 of 3 lines .* at in/0\.jsonl:1, byte 14"):
        read(folder)


def test_many_lines_in_another_encoding_end_the_reading_early(folder):
    path = write(folder / "a.txt", "Eine Katze ist schön.\n".encode("latin-1") * 9000)
    with pytest.raises(InputError, match="100 of the first 100 lines"):
        read(path)


def test_a_file_that_isnt_in_the_named_encoding_is_refused(folder):
    path = write(folder / "a.txt", b"a\x81\n")
    with pytest.raises(InputError, match=r"in/a\.txt isn't in cp1252 .*0x81.*; name another"):
        read(path, encoding="cp1252")
    write(folder / "a.txt", b"\xff\xfea\0\0\xd8a\0")  # half a character of UTF-16
    assert read(path)[1].counts == {"damaged": 1}


def test_invalid_utf8_and_nul_are_put_right_and_counted_by_line(folder):
    content = b"fine\nb\xffd\n\nn\x00l\nboth \x00\xc3\n"
    documents, report = read(write(folder / "a.txt", content))
    assert documents == [("fine", "b\ufffdd"), ("nl", "both \ufffd")]
    assert report.counts == {"invalid-utf8": 2, "nul": 2}
    assert report.places["invalid-utf8"] == ["in/a.txt:2", "in/a.txt:5"]
    assert report.places["nul"] == ["in/a.txt:4", "in/a.txt:5"]


def test_jsonl_outcomes(folder):
    records = [
        {"text": "One.\nTwo."},
        {"body": "elsewhere"},
        {"text": 7},
        {"text": "n\0l"},
        {"text": " \n "},
        {"text": None},
        [1],
    ]
    lines = [json.dumps(record) for record in records]
    lines[1:1] = ["{broken", "", '{"text": "half \\ud83d of"}', "[" * 100_000]
    documents, report = read(write(folder / "a.jsonl", "\n".join(lines)))
    assert documents == [("One.", "Two."), ("half \ufffd of",), ("nl",)]
    assert report.counts == {
        "broken-json": 3,
        "invalid-utf8": 1,
        "missing-field": 2,
        "wrong-type": 1,
        "nul": 1,
        "empty-document": 1,
    }
    assert report.places["broken-json"] == ["in/a.jsonl:2", "in/a.jsonl:5", "in/a.jsonl:11"]
    assert report.places["missing-field"] == ["in/a.jsonl:6", "in/a.jsonl:10"]
    assert report.places["wrong-type"] == ["in/a.jsonl:7"]


@pytest.mark.parametrize(("suffix", "mark"), [("csv", ";"), ("tsv", "\t")])
def test_rows_of_a_table_are_documents(folder, suffix, mark):
    rows = ["n;body", "1;One.", "2", "3;", "4;Two.\u2028Three.", "5;Four\0."]
    path = write(folder / f"a.{suffix}", "\n".join(rows).replace(";", mark))
    documents, report = read(path, text_column="body")
    assert documents == [("One.",), ("Two.\u2028Three.",), ("Four.",)]
    assert report.counts == {"broken-json": 1, "empty-document": 1, "nul": 1}
    assert report.places["broken-json"] == [f"in/a.{suffix}:3"]
    documents, report = read(path)
    assert (documents, report.counts["missing-field"]) == ([], 4)
    path = write(folder / f"b.{suffix}", f'"a{mark}b\n' * 3)
    assert suffix == "tsv" or read(path)[1].counts == {"damaged": 1}


@pytest.mark.parametrize("num_bytes", [64, 65, 79, 80, 200])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_a_huge_record_is_skipped(folder, monkeypatch, end, num_bytes):
    monkeypatch.setattr(lines, "MAX_ROW_BYTES", 64)
    monkeypatch.setattr(lines, "PIECE_BYTES", 16)
    rows = [f'{{"text": "{text}"}}{end}' for text in ("a", "b" * (num_bytes - 12), "c")]
    documents, report = read(write(folder / "a.jsonl", "".join(rows)))
    if num_bytes == 64 and end != "\r\n":
        assert (len(documents), report) == (3, ReadReport())
        return
    assert documents == [("a",), ("c",)]
    assert report.counts == {"long-record": 1}
    assert report.places["long-record"] == ["in/a.jsonl:2"]


def standard_input(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_standard_input_in_every_format(folder, monkeypatch):
    standard_input(monkeypatch, TEXT.encode())
    corpus, amounts = open_corpus(["-"], ReaderSettings()), []
    corpus.advance = amounts.append
    assert [document.lines for document in corpus.documents()] == DOCUMENTS
    assert sum(amounts) == len(TEXT)
    standard_input(monkeypatch, b'{"text": "a"}\nx\n')
    documents, report = read("-", format="jsonl")
    assert documents == [("a",)]
    assert report.places["broken-json"] == ["standard input:2"]
    path = write_parquet(folder / "a.parquet", text=["One."])
    standard_input(monkeypatch, path.read_bytes())
    assert read("-", format="parquet")[0] == [("One.",)]


FAULTY = {
    "truncated": ("a.gz", gzip.compress(TEXT.encode())[:-9]),
    "damaged": ("a.gz", b"no gzip"),
    "unreadable-file": ("a.txt", None),
    "not-text": ("a.txt", bytes(100)),
    "invalid-utf8": ("a.txt", b"\xff"),
    "nul": ("a.txt", b"a\0"),
    "long-line": ("a.txt", b"a " * (1 << 20)),
    "long-record": ("a.jsonl", b"a" * (17 << 20)),
    "broken-json": ("a.jsonl", b"{"),
    "missing-field": ("a.jsonl", b"{}"),
    "wrong-type": ("a.jsonl", b'{"text": 1}'),
    "broken-xml": ("a.xml", b"<page>"),
    "broken-page": ("a.xml", b"<m><page><text>" + b"{{" * 301 + b"</text></page></m>"),
}


def test_each_fault_is_tested():
    assert FAULTY.keys() == FAULTS.keys()


@pytest.mark.parametrize("name", FAULTY)
def test_without_broken_rows_each_fault_is_refused_and_names_the_place(folder, name):
    file, content = FAULTY[name]
    path = folder / file
    if content is None:
        path.symlink_to("nothing")
    else:
        write(path, content)
    write(folder / "empty.txt", "")  # worth a note alone
    counts = read(folder)[1].counts
    assert counts[name] == 1
    assert counts.keys() == {name, "empty-file"}
    assert read(folder / "empty.txt", max_broken=0)[1].counts == {"empty-file": 1}
    with pytest.raises(InputError, match=rf"^in/{file}.*--max-broken 0 allows no"):
        read(folder, max_broken=0)


def test_a_share_of_the_rows_of_a_file_may_be_broken(folder):
    write(folder / "a.jsonl", '{"text": "fine"}\n' * 9 + "{\n")
    assert read(folder, max_broken=0.1)[1].counts["broken-json"] == 1
    with pytest.raises(InputError, match=r"1 of 10 rows broken, more than --max-broken 0\.05"):
        read(folder, max_broken=0.05)


def test_reports_merge_in_order_and_stay_small():
    first, second = ReadReport(), ReadReport()
    for number in range(4):
        first.add("nul", f"a:{number}")
        second.add("nul", f"b:{number}", 10)
    second.add("redirect", "c")
    first.merge(second)
    assert first.counts == {"nul": 44, "redirect": 1}
    assert first.places["nul"] == ["a:0", "a:1", "a:2", "a:3", "b:0"]
    assert len(first.places["nul"]) == MAX_PLACES
    assert TypeAdapter(ReadReport).validate_python(first.to_json()) == first
    lines = first.summary_lines()
    assert lines == [
        "lines or records with NUL characters: 44; removed (a:0, a:1, a:2, a:3, b:0, …)",
        "redirects: 1; skipped (c)",
    ]


def test_progress_adds_up_to_the_bytes_on_disk(folder):
    write(folder / "a.gz", gzip.compress(LONG.encode()))
    write(folder / "b.txt", LONG)
    write(folder / "c.zst", COMPRESS[".zst"](LONG.encode()))
    path = write_parquet(folder / "d.parquet", text=["a"] * 5000)
    write(folder / "e.parquet.gz", gzip.compress(path.read_bytes()))
    corpus = open_corpus([str(folder)], ReaderSettings())
    seen: list[int] = []
    corpus.advance = seen.append
    assert list(corpus.documents())
    assert sum(seen) == close(corpus.size_bytes, within=8)


def test_texts_in_memory_are_documents():
    source = memory_source(["One.\nTwo.", "", "Three.\0"])
    corpus = open_corpus([source], ReaderSettings())
    assert [(one.lines, one.group) for one in corpus.documents()] == [
        (("One.", "Two."), "texts:1"),
        (("Three.",), "texts:3"),
    ]
    assert corpus.report.counts == {"empty-document": 1, "nul": 1}
    assert corpus.size_bytes == 16
    assert memory_source(["One.", "Two."]).sha256 != memory_source(["One.T", "wo."]).sha256


def test_text_with_a_few_wrong_bytes_stays_text_and_noise_is_none(folder):
    line = "Il y avait dans la forêt une maison où personne n'habitait.\n"
    write(folder / "a.txt", line.encode("latin-1") * 20 + line.encode() * 100)
    write(folder / "b.txt", "ü" * 100_000)  # the sample ends within a character
    write(folder / "c.txt", b"plain\n" * 60_000 + b"\xff\n" * 5)
    noise = random.Random(1).randbytes(100_000)
    write(folder / "d.txt.gz", gzip.compress(noise))
    write(folder / "e.jsonl", noise)
    write(folder / "f.txt", TEXT.encode("utf-16")[2:] * 9)
    documents, report = read(folder)
    assert len(documents[0]) == 120
    assert report.counts == {"invalid-utf8": 25, "not-text": 3}


@pytest.mark.parametrize(
    "content", ["\ufeff" + TEXT, TEXT.replace("\n", "\r\n"), "\n\n " + TEXT.strip()]
)
def test_marks_line_ends_and_blank_lines_change_nothing(folder, content):
    documents, report = read(write(folder / "a.txt", content))
    assert documents == DOCUMENTS
    assert report.counts == {}
