"""JSON that others wrote is read strictly and in bounded memory; ours is valid."""

import os

import pytest

from bertkit.base.errors import DamagedFileError
from bertkit.base.json_files import parse_json, read_json, write_json


def test_json_survives_names_that_are_not_unicode(tmp_path):
    content = {"file": os.fsdecode(b"caf\xe9.txt"), "é": 1}
    write_json(tmp_path / "a.json", content)
    assert read_json(tmp_path / "a.json") == content
    assert "é" in (tmp_path / "a.json").read_text(encoding="utf-8")


def test_json_refuses_what_json_has_no_word_for(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"loss": float("nan")})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "isn't JSON"),
        (b"", "isn't JSON"),
        (b'"\xff"', "isn't UTF-8 at byte 1"),
        (b"[" * 100_000, "isn't JSON"),
        (b"9" * 10_000, "isn't JSON"),
        (b"[NaN]", r"isn't JSON \(NaN isn't a JSON number"),
        (b'{"a": -Infinity}', r"isn't JSON \(-Infinity is"),
        (b"1e400", r"isn't JSON \(1e400 is"),
        (b" " * 1_000_001, "more than 1,000,000 bytes"),
    ],
)
def test_foreign_json_is_refused_by_name(tmp_path, content, message):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=f"config.json {message}|config.json has {message}"):
        read_json(path, limit_bytes=1_000_000)


def test_more_commas_and_brackets_than_allowed_are_counted_in_the_message():
    assert parse_json('["a,b", {}]', "a", max_values=4) == ["a,b", {}]
    with pytest.raises(DamagedFileError, match="a has 4 commas and brackets; at most 3 are read"):
        parse_json('["a,b", {}]', "a", max_values=3)
