"""Random bytes as a part of a TensorFlow checkpoint; the first of them says as which.

Checksums are made right, so that the reader gets past them.
"""

from collections.abc import Callable
from pathlib import Path

from tests.bundles import (
    PREFIX,
    block,
    cut_blocks,
    footer,
    header,
    seal,
    table,
    varint,
    write_files,
)

from bertkit.checkpoints.leveldb_table import read_table
from bertkit.checkpoints.tensorflow import open_tensorflow

NUM_INPUTS = 2_000
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "tensorflow"
INDEX = f"{PREFIX}.index"
DATA = f"{PREFIX}.data-00000-of-00001"
FILES = {name: (GOLDEN / name).read_bytes() for name in ("bert_config.json", INDEX, DATA)}
PAIRS = read_table(GOLDEN / INDEX)
NAME = b"bert/pooler/dense/bias"
FEW = dict(sorted(PAIRS.items())[:6])


def index_of_blocks(content: bytes) -> bytes:
    """A table whose index of blocks is any bytes."""
    data = seal(block(list(FEW.items())))
    metaindex = varint(len(data)) + varint(len(block([])))
    data += seal(block([]))
    return data + seal(content) + footer(metaindex, varint(len(data)) + varint(len(content)))


# What the bytes stand for, and one good example of them.
PARTS: tuple[tuple[Callable[[bytes], dict[str, bytes]], bytes], ...] = (
    (lambda data: {INDEX: data}, FILES[INDEX]),
    (lambda data: {DATA: data}, FILES[DATA]),
    (lambda data: {"bert_config.json": data}, FILES["bert_config.json"]),
    (lambda data: {INDEX: table([(b"~", data)])}, block(list(FEW.items()))),
    (lambda data: {INDEX: table(cut_blocks({**FEW, NAME: data}))}, PAIRS[NAME]),
    (lambda data: {INDEX: table(cut_blocks({**FEW, b"": data}))}, header()),
    (
        lambda data: {INDEX: index_of_blocks(data)},
        block([(b"~", varint(0) + varint(len(block(list(FEW.items())))))]),
    ),
)


def seeds() -> list[bytes]:
    """One good example of each part."""
    return [bytes([number]) + example for number, (_, example) in enumerate(PARTS)]


def read(data: bytes, folder: Path) -> None:
    """Open a checkpoint with the part that the bytes stand for, and read all of it."""
    place, _ = PARTS[data[0] % len(PARTS)] if data else PARTS[0]
    write_files(folder, {**FILES, **place(data[1:])})
    for tensor in open_tensorflow(folder).tensors.values():
        tensor.read()
