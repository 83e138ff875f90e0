"""Reader for `pytorch_model.bin`, a state dict written by `torch.save`; runs none of its code.

There are two formats: the zip archive since torch 1.6, and the older stream of pickles followed by
raw storages. Both are memory-mapped, so that only tensors that are read take memory.
Source: both formats as `torch.save` writes them, in PyTorch's `torch/serialization.py`.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from mmap import mmap
from pathlib import Path

import torch
from torch import Tensor

from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError
from bertkit.checkpoints.checkpoint import LazyTensor
from bertkit.checkpoints.mapped_file import MappedFile, release_pages
from bertkit.checkpoints.pytorch.pickle_machine import MAX_PICKLE_BYTES, PROTO, PickleMachine
from bertkit.checkpoints.pytorch.tensor_records import (
    NAMES,
    StorageRecord,
    StorageTable,
    TensorRecord,
    check_state_dict,
)
from bertkit.checkpoints.pytorch.zip_archive import LOCAL_MAGIC, ZipEntry, read_zip_entries

STREAM_MAGIC = 0x1950A86A20F9469CFC6C
STREAM_PROTOCOL = 1001
MAX_ARCHIVE_VERSION = 10  # torch itself reads 1 to 10; torch.save writes 3
COUNT_BYTES = 8
TAR_SIGN = slice(257, 262)
SAFETENSORS_SIGN = slice(8, 10)  # the JSON header follows an 8-byte length


def open_pytorch(path: Path) -> dict[str, LazyTensor]:
    """Read the header of an untrusted file; tensors are read on demand.

    The pickle of an archive is verified against its CRC-32, but the tensors are not: that would
    add half of the reading time again, and the older format has no checksums at all.

    Returns:
        Tensors by their names in the file, in file order.
    """
    file = MappedFile.open(path)
    with _naming(path):
        tensors, places = _read_form(file)
        storages = _Storages(file, places)
        return {
            name: LazyTensor(
                tensor.size,
                tensor.storage.dtype,
                partial(storages.read, tensor),
                partial(storages.release, tensor),
            )
            for name, tensor in tensors.items()
        }


class _Storages:
    """A mapped file and the location of each storage in it."""

    def __init__(self, file: MappedFile, places: dict[str, ZipEntry]) -> None:
        self._file = file
        self._places = places

    def read(self, tensor: TensorRecord) -> Tensor:
        """Return a tensor: a view of the mapped file if alignment and strides allow it."""
        dtype = tensor.storage.dtype
        if not tensor.num_elements:
            return torch.empty(tensor.size, dtype=dtype)
        start = self._places[tensor.storage.key].start + tensor.offset * dtype.itemsize
        num_bytes = tensor.num_spanned * dtype.itemsize
        spanned = torch.frombuffer(
            self._file.memory, dtype=torch.uint8, count=num_bytes, offset=start
        )
        if dtype is torch.bool:
            spanned = spanned.ne(0)  # normalize bytes other than 0 and 1
        elif start % dtype.itemsize:
            spanned = spanned.clone()  # the older format doesn't align storages
        return spanned.view(dtype).as_strided(tensor.size, tensor.stride).contiguous()

    def release(self, tensor: TensorRecord) -> None:
        """Free the memory that was read for a tensor."""
        if tensor.num_elements:
            size = tensor.storage.dtype.itemsize
            start = self._places[tensor.storage.key].start + tensor.offset * size
            release_pages(self._file.memory, start, tensor.num_spanned * size)


_Content = tuple[dict[str, TensorRecord], dict[str, ZipEntry]]


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Prefix error messages with the file's path."""
    try:
        yield
    except (DamagedFileError, UnsafeFileError, CheckpointError) as error:
        raise type(error)(f"{path} {error}") from None


def _read_form(file: MappedFile) -> _Content:
    """Return the tensors that a file of either format describes, and its storages' locations."""
    if file.memory[:4] == LOCAL_MAGIC:
        return _read_archive(file.memory)
    if file.memory[:1] == PROTO:
        return _read_stream(file.memory)
    if file.memory[TAR_SIGN] == b"ustar":
        raise CheckpointError(
            "is in the tar form of torch before 0.1.10; load and save it with torch if you trust it"
        )
    if file.memory[SAFETENSORS_SIGN] == b'{"':
        raise DamagedFileError("is a safetensors file; name it model.safetensors")
    raise DamagedFileError(f"isn't what torch.save writes: {file.describe_start()}")


