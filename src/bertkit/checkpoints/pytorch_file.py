"""Reader for `pytorch_model.bin`, a state dict written by `torch.save`; nothing is unpickled.

`pytorch_pickle` reads which tensors there are. They are views of the mapped file.

Source: the zip archive and the older stream of pickles and storages in PyTorch's
`torch/serialization.py`.
"""

import io
import re
import struct
import zipfile
import zlib
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import as_strided

from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError
from bertkit.checkpoints.checkpoint import LazyTensor, MappedFile, release_pages
from bertkit.checkpoints.elements import Array, ElementType
from bertkit.checkpoints.pytorch_pickle import (
    TensorView,
    find_storages,
    read_state_dict,
    split_pickle,
)

MAX_PICKLE_BYTES = 8 << 20  # BERT-Large's 400 tensors take 60 kB
MAX_ENTRIES = 10_000  # BERT-Large has 400 tensors
MAX_DIRECTORY_BYTES = 4 << 20
STREAM_MAGIC, STREAM_PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
COUNT_BYTES = 8
ZIP_MAGIC = b"PK\x03\x04"
LOCAL_HEADER = struct.Struct("<4s22x2H")  # the lengths of name and extra field come last


KEYS = re.compile(r"\](?:\(S*+e|Sa)*+\.")


_Content = tuple[dict[str, TensorView], dict[str, int]]  # and where each storage begins


def open_pytorch(path: Path) -> dict[str, LazyTensor]:
    """Read the header of an untrusted file; tensors are read on demand, by their names in the file.

    The pickle of an archive is verified against its CRC-32, but the tensors are not: that would add
    half of the reading time again, and the older form has no checksums at all.
    """
    file = MappedFile.open(path)
    try:
        if file.memory[:4] == ZIP_MAGIC:
            views, starts = _read_archive(file)
        elif file.memory[:1] == b"\x80":
            views, starts = _read_stream(file)
        elif file.memory[257:262] == b"ustar":
            raise CheckpointError(
                "is in the tar form of torch before 0.1.10; load and save it with torch if you"
                " trust it"
            )
        elif file.memory[8:10] == b'{"':
            raise DamagedFileError("is a safetensors file; name it model.safetensors")
        else:
            raise DamagedFileError(f"isn't what torch.save writes: {file.describe_start()}")
    except (CheckpointError, DamagedFileError, UnsafeFileError) as error:
        raise type(error)(f"{path} {error}") from None
    return {name: _lazy(file, view, starts[view.storage.key]) for name, view in views.items()}


def _lazy(file: MappedFile, view: TensorView, storage_start: int) -> LazyTensor:
    itemsize = view.storage.dtype.itemsize
    start, num_bytes = storage_start + view.offset * itemsize, view.num_spanned * itemsize
    release = partial(release_pages, file.memory, start, num_bytes)
    return LazyTensor(view.size, view.storage.dtype, partial(_read, file, view, start), release)


def _read(file: MappedFile, view: TensorView, start: int) -> Array:
    """Return a tensor: a view of the mapped file if alignment and strides allow it."""
    dtype = view.storage.dtype
    if not view.num_elements:
        return np.empty(view.size, dtype.stored)
    count = view.num_spanned * dtype.itemsize
    spanned: Array = np.frombuffer(file.memory, np.uint8, count=count, offset=start)
    if dtype is ElementType.BOOL:
        spanned = spanned != 0  # normalize bytes other than 0 and 1
    elif start % dtype.itemsize:
        spanned = spanned.copy()  # the older form doesn't align storages
    pairs = zip(view.size, view.stride, strict=True)
    steps = [stride * dtype.itemsize if size > 1 else 0 for size, stride in pairs]
    return np.asarray(as_strided(spanned.view(dtype.stored), view.size, steps), order="C")


def _read_archive(file: MappedFile) -> _Content:
    """Return the tensors of a zip archive, and where each storage begins in the file."""
    members = _read_directory(file)
    if any(name == "constants.pkl" or name.startswith("code/") for name in members):
        raise UnsafeFileError(
            "is a TorchScript program, not weights; save the model's state_dict() instead"
        )
    order = _take(file, members, "byteorder", 16) if "byteorder" in members else b"little"
    if order != b"little":
        raise CheckpointError(f"has numbers in byte order {order!r}; expected little-endian")
    pickle = _take(file, members, "data.pkl", MAX_PICKLE_BYTES)
    views = read_state_dict(split_pickle(io.BytesIO(pickle)))
    starts = {}
    for key, storage in find_storages(views).items():
        name = f"data/{key}"
        start, info = members.get(name, (0, None))
        if info is None or info.file_size != storage.num_bytes:
            found = f"has {info.file_size:,}" if info else "isn't there"
            raise DamagedFileError(
                f"should have {storage.num_bytes:,} bytes in {name[:80]!a}, which {found}"
            )
        starts[key] = start
    return views, starts


