"""TensorFlow's bundles of tensors: an index, which is a LevelDB table, and the data files.

Source: tensorflow/core/util/tensor_bundle and tensorflow/core/protobuf/tensor_bundle.proto.
"""

import math
from collections.abc import Mapping
from functools import partial
from mmap import ACCESS_COPY, mmap
from pathlib import Path
from typing import NamedTuple

import google_crc32c
import numpy as np

from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError, storage_errors
from bertkit.base.members import find_member
from bertkit.checkpoints.checkpoint import MAX_DIMENSIONS, LazyTensor
from bertkit.checkpoints.elements import Array, ElementType
from bertkit.checkpoints.leveldb_table import mask_crc32c, read_table
from bertkit.checkpoints.protobuf_wire import Message

INDEX_SUFFIX = ".index"
MAX_SHARDS = 1_000
NAME_SHOWN = 80

HEADER_KEY = b""
SLICE_KEY_START = b"\0"
OBJECTS_KEY = b"_CHECKPOINTABLE_OBJECT_GRAPH"
READER_VERSION = 1
LITTLE_ENDIAN, BIG_ENDIAN = 0, 1

DTYPES = {
    1: ElementType.F32,
    2: ElementType.F64,
    3: ElementType.I32,
    9: ElementType.I64,
    14: ElementType.BF16,
    19: ElementType.F16,
}


class Entry(NamedTuple):
    """A tensor's entry in the index."""

    dtype: ElementType
    shape: tuple[int, ...]
    shard: int
    offset: int
    num_bytes: int
    checksum: int


def open_bundle(folder: Path, prefix: str) -> tuple[dict[str, LazyTensor], tuple[Path, ...]]:
    """Read the index of an untrusted bundle: tensors by TensorFlow name, and files, index first.

    `prefix` is the common one of the bundle's file names, such as `bert_model.ckpt`.
    """
    index = _find_file(folder, f"{prefix}{INDEX_SUFFIX}")
    table = read_table(index)
    num_shards = _read_header(table.pop(HEADER_KEY, None), index)
    entries = _read_entries(table, num_shards, index)
    shards = {
        shard: _find_file(folder, f"{prefix}.data-{shard:05d}-of-{num_shards:05d}")
        for shard in sorted({entry.shard for entry in entries.values()})
    }
    _check_spans(entries, shards)
    tensors = {
        name: LazyTensor(entry.shape, entry.dtype, partial(_read, shards[entry.shard], name, entry))
        for name, entry in entries.items()
    }
    return tensors, (index, *shards.values())


def _find_file(folder: Path, name: str) -> Path:
    path = find_member(folder, name)
    if not path.is_file():
        raise DamagedFileError(f"{path} must be a file")
    return path


def _read_header(value: bytes | None, index: Path) -> int:
    """Return the number of data files."""
    if value is None:
        raise DamagedFileError(f"{index} is damaged: it has no header")
    header = Message.parse(value, f"{index}, its header,")
    num_shards, endianness = header.integer(1), header.integer(2)
    if endianness == BIG_ENDIAN:
        raise CheckpointError(
            f"{index} is of a big-endian machine; save the checkpoint again on a little-endian one"
        )
    if endianness != LITTLE_ENDIAN or num_shards < 1:
        raise DamagedFileError(
            f"{index} is damaged: {num_shards} data files, byte order {endianness}; fetch it again"
        )
    if num_shards > MAX_SHARDS:
        raise UnsafeFileError(f"{index} names {num_shards:,} data files; at most {MAX_SHARDS:,}")
    for version in header.messages(3):
        if version.integer(2) > READER_VERSION:
            raise CheckpointError(
                f"{index} asks for a reader of version {version.integer(2)}, and this one has"
                f" {READER_VERSION}; save the checkpoint with TensorFlow's Saver"
            )
    return num_shards


