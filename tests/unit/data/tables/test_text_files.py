"""Files of texts are read as one: in order, each once, and what has no text is left out."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bertkit.base.errors import InputError, MissingFileError
from bertkit.data.tables.decoder import NotTextError
from bertkit.data.tables.settings import CorpusSettings
from bertkit.data.tables.text_files import open_text_files

WITH_IDS = CorpusSettings(id_column="key", text_column="body")
ROWS = [{"key": "x", "body": "one"}, {"key": "7", "body": "two"}]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "b.txt").write_text("b one\n\n")
    (folder / "a.txt.gz").write_bytes(gzip.compress(b"a one\n"))
    (folder / "deep" / "c.csv").write_text("text\nc one\n")
    (folder / ".hidden").write_text("no\n")
    (folder / "photo.jpg").write_bytes(b"\xff\xd8")
    (folder / "same.txt").hardlink_to(folder / "b.txt")
    (folder / "broken.txt").symlink_to("nothing")
    return folder


def read(files):
    return [(row.id, row.text) for row in files.rows()]


def test_a_folder_is_read_sorted_and_each_file_once(folder, capsys):
    files = open_text_files(folder)
    expected = [
        ("docs/a.txt.gz:1", "a one"),
        ("docs/b.txt:1", "b one"),
        ("docs/b.txt:2", ""),
        ("docs/deep/c.csv:1", "c one"),
    ]
    assert read(files) == read(files) == expected
    assert files.left_out.keys() == {"docs/photo.jpg", "docs/broken.txt"}
    assert capsys.readouterr().err.count("left out: ") == 2


def test_names_of_several_kinds_are_joined(folder):
    named = [folder / "deep", f"{folder}/*.txt.gz", str(folder / "b.txt")]
    assert [row.text for row in open_text_files(named).rows()] == ["c one", "a one", "b one", ""]
    with pytest.raises(NotTextError, match=r"photo\.jpg isn't text"):
        open_text_files([folder / "b.txt", folder / "photo.jpg"])
    with pytest.raises(MissingFileError, match="matches no file"):
        open_text_files([folder / "b.txt", folder / "none.txt"])
    with pytest.raises(InputError, match=r"has no file of texts: .*photo\.jpg isn't text"):
        open_text_files(f"{folder}/*.jp*[g]")


def test_a_change_of_any_file_is_another_identity(folder):
    files = open_text_files(folder)
    before = files.identity()
    assert open_text_files(folder).identity() == before
    (folder / "deep" / "c.csv").write_text("text\nc two\n")
    after = open_text_files(folder)
    assert after.size_bytes == files.size_bytes
    assert after.identity() != before


def test_ids_are_those_of_a_column_in_every_format(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "b.json").write_text(json.dumps(ROWS))
    (tmp_path / "c.csv").write_text("key,body\nx,one\n7,two\n")
    (tmp_path / "d.tsv").write_text("body\tkey\none\tx\ntwo\t7\n")
    pq.write_table(pa.table({"body": ["one", "two"], "key": ["x", "7"]}), tmp_path / "e.parquet")
    for path in sorted(tmp_path.iterdir()):
        assert read(open_text_files(path, WITH_IDS)) == [("x", "one"), ("7", "two")]
        only_other = CorpusSettings(id_column="key")
        assert read(open_text_files(path, only_other))[1] == ("7", "two")
        with pytest.raises(InputError, match=r"has no column id; name with --id-column one of"):
            read(open_text_files(path, CorpusSettings(id_column="id", text_column="body")))
    assert len(read(open_text_files(tmp_path, WITH_IDS))) == 10


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.txt",
            "one\n",
            "is text without columns, and has no ids; leave out --id-column",
        ),
        ("a.jsonl", '{"key": 1, "body": "a"}\n{"body": "b"}\n', "row 2 has no id in key; give it"),
        ("a.jsonl", '{"key": 1, "body": "a"}\n\n', "row 2 has no id in key; give it"),
        ("a.json", '[{"key": [1], "body": "a"}]', "row 1 has no id in key; give it"),
    ],
)
def test_a_text_without_an_id_is_refused(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read(open_text_files(path, WITH_IDS))
