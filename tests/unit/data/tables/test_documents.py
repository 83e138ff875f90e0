"""A file of plain text is one document; of others each row is."""

import gzip
import io
import sys

import pytest

from bertkit.base.errors import InputError, MissingFileError
from bertkit.data.tables import texts
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.texts import open_texts


def read(source, **settings: str):
    table = open_texts(source, TableSettings(**settings))
    return [row.text for row in table.documents()], table.num_undecodable


def test_a_text_file_is_one_document(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("\ufeffOne.\n\nTwo.\n", encoding="utf-8")
    assert read(path) == (["One.\n\nTwo.\n"], 0)
    path.write_bytes(b"")
    assert read(path) == ([""], 0)
    path.write_bytes("Öl und Wasser. ".encode() * 9 + b"\xff.")
    (found,), num_undecodable = read(path)
    assert (num_undecodable, found[-2:]) == (1, "\ufffd.")
    packed = tmp_path / "a.txt.gz"
    packed.write_bytes(gzip.compress("Zwei Hunde. Öl.".encode()))
    assert read(packed)[0] == ["Zwei Hunde. Öl."]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"One.\nTwo.")))
    assert read("-") == (["One.\nTwo."], 0)


def test_rows_are_documents(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"body": "One.\\nTwo."}\n{"body": "\\ud800 b"}\n{"body": ""}\n')
    assert read(path, text_column="body") == (["One.\nTwo.", "\ufffd b", ""], 1)


def test_what_is_no_text_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="isn't text"):
        read(path)
    path.write_bytes("ä b".encode("utf-16"))
    assert read(path)[0] == ["ä b"]
    with pytest.raises(MissingFileError, match="doesn't exist"):
        read(tmp_path / "none.txt")
    with pytest.raises(InputError, match="is a folder"):
        read(tmp_path)
    monkeypatch.setattr("bertkit.data.tables.decoder.MAX_ROW_BYTES", 10)
    monkeypatch.setattr(texts, "MAX_ROW_BYTES", 10)
    path.write_text("eleven char")
    with pytest.raises(InputError, match="has more than"):
        read(path)