def _read_entries(table: Mapping[bytes, bytes], num_shards: int, index: Path) -> dict[str, Entry]:
    if OBJECTS_KEY in table:
        raise CheckpointError(
            f"{index} was written by tf.train.Checkpoint of TensorFlow 2, which names variables by"
            " Python attributes; read are those of tf.compat.v1.train.Saver"
        )
    entries = {}
    for key, value in table.items():
        name = key.decode("utf-8", errors="backslashreplace")
        message = Message.parse(value, f"{index}, {name[:NAME_SHOWN]!r},")
        if key.startswith(SLICE_KEY_START) or message.messages(7):
            raise CheckpointError(
                f"{index} holds variables in slices, {name[:NAME_SHOWN]!r} among them; save the"
                " checkpoint again without partitioned variables"
            )
        if not name.isprintable():
            raise DamagedFileError(f"{index} is damaged: {name[:NAME_SHOWN]!r} can't be a name")
        entries[name] = _read_entry(message, num_shards)
    return entries


def _read_entry(message: Message, num_shards: int) -> Entry:
    dtype = DTYPES.get(message.integer(1))
    if dtype is None:
        raise CheckpointError(
            f"{message.source} has TensorFlow's type {message.integer(1)}; read are"
            f" {', '.join(known.value for known in DTYPES.values())}"
        )
    shape = _read_shape(message)
    entry = Entry(
        dtype, shape, message.integer(3), message.integer(4), message.integer(5), message.integer(6)
    )
    if not 0 <= entry.shard < num_shards:
        raise DamagedFileError(
            f"{message.source} is damaged: it lies in data file {entry.shard} of {num_shards}"
        )
    if math.prod(shape) * dtype.itemsize != entry.num_bytes or entry.offset < 0:
        raise DamagedFileError(
            f"{message.source} is damaged: {list(shape)} of {dtype.value} can't have"
            f" {entry.num_bytes:,} bytes at {entry.offset:,}"
        )
    return entry


def _read_shape(message: Message) -> tuple[int, ...]:
    shapes = message.messages(2)
    if len(shapes) > 1:
        raise DamagedFileError(f"{message.source} is damaged: it has {len(shapes)} shapes")
    shape = tuple(dimension.integer(1) for shape in shapes for dimension in shape.messages(2))
    if len(shape) > MAX_DIMENSIONS or any(size < 1 for size in shape):
        raise DamagedFileError(
            f"{message.source} is damaged: its shape is {list(shape[: MAX_DIMENSIONS + 1])}, and"
            f" must have at most {MAX_DIMENSIONS} sizes, each at least 1"
        )
    return shape


def _check_spans(entries: Mapping[str, Entry], shards: Mapping[int, Path]) -> None:
    """Check that tensors are inside their files and don't overlap.

    Overlapping tensors would let a small file fill any amount of memory.
    """
    sizes = {shard: path.stat().st_size for shard, path in shards.items()}
    ends = dict.fromkeys(shards, 0)
    for name, entry in sorted(entries.items(), key=lambda pair: pair[1].offset):
        path, end = shards[entry.shard], entry.offset + entry.num_bytes
        if end > sizes[entry.shard]:
            raise DamagedFileError(
                f"{path} has {sizes[entry.shard]:,} bytes, and {name[:NAME_SHOWN]!r} ends at byte"
                f" {end:,}; fetch it again"
            )
        if entry.offset < ends[entry.shard]:
            raise UnsafeFileError(f"{path}: {name[:NAME_SHOWN]!r} lies over another tensor")
        ends[entry.shard] = end


def _read(path: Path, name: str, entry: Entry) -> Array:
    """Read a tensor into its own memory and verify its checksum."""
    with storage_errors(path, "read"), path.open("rb") as stream:
        # A separate mapping: most tensors are copied and dropped, which would fragment the heap.
        memory = mmap(-1, entry.num_bytes, access=ACCESS_COPY)
        stream.seek(entry.offset)
        num_read = stream.readinto(memory)
    checksum = mask_crc32c(google_crc32c.value(np.frombuffer(memory, np.uint8)))
    if num_read < entry.num_bytes or checksum != entry.checksum:
        raise DamagedFileError(
            f"{path} is damaged in {name[:NAME_SHOWN]!r}, between bytes {entry.offset:,} and"
            f" {entry.offset + entry.num_bytes:,} (checksum differs); fetch it again"
        )
    return np.frombuffer(memory, entry.dtype.stored).reshape(entry.shape)
