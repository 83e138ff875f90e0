"""Random bytes as a part of a `pytorch_model.bin`; the first of them says as which.

Inside an archive the checksum is made right, so that the reader gets past it.
"""

import io
from collections.abc import Callable
from pathlib import Path

import torch
from tests.pickles import archive, state, stream, tensor

from bertkit.checkpoints.pytorch_file import open_pytorch

NUM_INPUTS = 7_000
STATE = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.arange(6).t(), "c": torch.ones(2).half()}
PICKLE = state({"a": tensor(size=[1, 2], stride=[2, 1]), "b": tensor(offset=2, size=[2])})


def saved(*, is_archive: bool) -> bytes:
    """What torch itself writes."""
    written = io.BytesIO()
    torch.save(STATE, written, _use_new_zipfile_serialization=is_archive)
    return written.getvalue()


# What the bytes stand for, and one good example of them.
PARTS: tuple[tuple[Callable[[bytes], bytes], bytes], ...] = (
    (lambda data: data, saved(is_archive=True)),
    (lambda data: data, saved(is_archive=False)),
    (archive, PICKLE),
    (stream, PICKLE),
    (lambda data: archive(PICKLE, version=data[:1], byteorder=data[1:]), b"3little"),
    (lambda data: b"PK\x03\x04" + data, archive(PICKLE)[4:]),
)


def seeds() -> list[bytes]:
    """One good example of each part."""
    return [bytes([number]) + example for number, (_, example) in enumerate(PARTS)]


def read(data: bytes, folder: Path) -> None:
    """Open a file with the part that the bytes stand for, and read all of it."""
    place, _ = PARTS[data[0] % len(PARTS)] if data else PARTS[0]
    path = folder / "pytorch_model.bin"
    path.write_bytes(place(data[1:]))
    for lazy in open_pytorch(path).values():
        lazy.read()
