"""The table that TensorFlow's index is: whole, sorted, and each byte of it under a checksum."""

import shutil
from pathlib import Path

import pytest
from tests.bundles import block, cut_blocks, flip_in_turn, table

from bertkit.base.errors import DamagedFileError, UnsafeFileError
from bertkit.checkpoints import leveldb_table
from bertkit.checkpoints.leveldb_table import MAX_KEY_BYTES, TABLE_LIMIT_BYTES, is_table, read_table

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "tensorflow" / "bert_model.ckpt.index"
PAIRS = {b"": b"header", b"bert/a": b"1", b"bert/ab": b"", b"bert/b": b"2" * 300, b"z": b"3"}


def read(folder: Path, data: bytes) -> dict[bytes, bytes]:
    (folder / "x.index").write_bytes(data)
    return read_table(folder / "x.index")


def with_block(content: bytes) -> bytes:
    return table([(b"~", content)])


def test_entries_come_back_in_order(tmp_path):
    assert list(read(tmp_path, table(cut_blocks(PAIRS))).items()) == list(PAIRS.items())
    many = {f"layer_{number:05d}/kernel".encode(): bytes(300) for number in range(2000)}
    data = table(cut_blocks(many))
    assert len(cut_blocks(many)) == 3
    assert read(tmp_path, data) == many
    assert read(tmp_path, table([])) == {}


def test_every_flipped_byte_of_tensorflows_own_index_is_found(tmp_path):
    path = Path(shutil.copy(GOLDEN, tmp_path))
    for _ in flip_in_turn(path):
        with pytest.raises(DamagedFileError):
            read_table(path)
    assert read_table(path) == read_table(GOLDEN)


@pytest.mark.parametrize("position", [12, 20, 39])
def test_what_fills_the_footer_must_be_zero(tmp_path, position):
    data = bytearray(table(cut_blocks(PAIRS)))
    data[position - 48] = 1
    with pytest.raises(DamagedFileError, match="its footer has more than two places"):
        read(tmp_path, bytes(data))


def test_the_longest_key_and_no_longer_one(tmp_path):
    key = b"k" * MAX_KEY_BYTES
    assert read(tmp_path, with_block(block([(key, b"")]))) == {key: b""}
    with pytest.raises(UnsafeFileError, match="has a name of 513 bytes; at most 512"):
        read(tmp_path, with_block(block([(key, b""), (key + b"k", b"")])))


def test_as_many_entries_as_allowed_and_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr(leveldb_table, "MAX_ENTRIES", len(PAIRS))
    assert read(tmp_path, table(cut_blocks(PAIRS))) == PAIRS
    with pytest.raises(UnsafeFileError, match=f"more than {len(PAIRS)} entries"):
        read(tmp_path, table(cut_blocks({**PAIRS, b"~": b""})))


def test_a_file_larger_than_any_index_isnt_read(tmp_path):
    with (tmp_path / "x.index").open("wb") as stream:
        stream.truncate(TABLE_LIMIT_BYTES + 1)
    with pytest.raises(UnsafeFileError, match="has more than 2,097,152 bytes"):
        read_table(tmp_path / "x.index")


def test_a_table_is_known_by_its_end(tmp_path):
    assert is_table(GOLDEN)
    for content in (b"", b"short", b"long enough for any footer" * 10):
        (tmp_path / "other").write_bytes(content)
        assert not is_table(tmp_path / "other")