class _ShortReads(io.FileIO):
    """A file of which little is read at once: `zipfile` believes what a directory says it has."""

    def read(self, num_bytes: int | None = -1, /) -> bytes:
        if num_bytes is not None and num_bytes > MAX_DIRECTORY_BYTES:
            raise UnsafeFileError(
                f"has a zip directory of {num_bytes:,} bytes; no weights need over"
                f" {MAX_DIRECTORY_BYTES:,}"
            )
        return super().read(num_bytes)


Members = dict[str, tuple[int, zipfile.ZipInfo]]  # where the content begins, and its entry


def _read_directory(file: MappedFile) -> Members:
    """Return the members of an archive by their names in its folder."""
    try:
        with (
            _ShortReads(file.path) as stream,
            zipfile.ZipFile(stream, metadata_encoding="utf-8") as archive,
        ):
            infos = archive.infolist()
    except UnsafeFileError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OSError) as error:
        raise DamagedFileError(
            f"isn't a whole zip archive ({str(error)[:80]!a}); it was cut short or altered: fetch"
            " it again"
        ) from None
    names = [info.filename for info in infos]
    if len(set(names)) < len(infos) or len(infos) > MAX_ENTRIES:
        raise UnsafeFileError(
            f"has {len(infos):,} entries, or two of one name; expected at most {MAX_ENTRIES:,}"
        )
    if sum(info.file_size for info in infos) > file.size_bytes:
        raise UnsafeFileError("has entries that are compressed or overlap; torch writes neither")
    folders = [name.removesuffix("/data.pkl") for name in names if name.endswith("/data.pkl")]
    if len(folders) != 1 or "/" in folders[0]:
        raise DamagedFileError("is a zip archive without one data.pkl; torch.save didn't write it")
    inside = f"{folders[0]}/"
    return {
        info.filename.removeprefix(inside): (_find(file, info), info)
        for info in infos
        if info.filename.startswith(inside)
    }


def _find(file: MappedFile, info: zipfile.ZipInfo) -> int:
    """Return where an entry's content begins."""
    shown = ascii(info.filename[:80])
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
        raise UnsafeFileError(
            f"has a compressed or encrypted entry, {shown}, which may unpack to any size; torch"
            " writes none, so load and save it with torch if you trust it"
        )
    header = info.header_offset
    content = header + LOCAL_HEADER.size
    if 0 <= header <= file.size_bytes - LOCAL_HEADER.size:
        magic, num_name_bytes, num_extra_bytes = LOCAL_HEADER.unpack_from(file.memory, header)
        content += int(num_name_bytes + num_extra_bytes)
        if magic == ZIP_MAGIC and content + info.file_size <= file.size_bytes:
            return content
    raise DamagedFileError(f"has an entry that isn't where it should be, {shown}; fetch it again")


def _take(file: MappedFile, members: Members, name: str, limit_bytes: int) -> bytes:
    """Return the content of a member that isn't a tensor, after verifying its CRC-32."""
    start, info = members[name]
    if info.file_size > limit_bytes:
        raise UnsafeFileError(
            f"has {info.file_size:,} bytes of {name}; no weights need over {limit_bytes:,}"
        )
    data = file.read(start, info.file_size)
    if info.CRC and zlib.crc32(data) != info.CRC:
        raise DamagedFileError(f"was altered in {name} (its CRC-32 differs); fetch it again")
    return data


def _read_stream(file: MappedFile) -> _Content:
    """Return the same of the older form: five pickles, and the storages, each behind its length."""
    stream = io.BytesIO(file.memory[:MAX_PICKLE_BYTES])
    for number in (STREAM_MAGIC, STREAM_PROTOCOL):
        if split_pickle(stream)[0] != ("I", number):
            raise DamagedFileError("is a pickle, but not of torch.save in its protocol 1001")
    if (("S", "little_endian"), ("B", True)) not in pairwise(split_pickle(stream)):
        raise CheckpointError("wasn't written on a little-endian machine; expected such numbers")
    views = read_state_dict(split_pickle(stream))
    storages, listed = find_storages(views), split_pickle(stream)
    keys = [value for letter, value in listed if letter == "S"]
    is_list = KEYS.fullmatch("".join(letter for letter, _ in listed))
    if not is_list or sorted(keys) != sorted(storages):
        raise DamagedFileError(f"doesn't list the {len(storages):,} storages of its tensors")
    position, starts = stream.tell(), {}
    for key in keys:
        starts[key] = start = position + COUNT_BYTES
        count = int.from_bytes(file.read(position, COUNT_BYTES), "little", signed=True)
        position = start + storages[key].num_bytes
        if count != storages[key].num_elements or position > file.size_bytes:
            raise DamagedFileError(
                f"should have {storages[key].num_elements:,} elements of storage {key[:80]!a} from"
                f" byte {start:,}, and doesn't; it was cut short or altered: fetch it again"
            )
    if position != file.size_bytes:
        raise DamagedFileError(f"has {file.size_bytes - position:,} bytes behind its last storage")
    return views, starts
