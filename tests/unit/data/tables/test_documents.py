"""A file of plain text is one document; of others each row is."""

import gzip
import io
import sys

import pytest

from bertkit.base.errors import InputError, MissingFileError
from bertkit.data.tables import texts
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.texts import WholeText, read_documents


def test_a_text_file_is_one_document(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("\ufeffOne.\n\nTwo.\n", encoding="utf-8")
    assert list(read_documents(path)) == [WholeText(str(path), None, "One.\n\nTwo.\n", False)]
    path.write_bytes(b"")
    assert [document.text for document in read_documents(path)] == [""]
    path.write_bytes("Öl und Wasser. ".encode() * 9 + b"\xff.")
    (found,) = read_documents(path)
    assert (found.is_undecodable, found.text[-2:]) == (True, "\ufffd.")
    packed = tmp_path / "a.txt.gz"
    packed.write_bytes(gzip.compress("Zwei Hunde. Öl.".encode()))
    assert [document.text for document in read_documents(packed)] == ["Zwei Hunde. Öl."]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"One.\nTwo.")))
    assert list(read_documents("-")) == [WholeText("standard input", None, "One.\nTwo.", False)]


def test_rows_are_documents(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"body": "One.\\nTwo."}\n{"body": "\\ud800 b"}\n{"body": ""}\n')
    found = list(read_documents(path, TableSettings(text_column="body")))
    assert [(one.row, one.text, one.is_undecodable) for one in found] == [
        (0, "One.\nTwo.", False),
        (1, "\ufffd b", True),
        (2, "", False),
    ]


def test_what_is_no_text_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="isn't text"):
        list(read_documents(path))
    path.write_bytes("ä b".encode("utf-16"))
    assert [one.text for one in read_documents(path)] == ["ä b"]
    with pytest.raises(MissingFileError, match="doesn't exist"):
        list(read_documents(tmp_path / "none.txt"))
    with pytest.raises(InputError, match="is a folder"):
        list(read_documents(tmp_path))
    monkeypatch.setattr("bertkit.data.tables.decoder.MAX_ROW_BYTES", 10)
    monkeypatch.setattr(texts, "MAX_ROW_BYTES", 10)
    path.write_text("eleven char")
    with pytest.raises(InputError, match="has more than"):
        list(read_documents(path))
