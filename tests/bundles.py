"""A writer of TensorFlow's checkpoints, byte for byte what TensorFlow writes, and of broken ones.

The golden test holds it against TensorFlow's own files.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import google_crc32c
import torch
from torch import Tensor

from bertkit.checkpoints.tensorflow import LAYER_NAMES, TENSORFLOW_NAMES

PREFIX = "bert_model.ckpt"
MAGIC = bytes.fromhex("57fb808b247547db")
BLOCK_BYTES = 256 << 10
RESTART_INTERVAL = 16
DTYPES = {
    torch.float32: 1,
    torch.float64: 2,
    torch.int32: 3,
    torch.int64: 9,
    torch.bfloat16: 14,
    torch.float16: 19,
}

Pairs = dict[bytes, bytes]


def varint(value: int) -> bytes:
    """7 bits in a byte, the lowest first; negative numbers as those of 64 bits."""
    value %= 1 << 64
    parts = []
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def field(number: int, value: int | bytes) -> bytes:
    """A field of a message; numbers that are 0 are left out, as proto3 does."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value) if value else b""


def fixed32(number: int, value: int) -> bytes:
    """A field of 4 bytes."""
    return varint(number << 3 | 5) + value.to_bytes(4, "little")


def masked_crc(data: bytes) -> int:
    """The checksum of a block or a tensor."""
    crc = google_crc32c.value(data)
    return int(((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def header(num_shards: int = 1, endianness: int = 0, min_consumer: int = 0) -> bytes:
    """The value of the empty key."""
    version = field(1, 1) + field(2, min_consumer)
    return field(1, num_shards) + field(2, endianness) + field(3, version)


def entry(
    shape: Sequence[int],
    offset: int,
    size: int,
    checksum: int,
    *,
    dtype: int = 1,
    shard: int = 0,
    slices: bytes = b"",
) -> bytes:
    """The value of a tensor's key; `slices` is the content of the field of that name."""
    dimensions = b"".join(field(2, field(1, size)) for size in shape)
    place = field(3, shard) + field(4, offset) + field(5, size)
    parts = field(7, slices) if slices else b""
    return field(1, dtype) + field(2, dimensions) + place + fixed32(6, checksum) + parts


def block_entry(shared: int, rest: bytes, value: bytes) -> bytes:
    """A key and its value in a block."""
    return varint(shared) + varint(len(rest)) + varint(len(value)) + rest + value


def block(pairs: Sequence[tuple[bytes, bytes]], interval: int = RESTART_INTERVAL) -> bytes:
    """The content of a block; every `interval`-th key is written whole."""
    content = bytearray()
    restarts = [] if pairs else [0]
    last = b""
    for number, (key, value) in enumerate(pairs):
        if number % interval == 0:
            restarts.append(len(content))
            last = b""
        shared = num_shared(last, key)
        content += block_entry(shared, key[shared:], value)
        last = key
    return bytes(content) + restart_array(restarts)


def num_shared(first: bytes, second: bytes) -> int:
    """Length of the common beginning."""
    pairs = enumerate(zip(first, second, strict=False))
    shorter = min(len(first), len(second))
    return next((index for index, (one, other) in pairs if one != other), shorter)


def restart_array(restarts: Sequence[int]) -> bytes:
    """What a block ends with."""
    return b"".join(number.to_bytes(4, "little") for number in [*restarts, len(restarts)])


def seal(content: bytes, kind: int = 0) -> bytes:
    """A block with its type and checksum."""
    stored = content + bytes([kind])
    return stored + masked_crc(stored).to_bytes(4, "little")


def footer(metaindex: bytes, index: bytes) -> bytes:
    """What a table ends with."""
    return (metaindex + index).ljust(40, b"\0") + MAGIC


def table(blocks: Sequence[tuple[bytes, bytes]], kind: int = 0) -> bytes:
    """A whole table of blocks, each with the key that stands for it in the index of blocks."""
    data = b""
    places = []
    for key, content in blocks:
        places.append((key, varint(len(data)) + varint(len(content))))
        data += seal(content, kind)
    metaindex = varint(len(data)) + varint(len(block([])))
    data += seal(block([]))
    index = block(places, interval=1)
    return data + seal(index) + footer(metaindex, varint(len(data)) + varint(len(index)))


def cut_blocks(pairs: Pairs) -> list[tuple[bytes, bytes]]:
    """Entries in blocks of 256 KiB, as TensorFlow cuts them."""
    runs: list[list[tuple[bytes, bytes]]] = [[]]
    size = 0
    for key, value in sorted(pairs.items()):
        if size >= BLOCK_BYTES:
            runs.append([])
            size = 0
        runs[-1].append((key, value))
        size += len(key) + len(value)
    blocks = [(run[-1][0], block(run)) for run in runs]
    last_key, content = blocks[-1]
    return [*blocks[:-1], (bytes([last_key[0] + 1]) if last_key else b"", content)]


def index_pairs(tensors: Mapping[str, Tensor], num_shards: int = 1) -> Pairs:
    """The entries of tensors that lie end to end, those of a shard side by side."""
    pairs = {b"": header(num_shards)}
    for shard, names in enumerate(deal(sorted(tensors), num_shards)):
        offset = 0
        for name in names:
            data = tensor_bytes(tensors[name])
            pairs[name.encode()] = entry(
                tensors[name].shape,
                offset,
                len(data),
                masked_crc(data),
                dtype=DTYPES[tensors[name].dtype],
                shard=shard,
            )
            offset += len(data)
    return pairs


def bundle(
    tensors: Mapping[str, Tensor],
    *,
    prefix: str = PREFIX,
    num_shards: int = 1,
    edit: Callable[[Pairs], None] | None = None,
) -> dict[str, bytes]:
    """The files of a checkpoint; `edit` changes entries before they are sealed."""
    pairs = index_pairs(tensors, num_shards)
    if edit is not None:
        edit(pairs)
    files = {f"{prefix}.index": table(cut_blocks(pairs))}
    for shard, names in enumerate(deal(sorted(tensors), num_shards)):
        data = b"".join(tensor_bytes(tensors[name]) for name in names)
        files[f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"] = data
    return files


def write_bundle(folder: Path, tensors: Mapping[str, Tensor], prefix: str = PREFIX) -> None:
    """Write a checkpoint of any size, a tensor at a time."""
    (folder / f"{prefix}.index").write_bytes(table(cut_blocks(index_pairs(tensors))))
    with (folder / f"{prefix}.data-00000-of-00001").open("wb") as stream:
        for name in sorted(tensors):
            stream.write(tensor_bytes(tensors[name]))


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by their names."""
    for name, data in files.items():
        (folder / name).write_bytes(data)


def to_variables(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors under Hugging Face's names as TensorFlow has them."""
    names = {theirs: name for name, theirs in (TENSORFLOW_NAMES | LAYER_NAMES).items()}
    variables = {}
    for name, tensor in tensors.items():
        if name.startswith("bert.encoder.layer."):
            layer, rest = name.removeprefix("bert.encoder.layer.").split(".", 1)
            variable = f"bert/encoder/layer_{layer}/{names[rest]}"
        else:
            variable = names[name]
        variables[variable] = tensor.t().contiguous() if variable.endswith("/kernel") else tensor
    return variables


def deal(names: Sequence[str], num_shards: int) -> list[tuple[str, ...]]:
    """Names in as many runs as there are data files."""
    size = -(-len(names) // num_shards)
    return [tuple(names[start : start + size]) for start in range(0, len(names), size)]


def tensor_bytes(tensor: Tensor) -> bytes:
    """The raw content of a tensor."""
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy())


def flip_in_turn(path: Path) -> Iterator[int]:
    """Flip a bit of each byte of a file in turn, and put it back; yields the byte's place."""
    with path.open("r+b", buffering=0) as stream:
        for place, byte in enumerate(stream.read()):
            for value in (byte ^ 1 << place % 8, byte):
                stream.seek(place)
                stream.write(bytes([value]))
                if value != byte:
                    yield place
