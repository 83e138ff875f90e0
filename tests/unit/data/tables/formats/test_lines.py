"""What a line is, in every format, and where a document ends."""

import json
import tracemalloc

import pytest
from tests.unit.data.corpora import read, write, write_parquet

from bertkit.base.errors import InputError
from bertkit.data import documents as corpus_rows
from bertkit.data.documents import SourceDecoder, open_corpus, read_text_lines
from bertkit.data.problems import ReadReport
from bertkit.data.sources import ReaderSettings
from bertkit.data.tables.decoder import open_content
from bertkit.data.tables.formats import lines
from bertkit.data.tables.texts import open_texts


def test_a_huge_line_is_cut_between_words_in_bounded_memory(folder):
    path = folder / "a.txt"
    num_words = 3_000_000
    with path.open("wb") as stream:
        for _ in range(num_words // 1000):
            stream.write(b"word123 " * 1000)
        stream.write(b"\nnext\n")
    corpus = open_corpus([str(path)], ReaderSettings())
    num_found, last = 0, ""
    tracemalloc.start()
    for document in corpus.documents():
        for line in document.lines:
            num_found += line.count("word123")
            last = line
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert num_found == num_words  # no word is cut in two
    assert last == "next"
    assert corpus.report.counts["long-line"] == 1
    assert corpus.report.places["long-line"] == ["in/a.txt:1"]
    assert peak < 16e6
    content = "a" + "é" * 1_500_000  # without white space: between characters
    (pieces,), report = read(write(path, content))
    assert ("".join(pieces), len(pieces) > 1) == (content, True)
    assert report.counts == {"long-line": 1}


@pytest.mark.parametrize(
    "content",
    [
        b"One.\n\0\nTwo.",
        b"One." + b" " * (3 << 20) + b"\nTwo.",
        b"One.\n" + b" " * (3 << 20) + b"Two.",
    ],
    ids=["NUL", "blanks behind", "blanks before"],
)
def test_only_a_blank_line_ends_a_document(folder, content):
    assert read(write(folder / "a.txt", content))[0] == [("One.", "Two.")]


@pytest.mark.parametrize("blank", [b"", b" " * (3 << 20), "\u3000".encode()])
def test_a_blank_line_ends_a_document_however_long(folder, blank):
    documents, report = read(write(folder / "a.txt", b"One.\n" + blank + b"\nTwo."))
    assert documents == [("One.",), ("Two.",)]
    assert report.counts == {}


@pytest.mark.parametrize("limit", [1 << 20, 5, 6, 7])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_is_one_wherever_reading_stops(folder, monkeypatch, end, limit):
    monkeypatch.setattr(corpus_rows, "LINE_LIMIT_BYTES", limit)
    path = write(folder / "a.txt", "One.\nTwo.\n\nTri.\nFor.\n".replace("\n", end))
    assert read(path)[0] == [("One.", "Two."), ("Tri.", "For.")]


def test_lines_are_the_same_in_every_format(folder):
    value = "A sentence\u2028goes\x0con\x85here\x1cand there.\rTwo.\r\nThree.\n"
    write(folder / "a.txt", value)
    write(folder / "b.jsonl", json.dumps({"text": value}))
    write_parquet(folder / "c.parquet", text=[value])
    lines = ("A sentence\u2028goes\x0con\x85here\x1cand there.", "Two.", "Three.")
    assert read(folder) == ([lines] * 3, ReadReport())


def test_a_long_document_is_cut_and_stays_in_one_group(folder, monkeypatch):
    monkeypatch.setattr(corpus_rows, "DOCUMENT_LIMIT_CHARACTERS", 20)
    path = write(folder / "a.txt", "0123456789\n" * 5 + "\nother\n")
    corpus = open_corpus([str(path)], ReaderSettings())
    documents = list(corpus.documents())
    assert [len(document.lines) for document in documents] == [3, 2, 1]
    assert [document.group[-1] for document in documents] == ["0", "0", "1"]
    assert corpus.report.counts == {"long-document": 1}
    assert corpus.report.places["long-document"] == ["in/a.txt:3"]


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"\r", b" \t\n", b"\r\r\n", b" " * 90 + b"\n"])
def test_many_blank_lines_are_passed_over_and_counted(folder, blank):
    content = b"One." + blank * 30_000 + b"Two.\xff"
    path = write(folder / "a.txt", content)
    decoder = SourceDecoder("in/a.txt")
    with open_content(path, decoder) as stream:
        assert list(read_text_lines(stream, decoder)) == ["One.", "", "Two.\ufffd"]
    assert decoder.problems.places["invalid-utf8"] == [f"in/a.txt:{len(content.splitlines()):,}"]


def test_many_blank_lines_are_passed_over_in_few_steps(folder, monkeypatch):
    path = write(folder / "a.jsonl", b'{"text": "One."}' + b"\n" * 30_000 + b"broken")
    looks = []
    take = lines.take_blank_lines
    monkeypatch.setattr(lines, "take_blank_lines", lambda stream: looks.append(1) or take(stream))
    documents, report = read(path)
    assert documents == [("One.",)]
    assert report.places["broken-json"] == ["in/a.jsonl:30,001"]
    assert len(looks) == 1
    path = write(folder / "a.txt", b"One." + b"\n" * 30_000 + b"Two.")
    with open_content(path, SourceDecoder("")) as stream:
        divided = lines.divide_at_returns(stream, 99, lambda _, line: (line, b""), skips_blank=True)
        assert [number for number, _ in divided] == [*range(1, 66), 30_001]


def read_rows(path):
    return [row.text for row in open_texts(path).rows()]


def test_a_lone_return_ends_a_line_of_a_corpus_and_is_part_of_a_row_of_a_table(folder):
    path = write(folder / "a.txt", "one\rtwo\nthree\r\n")
    assert read(path)[0] == [("one", "two", "three")]
    assert read_rows(path) == ["one\rtwo", "three"]
    path = write(folder / "b.txt", "one\rtwo\r\rthree\r")  # all lines end with it
    assert read(path)[0] == [("one", "two"), ("three",)]
    assert read_rows(path) == ["one", "two", "", "three"]


def test_lines_that_end_with_returns_are_divided_in_little_memory(folder):
    path = write(folder / "a.txt", b"ab\r" * (6 << 20))
    tracemalloc.start()
    assert next(open_texts(path).rows()).text == "ab"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 << 20  # 16 MiB were read, which have no LF


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_a_long_line_is_cut_in_a_corpus_and_refused_in_a_table(folder, monkeypatch, end):
    monkeypatch.setattr(corpus_rows, "LINE_LIMIT_BYTES", 100)
    monkeypatch.setattr(lines, "MAX_ROW_BYTES", 100)
    path = write(folder / "a.txt", f"one{end}{'word ' * 60}{end}two{end}")
    ((first, *pieces, last),), report = read(path)
    assert (first, " ".join(pieces).split(), last) == ("one", ["word"] * 60, "two")
    assert report.places["long-line"] == ["in/a.txt:2"]
    with pytest.raises(InputError, match=r"a\.txt, row 2 has more than 16 MiB, the limit for a r"):
        read_rows(path)
