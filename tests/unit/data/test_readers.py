"""Every kind of unusable input has its outcome: counted, named, and what can be kept is kept."""

import bz2
import gzip
import io
import json
import random
import sys
import tempfile
import tracemalloc
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from bertkit.base.errors import InputError, StorageError
from bertkit.data.decompression import COMPRESSIONS, unpack
from bertkit.data.readers import READERS, open_corpus, python_docs, text
from bertkit.data.readers.document import FAULTS, MAX_PLACES, OUTCOMES, ReadReport
from bertkit.data.readers.settings import ReaderSettings

TEXT = "First line.\nSecond line.\n\nThird line.\n"
DOCUMENTS = [("First line.", "Second line."), ("Third line.",)]
COMPRESS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
PARAGRAPH = "This docstring is a sentence of its own."
LONG = "".join(f"Sentence {number} of a text that fills pages.\n" for number in range(40_000))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "in"
    path.mkdir()
    return path


def read(path: Path | str, **settings: object):
    corpus = open_corpus([str(path)], ReaderSettings(**settings))
    return [document.lines for document in corpus.documents()], corpus.report


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def write_parquet(path: Path, **columns: list[object]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_documents_and_groups_of_plain_text(folder):
    corpus = open_corpus([str(write(folder / "a.txt", TEXT))], ReaderSettings())
    documents = list(corpus.documents())
    assert [document.lines for document in documents] == DOCUMENTS
    assert [document.group for document in documents] == ["in/a.txt#0", "in/a.txt#1"]
    assert corpus.report.counts == {}
    assert corpus.report.summary_lines() == []


@pytest.mark.parametrize(
    "content", ["\ufeff" + TEXT, TEXT.replace("\n", "\r\n"), "\n\n " + TEXT.strip()]
)
def test_marks_line_ends_and_blank_lines_change_nothing(folder, content):
    documents, report = read(write(folder / "a.txt", content))
    assert documents == DOCUMENTS
    assert report.counts == {}


def test_each_compression_is_tested():
    assert COMPRESS.keys() == COMPRESSIONS.keys()


@pytest.mark.parametrize("suffix", COMPRESS)
def test_each_compression_is_unpacked(folder, suffix):
    documents, report = read(write(folder / f"a.TXT{suffix}", COMPRESS[suffix](TEXT.encode())))
    assert documents == DOCUMENTS
    assert report.counts == {}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_several_frames_are_one_text(folder, suffix):
    head, tail = TEXT[:8].encode(), TEXT[8:].encode()
    content = COMPRESS[suffix](head) + COMPRESS[suffix](tail)
    assert read(write(folder / f"a{suffix}", content)) == (DOCUMENTS, ReadReport())


@pytest.mark.parametrize("suffix", COMPRESS)
def test_what_comes_before_a_missing_end_is_kept(folder, suffix):
    packed = COMPRESS[suffix](LONG.encode())
    documents, report = read(write(folder / f"a{suffix}", packed[: len(packed) * 3 // 4]))
    assert report.counts == {"truncated": 1}
    assert report.places["truncated"] == [f"in/a{suffix} (it ends too early)"]
    kept = "\n".join(documents[0])
    assert LONG.startswith(kept)
    assert len(kept) > len(LONG) // 4


@pytest.mark.parametrize("suffix", COMPRESS)
def test_what_comes_before_damage_is_kept(folder, suffix):
    good = COMPRESS[suffix](TEXT.encode())
    bad = bytearray(COMPRESS[suffix](LONG.encode()))
    bad[: len(bad) // 2] = bytes(len(bad) // 2) if suffix != ".gz" else b"\xff" * (len(bad) // 2)
    documents, report = read(write(folder / f"a{suffix}", bytes(bad)))
    assert documents == []
    assert report.counts == {"damaged": 1}
    assert report.places["damaged"][0].startswith(f"in/a{suffix} (")
    flipped = bytearray(good)
    flipped[-6] ^= 0xFF  # in each format a check of the content, or what it is made from
    _, report = read(write(folder / f"b{suffix}", bytes(flipped)))
    assert sum(report.counts.get(name, 0) for name in ("damaged", "truncated")) == 1


def test_a_file_that_vanishes_is_counted(folder):
    path = write(folder / "a.txt", TEXT)
    write(folder / "b.txt", TEXT)
    corpus = open_corpus([str(folder)], ReaderSettings())
    path.unlink()
    assert [document.lines for document in corpus.documents()] == DOCUMENTS
    assert corpus.report.counts == {"unreadable-file": 1}
    assert corpus.report.places["unreadable-file"] == ["in/a.txt (No such file or directory)"]


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.parquet", "a.xml", "a.txt.gz"])
def test_an_empty_file_is_counted_in_every_format(folder, name):
    documents, report = read(write(folder / name, b""))
    assert documents == []
    assert report.counts == {"empty-file": 1}
    assert report.places["empty-file"] == [f"in/{name}"]


def test_utf16_is_skipped(folder):
    documents, report = read(write(folder / "a.txt", TEXT.encode("utf-16")))
    assert documents == []
    assert report.counts == {"utf-16": 1}


def test_invalid_utf8_and_nul_are_put_right_and_counted_by_line(folder):
    content = b"fine\nb\xffd\n\nn\x00l\nboth \x00\xc3\n"
    documents, report = read(write(folder / "a.txt", content))
    assert documents == [("fine", "b\ufffdd"), ("nl", "both \ufffd")]
    assert report.counts == {"invalid-utf8": 2, "nul": 2}
    assert report.places["invalid-utf8"] == ["in/a.txt:2", "in/a.txt:5"]
    assert report.places["nul"] == ["in/a.txt:4", "in/a.txt:5"]


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


def test_a_huge_line_without_white_space_is_cut_between_characters(folder):
    content = "é" * 1_500_000
    documents, report = read(write(folder / "a.txt", "a" + content))
    assert "".join(documents[0]) == "a" + content
    assert len(documents[0]) > 1
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
    monkeypatch.setattr("bertkit.data.readers.lines.LINE_LIMIT_BYTES", limit)
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
    monkeypatch.setattr(text, "DOCUMENT_LIMIT_CHARACTERS", 20)
    path = write(folder / "a.txt", "0123456789\n" * 5 + "\nother\n")
    corpus = open_corpus([str(path)], ReaderSettings())
    documents = list(corpus.documents())
    assert [len(document.lines) for document in documents] == [3, 2, 1]
    assert [document.group[-1] for document in documents] == ["0", "0", "1"]
    assert corpus.report.counts == {"long-document": 1}
    assert corpus.report.places["long-document"] == ["in/a.txt:3"]


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


def test_a_huge_record_is_skipped(folder, monkeypatch):
    monkeypatch.setattr("bertkit.data.readers.jsonl.RECORD_LIMIT_BYTES", 64)
    content = '{"text": "a"}\n{"text": "' + "b" * 200 + '"}\n{"text": "c"}\n'
    documents, report = read(write(folder / "a.jsonl", content))
    assert documents == [("a",), ("c",)]
    assert report.counts == {"long-record": 1}
    assert report.places["long-record"] == ["in/a.jsonl:2"]


def test_another_field_is_read(folder):
    path = write(folder / "a.jsonl", '{"body": "Here."}\n')
    assert read(path, field="body")[0] == [("Here.",)]
    path = write_parquet(folder / "b.parquet", body=["There."])
    assert read(path, field="body")[0] == [("There.",)]


@pytest.mark.parametrize("suffix", ["", *COMPRESS])
def test_parquet_outcomes(folder, suffix):
    values = ["One.\nTwo.", None, " ", "n\0l"]
    path = write_parquet(folder / "a.parquet", text=values, other=[1, 2, 3, 4])
    if suffix:
        path = write(folder / f"a.parquet{suffix}", COMPRESS[suffix](path.read_bytes()))
    documents, report = read(path)
    assert documents == [("One.", "Two."), ("nl",)]
    assert report.counts == {"missing-field": 1, "empty-document": 1, "nul": 1}
    assert report.places["missing-field"] == [f"{'in/' + path.name}:2"]


def test_parquet_without_the_column_or_of_another_type(folder):
    path = write_parquet(folder / "a.parquet", number=[1, 2, 3])
    documents, report = read(path)
    assert (documents, report.counts) == ([], {"missing-field": 3})
    assert report.places["missing-field"] == ["in/a.parquet (all rows)"]
    documents, report = read(path, field="number")
    assert (documents, report.counts) == ([], {"wrong-type": 3})


def test_parquet_with_invalid_utf8_or_a_dictionary(folder):
    raw = pa.array([b"b\xffd"]).view(pa.string())
    pq.write_table(pa.table({"text": raw}), folder / "a.parquet")
    documents, report = read(folder / "a.parquet")
    assert (documents, report.counts) == ([("b\ufffdd",)], {"invalid-utf8": 1})
    pq.write_table(pa.table({"text": pa.array(["x y"]).dictionary_encode()}), folder / "b.parquet")
    assert read(folder / "b.parquet")[0] == [("x y",)]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1], pa.timestamp("ns")),
        pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
        pa.ListArray.from_arrays([0, 1], pa.array([b"b\xffd"]).view(pa.string())),
    ],
    ids=["time", "date", "list"],
)
def test_a_parquet_column_of_anything_but_text_is_never_converted(folder, column):
    pq.write_table(pa.table({"text": column}), folder / "a.parquet")
    documents, report = read(folder / "a.parquet")
    assert (documents, report.counts) == ([], {"wrong-type": 1})
    assert report.places["wrong-type"] == ["in/a.parquet (all rows)"]


@pytest.mark.parametrize("kind", ["large_string", "string_view", "binary", "binary_view", "null"])
def test_a_parquet_column_of_any_type_of_text_is_read(folder, kind):
    values = [None, None] if kind == "null" else ["One.", None]
    pq.write_table(pa.table({"text": pa.array(values, getattr(pa, kind)())}), folder / "a.parquet")
    documents, report = read(folder / "a.parquet")
    assert documents == [(value,) for value in values if value]
    assert report.counts == {"missing-field": values.count(None)}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_truncated_copy_of_parquet_is_counted_once(folder, suffix):
    packed = COMPRESS[suffix](write_parquet(folder / "a", text=["One."] * 1000).read_bytes())
    documents, report = read(write(folder / f"a.parquet{suffix}", packed[:-20]))
    assert (documents, report.counts) == ([], {"truncated": 1})


@pytest.mark.parametrize("cause", ["no folder", "full"])
def test_a_temporary_copy_that_cannot_be_written_is_no_fault_of_the_source(
    folder, monkeypatch, cause
):
    packed = gzip.compress(write_parquet(folder / "a", text=["One."]).read_bytes())
    path = write(folder / "a.parquet.gz", packed)
    if cause == "full":
        if not Path("/dev/full").exists():
            pytest.skip("this system has no device that is always full")
        monkeypatch.setattr(tempfile, "TemporaryFile", partial(Path("/dev/full").open, "w+b"))
    else:
        monkeypatch.setattr(tempfile, "tempdir", str(folder / "nowhere"))
    with pytest.raises(StorageError, match=r"copy of in/a\.parquet\.gz .* TMPDIR"):
        read(path)


@pytest.mark.parametrize("cut", [slice(0, -10), slice(10, None), slice(0, 3)])
def test_damaged_parquet_is_counted(folder, cut):
    path = write_parquet(folder / "a.parquet", text=["One."] * 1000)
    documents, report = read(write(path, path.read_bytes()[cut]))
    assert (documents, report.counts) == ([], {"damaged": 1})
    assert report.places["damaged"][0].startswith("in/a.parquet (")


def standard_input(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_standard_input_in_every_format(folder, monkeypatch):
    standard_input(monkeypatch, TEXT.encode())
    assert read("-")[0] == DOCUMENTS
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
    "utf-16": ("a.txt", TEXT.encode("utf-16")),
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
    elsewhere = {"unreadable-source"}  # of `python-docs:`
    assert FAULTY.keys() | elsewhere == FAULTS.keys()


@pytest.mark.parametrize("name", FAULTY)
def test_strict_refuses_each_fault_and_names_the_place(folder, name):
    file, content = FAULTY[name]
    path = folder / file
    if content is None:
        path.symlink_to("nothing")
    else:
        write(path, content)
    assert read(path)[1].counts[name] == 1
    with pytest.raises(InputError, match=rf"^in/{file}.*--strict refuses"):
        read(path, strict=True)


def test_strict_takes_what_is_only_worth_a_note(folder):
    write(folder / "a.txt", "")
    write(folder / "b.jsonl", '{"text": ""}')
    _, report = read(folder, strict=True)
    assert report.counts == {"empty-file": 1, "empty-document": 1}


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
    assert ReadReport.from_dict(first.to_dict()) == first
    lines = first.summary_lines()
    assert lines[0] == f"44 {FAULTS['nul']} (a:0, a:1, a:2, a:3, b:0, …)"
    assert lines[1] == f"1 {OUTCOMES['redirect']} (c)"


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
    assert sum(seen) == pytest.approx(corpus.size_bytes, abs=8)


TEXT_OF = {
    "text": b"One.\nTwo.\n",
    "jsonl": b'{"text": "One.\\nTwo."}',
    "mediawiki": b"<m><page><text>One.\nTwo.</text></page></m>",
}


@pytest.mark.parametrize("name", READERS)
def test_every_reader_takes_its_source_by_name(folder, monkeypatch, name):
    if name == "python-docs":
        module = python_docs.Module("a", "a.py", write(folder / "a.py", f'"""{PARAGRAPH}"""'))
        monkeypatch.setattr(python_docs, "find_modules", lambda: [module])
        monkeypatch.setattr(python_docs, "read_topics", lambda report: {})
        assert read("python-docs:") == ([(PARAGRAPH,)], ReadReport())
        return
    path = folder / "any.name"
    if name == "parquet":
        write_parquet(path, text=["One.\nTwo."])
    else:
        write(path, TEXT_OF[name])
    assert read(path, format=name) == ([("One.", "Two.")], ReadReport())


def test_noise_is_no_text(folder):
    noise = random.Random(1).randbytes(100_000)
    write(folder / "a.txt", noise)
    write(folder / "b.txt.gz", gzip.compress(noise))
    write(folder / "c.jsonl", noise)
    write(folder / "d.txt", TEXT.encode("utf-16")[2:] * 9)
    assert read(folder)[1].counts == {"not-text": 4}


def test_text_with_a_few_wrong_bytes_stays_text(folder):
    line = "Il y avait dans la forêt une maison où personne n'habitait.\n"
    write(folder / "a.txt", (line * 2000).encode("latin-1"))
    write(folder / "b.txt", "ü" * 100_000)  # the sample ends within a character
    documents, report = read(folder)
    assert len(documents[0]) == 2000
    assert report.counts == {"invalid-utf8": 2000}


def test_a_zstandard_bomb_takes_bounded_memory():
    bomb = io.BytesIO(zstandard.ZstdCompressor().compress(bytes(256 << 20)))
    stream = unpack(bomb, ".zst", lambda name, cause: pytest.fail(cause))
    num_bytes = 0
    tracemalloc.start()
    while content := stream.read(1 << 20):
        num_bytes += len(content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert num_bytes == 256 << 20
    assert peak < 100 << 20
