"""What inputs name: files, folders, globs; each once, in one order, under a name of its own."""

import os
import shutil
from pathlib import Path

import pytest

from bertkit.base.errors import InputError, MissingFileError, StorageError
from bertkit.data.documents import open_corpus
from bertkit.data.sources import ReaderSettings, find_sources


@pytest.fixture
def books(tmp_path):
    for name in ("books/b.txt", "books/a.txt", "books/sub.txt/c.jsonl.gz", "books/.hidden/d.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / "books/.secret.txt").write_text("x")
    return tmp_path / "books"


def names(*inputs: object) -> list[str]:
    return [source.name for source in find_sources([str(i) for i in inputs], ReaderSettings())]


def test_a_folder_is_read_whole_and_sorted_without_hidden_files(books):
    assert names(books) == ["books/a.txt", "books/b.txt", "books/sub.txt/c.jsonl.gz"]
    sources = find_sources([str(books)], ReaderSettings())
    assert [source.format for source in sources] == ["text", "text", "jsonl"]
    assert [source.size_bytes for source in sources] == [1, 1, 1]


def test_a_file_is_called_the_same_however_it_is_named(books, monkeypatch):
    assert names(books / "a.txt") == ["books/a.txt"]
    assert names(f"{books}/[ab].*") == ["books/a.txt", "books/b.txt"]
    assert names(f"{books}/**") == ["books/a.txt", "books/b.txt", "sub.txt/c.jsonl.gz"]
    monkeypatch.chdir(books)
    assert names("a.txt") == names("./a.txt") == names("../books/a.txt") == ["books/a.txt"]
    assert names(".")[:2] == names("*.txt")[:2] == ["books/a.txt", "books/b.txt"]
    monkeypatch.chdir(books / "sub.txt")
    assert names("..")[:1] == ["books/a.txt"]


def test_equal_names_of_different_files_are_told_apart(books, tmp_path):
    other = tmp_path / "other" / "books"
    other.mkdir(parents=True)
    (other / "a.txt").write_text("y")
    assert names(books / "a.txt", other / "a.txt") == ["books/a.txt", "books/a.txt (2)"]


def test_the_same_file_twice_is_an_error(books, tmp_path):
    with pytest.raises(InputError, match=r"read twice, as books/a\.txt and as books/a\.txt"):
        names(books, books / "a.txt")
    (tmp_path / "link.txt").symlink_to(books / "a.txt")
    with pytest.raises(InputError, match=r"link\.txt"):
        names(books, tmp_path / "link.txt")
    with pytest.raises(InputError, match="read twice"):
        names("-", "-")


def test_held_out_inputs_come_last_and_are_left_out_of_the_others(books, tmp_path):
    other = tmp_path / "emma.txt"
    other.write_text("x")
    held_out = [str(books / "a.txt"), str(other)]
    sources = find_sources([str(books)], ReaderSettings(), held_out)
    assert [(source.name, source.is_held_out) for source in sources] == [
        ("books/b.txt", False),
        ("books/sub.txt/c.jsonl.gz", False),
        ("books/a.txt", True),
        (f"{tmp_path.name}/emma.txt", True),
    ]
    with pytest.raises(InputError, match="read twice"):
        find_sources([str(books)], ReaderSettings(), [str(other), str(other)])


def test_linked_folders_are_followed_once(books, tmp_path):
    (books / "loop").symlink_to(books)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "e.txt").write_text("x")
    (books / "link").symlink_to(elsewhere)
    assert names(books) == [
        "books/a.txt",
        "books/b.txt",
        "books/link/e.txt",
        "books/sub.txt/c.jsonl.gz",
    ]


def test_a_file_that_one_input_has_twice_is_read_once_and_a_pipe_never(books):
    shutil.rmtree(books / "sub.txt")
    os.mkfifo(books / "pipe.txt")
    (books / "c.txt").symlink_to(books / "a.txt")
    for argument in (str(books), f"{books}/*.txt"):
        corpus = open_corpus([argument], ReaderSettings(format="text"))
        groups = [document.group for document in corpus.documents()]
        assert groups == ["books/a.txt#0", "books/b.txt#0"]
        assert corpus.report.counts == {"repeated-file": 1, "unreadable-file": 1}
        assert corpus.report.places["unreadable-file"] == ["books/pipe.txt (not a regular file)"]
        assert corpus.report.places["repeated-file"] == ["books/c.txt (it is books/a.txt)"]
        assert corpus.size_bytes == 2


@pytest.mark.parametrize(
    "name",
    ["a.png", "a.TXT.xz", "a.tar.gz", "a.pdf", "a.json", "a.XLSX", "a.html", "a.htm.gz"],
)
def test_a_name_tells_what_is_no_text(tmp_path, name):
    path = tmp_path / name
    path.write_text("[]")
    corpus = open_corpus([str(path)], ReaderSettings())
    assert list(corpus.documents()) == []
    assert corpus.report.counts == {"not-text": 1}
    advice = {"a.json": "--format jsonl", "a.html": "make text of it"}
    assert advice.get(name, "") in corpus.report.places["not-text"][0]
    (chosen,) = find_sources([str(path)], ReaderSettings(format="text"))
    assert chosen.refusal is None


def test_names_that_cannot_be_printed_are_escaped(tmp_path):
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "two\nlines.txt").write_text("x")
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_text("x")
    (folder / "ünï.txt").write_text("x")
    assert sorted(names(folder)) == ["odd/caf\\udce9.txt", "odd/two\\nlines.txt", "odd/ünï.txt"]


def test_a_folder_that_cannot_be_listed_is_an_error(books, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(StorageError, match=r"books can't be listed: Permission denied"):
        names(books)


def test_a_name_that_cannot_be_looked_up_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(StorageError, match="a can't be read: File name too long"):
        names(tmp_path / ("a" * 300))

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refuse)
    with pytest.raises(StorageError, match=r"a\.txt can't be read: Permission denied"):
        names(tmp_path / "a.txt")


@pytest.mark.parametrize("missing", ["nothing.txt", "*.nothing", "empty"])
def test_an_input_that_matches_nothing_is_an_error(tmp_path, missing):
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingFileError, match=missing.replace("*", r"\*")):
        names(tmp_path / missing)
    with pytest.raises(InputError, match="no input"):
        names()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", "text"),
        ("a.txt.gz", "text"),
        ("v1.2.XML.BZ2", "mediawiki"),
        ("a.ndjson", "jsonl"),
        ("a.parquet.zst", "parquet"),
        ("a.jsonl.bak", "text"),
    ],
)
def test_the_name_tells_the_format(tmp_path, name, expected):
    path = tmp_path / name
    path.touch()
    assert find_sources([str(path)], ReaderSettings())[0].format == expected
