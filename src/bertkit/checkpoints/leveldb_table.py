"""The LevelDB table, the index of TensorFlow's bundles: sorted keys and values.

The file has blocks of entries, each with a CRC-32C, then a block of their locations, then a footer.
A key is stored as the number of bytes it shares with the previous key, and the rest.

Source: https://github.com/google/leveldb/blob/main/doc/table_format.md; TensorFlow's copy writes
only types 0 and 1, and masks its checksums as LevelDB does.
"""

from collections.abc import Iterator
from pathlib import Path

import google_crc32c

from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError, storage_errors
from bertkit.checkpoints.protobuf_wire import ByteReader

# BERT-Large with its optimizer state has 1,200 entries in 100 kB.
TABLE_LIMIT_BYTES = 2 << 20
MAX_ENTRIES = 20_000
MAX_KEY_BYTES = 512  # shared prefixes would otherwise let a small file contain gigabytes of keys
MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")
FOOTER_BYTES = 48
TRAILER_BYTES = 5  # type and checksum of a block
RESTART_BYTES = 4
STORED, SNAPPY = 0, 1


def mask_crc32c(crc: int) -> int:
    """Return a CRC-32C as LevelDB masks it, because a CRC over data with its own CRC is weak."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def is_table(path: Path) -> bool:
    """Whether a file ends with the magic number of a table."""
    with storage_errors(path, "read"), path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(size - len(MAGIC), 0))
        return stream.read(len(MAGIC)) == MAGIC


def read_table(path: Path) -> dict[bytes, bytes]:
    """Read all entries of an untrusted table, in key order."""
    with storage_errors(path, "read"), path.open("rb") as stream:
        data = stream.read(TABLE_LIMIT_BYTES + 1)
    if len(data) > TABLE_LIMIT_BYTES:
        raise UnsafeFileError(
            f"{path} has more than {TABLE_LIMIT_BYTES:,} bytes, and no model's index needs as many"
        )
    if len(data) < FOOTER_BYTES or not data.endswith(MAGIC):
        raise DamagedFileError(
            f"{path} isn't a whole index of a TensorFlow checkpoint: it must end with the 8 bytes"
            f" {MAGIC.hex()}, and ends with {data[-8:].hex() or 'nothing'}; fetch it again"
        )
    return _read_entries(data, path)


def _read_entries(data: bytes, path: Path) -> dict[bytes, bytes]:
    """Return the entries of all blocks, which the footer leads to."""
    footer = ByteReader(data[-FOOTER_BYTES : -len(MAGIC)], f"{path}, its footer,")
    metaindex_handle, index_handle = _take_handle(footer), _take_handle(footer)
    if any(footer.take(footer.num_left)):
        raise DamagedFileError(f"{path} is damaged: its footer has more than two places")
    # Only verified: it lists filters, and TensorFlow writes none.
    _read_block(data, metaindex_handle, path)
    entries: dict[bytes, bytes] = {}
    last_key = None
    end = 0
    for _, value in _iterate_block(_read_block(data, index_handle, path), path):
        handle = _take_handle(ByteReader(value, f"{path}, its list of blocks,"))
        if handle[0] < end:
            raise DamagedFileError(f"{path} is damaged: its blocks overlap or aren't in order")
        end = sum(handle) + TRAILER_BYTES
        for key, content in _iterate_block(_read_block(data, handle, path), path):
            if last_key is not None and key <= last_key:
                what = f"has {key!r} twice" if key == last_key else "isn't sorted"
                raise DamagedFileError(f"{path} is damaged: it {what}; fetch it again")
            last_key = key
            entries[key] = content
            if len(entries) > MAX_ENTRIES:
                raise UnsafeFileError(f"{path} has more than {MAX_ENTRIES:,} entries")
    return entries


def _take_handle(reader: ByteReader) -> tuple[int, int]:
    """Return where a block begins, and its length in bytes."""
    return reader.take_varint(), reader.take_varint()


def _read_block(data: bytes, handle: tuple[int, int], path: Path) -> bytes:
    """Return the content of a block after verifying its checksum."""
    start, num_bytes = handle
    end = start + num_bytes
    if end + TRAILER_BYTES > len(data) - FOOTER_BYTES:
        raise DamagedFileError(
            f"{path} is damaged: a block ends at byte {end:,} of {len(data):,}; fetch it again"
        )
    checksum = int.from_bytes(data[end + 1 : end + TRAILER_BYTES], "little")
    if mask_crc32c(google_crc32c.value(data[start : end + 1])) != checksum:
        raise DamagedFileError(
            f"{path} is damaged between bytes {start:,} and {end:,} (checksum differs); fetch it"
            " again"
        )
    if data[end] == SNAPPY:
        raise CheckpointError(
            f"{path} is compressed with snappy, which TensorFlow's Saver doesn't do; save the"
            " checkpoint again without compression"
        )
    if data[end] != STORED:
        raise DamagedFileError(f"{path} is damaged: a block is of the unknown type {data[end]}")
    return data[start:end]


def _iterate_block(block: bytes, path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a block in order."""
    num_restarts = int.from_bytes(block[-RESTART_BYTES:], "little")
    end = len(block) - RESTART_BYTES * (num_restarts + 1)
    if end < 0 or not num_restarts:
        raise DamagedFileError(
            f"{path} is damaged: a block of {len(block):,} bytes has {num_restarts:,} restarts"
        )
    reader = ByteReader(block[:end], f"{path}, a block,")
    key = b""
    while reader.num_left:
        num_shared, num_new = reader.take_varint(), reader.take_varint()
        num_value_bytes = reader.take_varint()
        if num_shared > len(key):
            raise DamagedFileError(
                f"{path} is damaged: a key shares {num_shared:,} bytes with one of {len(key):,}"
            )
        if num_shared + num_new > MAX_KEY_BYTES:
            raise UnsafeFileError(
                f"{path} has a name of {num_shared + num_new:,} bytes; at most {MAX_KEY_BYTES:,}"
            )
        key = key[:num_shared] + reader.take(num_new)
        yield key, bytes(reader.take(num_value_bytes))