def _read_archive(file: mmap) -> _Content:
    entries = read_zip_entries(file)
    folders = [name.removesuffix("/data.pkl") for name in entries if name.endswith("/data.pkl")]
    if len(folders) != 1 or "/" in folders[0]:
        raise DamagedFileError("is a zip archive without one data.pkl; torch.save didn't write it")
    inside = f"{folders[0]}/"
    members = {
        name.removeprefix(inside): entry
        for name, entry in entries.items()
        if name.startswith(inside)
    }
    if any(name == "constants.pkl" or name.startswith("code/") for name in members):
        raise UnsafeFileError(
            "is a TorchScript program, not weights; save the model's state_dict() instead"
        )
    byteorder = _take_small(file, members, "byteorder", b"little")
    if byteorder != b"little":
        raise CheckpointError(f"has numbers in byte order {byteorder!r}; expected little-endian")
    version = _take_small(file, members, "version", b"").strip()
    if not version.isdigit() or not 1 <= int(version) <= MAX_ARCHIVE_VERSION:
        raise DamagedFileError(
            f"is of version {version!r}; expected 1 to {MAX_ARCHIVE_VERSION}, torch writes 3"
        )
    table = StorageTable()
    pickle = _take(file, members["data.pkl"], "data.pkl", MAX_PICKLE_BYTES)
    tensors = check_state_dict(PickleMachine(pickle, NAMES, table.load).run())
    records = table.records.items()
    return tensors, {key: _find(members, f"data/{key}", record) for key, record in records}


def _take_small(file: mmap, members: dict[str, ZipEntry], name: str, default: bytes) -> bytes:
    return _take(file, members[name], name, 16) if name in members else default


def _take(file: mmap, entry: ZipEntry, name: str, limit_bytes: int) -> bytes:
    """Return the bytes of an entry that isn't a tensor, after verifying its CRC-32."""
    if entry.num_bytes > limit_bytes:
        raise UnsafeFileError(
            f"has {entry.num_bytes:,} bytes of {name}; no weights need over {limit_bytes:,}"
        )
    data = file[entry.start : entry.start + entry.num_bytes]
    if entry.crc32 and zlib.crc32(data) != entry.crc32:
        raise DamagedFileError(f"was altered in {name} (its CRC-32 differs); fetch it again")
    return data


def _find(members: dict[str, ZipEntry], name: str, record: StorageRecord) -> ZipEntry:
    """Return the entry of a storage, after checking that its size matches the pickle."""
    entry = members.get(name)
    if entry is None or entry.num_bytes != record.num_bytes:
        found = "isn't there" if entry is None else f"has {entry.num_bytes:,}"
        raise DamagedFileError(
            f"should have {record.num_bytes:,} bytes in {name[:80]!a}, which {found}"
        )
    return entry


def _read_stream(file: mmap) -> _Content:
    table = StorageTable()
    machine = PickleMachine(file[:MAX_PICKLE_BYTES], NAMES, table.load)
    if machine.run() != STREAM_MAGIC:
        raise DamagedFileError("is a pickle, but torch.save didn't write it")
    if machine.run() != STREAM_PROTOCOL:
        raise DamagedFileError(f"isn't of protocol {STREAM_PROTOCOL}, the only one torch had")
    system = machine.run()
    if type(system) is not dict or system.get("little_endian") is not True:
        raise CheckpointError("wasn't written on a little-endian machine; expected such numbers")
    tensors = check_state_dict(machine.run())
    keys = machine.run()
    if type(keys) is not list or set(map(type, keys)) - {str}:
        raise DamagedFileError("has no list of its storages; fetch it again")
    if sorted(keys) != sorted(table.records):
        raise DamagedFileError(
            f"doesn't list the {len(table.records):,} storages that its tensors need"
        )
    records = [table.records[key] for key in keys]
    return tensors, _walk(file, machine.reader.position, records)


def _walk(file: mmap, position: int, records: list[StorageRecord]) -> dict[str, ZipEntry]:
    """Locate consecutive storages, each preceded by its number of elements."""
    places = {}
    for record in records:
        start = position + COUNT_BYTES
        count = int.from_bytes(file[position:start], "little", signed=True)
        position = start + record.num_bytes
        if count != record.num_elements or position > len(file):
            raise DamagedFileError(
                f"should have {record.num_elements:,} elements of storage {record.key[:80]!a}"
                f" from byte {start:,}, and doesn't; it was cut short or altered: fetch it again"
            )
        places[record.key] = ZipEntry(start, record.num_bytes, 0)
    if position != len(file):
        raise DamagedFileError(f"has {len(file) - position:,} bytes behind its last storage")
    return places
