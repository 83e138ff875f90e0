"""Sealed JSON gives back what was written, or says that it was altered."""

import hashlib
import json
import os
import zlib

import pytest

from bertkit.base.checksummed_json import (
    add_row_checksum,
    read_checksummed_json,
    verify_row,
    write_checksummed_json,
)
from bertkit.base.errors import DamagedFileError

CONTENT = {"name": "Käse\udcff", "counts": [1, 2.5, None], "inner": {"sha256": "0" * 64, "x": {}}}


def test_what_was_written_is_read_and_others_can_read_it(tmp_path):
    path = tmp_path / "document.json"
    record = write_checksummed_json(path, CONTENT)
    assert read_checksummed_json(path) == CONTENT
    plain = json.loads(path.read_bytes())
    assert len(plain.pop("sha256")) == 64
    assert plain == CONTENT
    assert record.size_bytes == path.stat().st_size


def test_every_flipped_bit_and_every_cut_is_found(tmp_path):
    path = tmp_path / "document.json"
    write_checksummed_json(path, CONTENT)
    whole = path.read_bytes()
    for place in range(len(whole)):
        for bit in range(8):
            content = bytearray(whole)
            content[place] ^= 1 << bit
            path.write_bytes(content)
            with pytest.raises(DamagedFileError, match=r"document\.json"):
                read_checksummed_json(path)
        path.write_bytes(whole[:place])
        with pytest.raises(DamagedFileError, match=r"document\.json (doesn't end|isn't UTF-8)"):
            read_checksummed_json(path)


def test_a_document_without_a_seal_is_said_to_be_older(tmp_path):
    (tmp_path / "old.json").write_text('{"format_version": 1}\n')
    with pytest.raises(DamagedFileError, match=r"old\.json.*written by an older bertkit"):
        read_checksummed_json(tmp_path / "old.json")


@pytest.mark.parametrize("body", ["{not json", '{"a": ' + "[" * 100_000, '{"a": ' + "9" * 10_000])
def test_what_is_sealed_and_no_json_is_refused(tmp_path, body):
    path = tmp_path / "document.json"
    path.write_text(body + f',\n  "sha256": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n')
    with pytest.raises(DamagedFileError, match=r"document\.json isn't JSON"):
        read_checksummed_json(path)
    with pytest.raises(ValueError, match=r"JSON|property name|Exceeds the limit"):
        verify_row(f'{body}, "crc32": "{zlib.crc32(body.encode()):08x}"}}'.encode())


def test_a_document_is_not_awaited_from_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(DamagedFileError, match=r"pipe\.json must be a file"):
        read_checksummed_json(tmp_path / "pipe.json")


def test_a_row_comes_back_and_every_flipped_bit_in_it_is_found():
    row = {"event": "step", "step": 3, "loss": 0.25, "crc32s": "ä"}
    line = add_row_checksum(row).encode()
    assert verify_row(line) == row
    assert list(json.loads(line))[:-1] == list(row)
    for place in range(len(line)):
        for bit in range(8):
            content = bytearray(line)
            content[place] ^= 1 << bit
            with pytest.raises(ValueError, match="altered"):
                verify_row(bytes(content))
    with pytest.raises(ValueError, match="older bertkit"):
        verify_row(b'{"event": "step", "step": 3}')
