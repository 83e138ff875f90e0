"""The safetensors format: an 8-byte length, a JSON header, and the tensors' bytes end to end.

The header is parsed and validated here, since it is untrusted input. The tensors are views of a
private memory mapping of the file, so that a page is read when it is first used.

Source: https://github.com/huggingface/safetensors, README, "Format".
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TypeGuard

import numpy as np
from pydantic import JsonValue

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import DamagedFileError, UnsafeFileError
from bertkit.base.files import durable_file
from bertkit.base.json_files import parse_json
from bertkit.checkpoints.checkpoint import MAX_DIMENSIONS, MAX_TENSORS, LazyTensor, MappedFile
from bertkit.checkpoints.elements import ElementType

HEADER_LIMIT_BYTES = 4 << 20  # BERT-Large needs 50 kB
MAX_SIZE = 1 << 63  # sizes must fit 64-bit signed integers
LENGTH_BYTES = 8
ALIGNMENT_BYTES = 8


def open_safetensors(path: Path) -> dict[str, LazyTensor]:
    """Read and validate the header of an untrusted file."""
    file = MappedFile.open(path)
    header, data_start = _read_header(file)
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    if len(entries) > MAX_TENSORS:
        raise UnsafeFileError(f"{path} names {len(entries):,} tensors; at most {MAX_TENSORS:,}")
    tensors = {}
    spans = []
    for name, entry in entries.items():
        dtype, shape, span = _read_entry(f"{path}: {name[:80]!r}", entry)
        spans.append(span)
        tensors[name] = file.tensor(data_start + span[0], shape, dtype)
    _check_spans(path, spans, file.size_bytes - data_start)
    return tensors


def write_safetensors(path: Path, tensors: Mapping[str, LazyTensor]) -> FileRecord:
    """Write tensors durably; they are read one at a time."""
    header: dict[str, JsonValue] = {"__metadata__": {"format": "pt"}}
    end = 0
    # Larger dtypes first, so that each tensor is aligned to its element size.
    ordered = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    for name in ordered:
        tensor = tensors[name]
        begin, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": tensor.dtype.name,
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT_BYTES)
    with durable_file(path) as file:
        file.write(len(text).to_bytes(LENGTH_BYTES, "little") + text)
        for name in ordered:
            if tensors[name].nbytes:
                stored = np.ascontiguousarray(tensors[name].read_stored())
                file.write(stored.reshape(-1).view(np.uint8).data)
    return file.record()


def _read_header(file: MappedFile) -> tuple[dict[str, JsonValue], int]:
    """Return the parsed header and where the data begins."""
    start = file.read(0, min(LENGTH_BYTES, file.size_bytes))
    length = int.from_bytes(start, "little")
    if len(start) < LENGTH_BYTES or length > file.size_bytes - LENGTH_BYTES:
        raise DamagedFileError(
            f"{file.path} isn't a whole safetensors file: {file.describe_start()}; its header"
            f" would have {length:,} bytes, and the file has {file.size_bytes:,}; fetch it again"
        )
    if length > HEADER_LIMIT_BYTES:
        raise UnsafeFileError(
            f"{file.path}: the header has {length:,} bytes, and none needs more than"
            f" {HEADER_LIMIT_BYTES:,}"
        )
    header = parse_json(file.read(LENGTH_BYTES, length), f"the header of {file.path}")
    if not isinstance(header, dict):
        raise DamagedFileError(f"the header of {file.path} must be one JSON object")
    return header, LENGTH_BYTES + length


def _read_entry(
    name: str, entry: JsonValue
) -> tuple[ElementType, tuple[int, ...], tuple[int, int]]:
    """Return dtype, shape and byte range in the data of one tensor."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise DamagedFileError(f"{name} must have dtype, shape and data_offsets, and no more")
    known = ElementType.__members__
    dtype = known.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise DamagedFileError(
            f"{name} is of type {entry['dtype']!r:.80}; known are {', '.join(known)}"
        )
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _are_sizes(shape) or len(shape) > MAX_DIMENSIONS:
        raise DamagedFileError(f"{name} has the shape {shape!r:.80}; expected sizes")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise DamagedFileError(f"{name} lies at {offsets!r:.80}; expected begin and end")
    num_bytes = math.prod(shape) * dtype.itemsize
    if offsets[1] - offsets[0] != num_bytes:
        raise DamagedFileError(
            f"{name} has {offsets[1] - offsets[0]:,} bytes, and {entry['dtype']} of the shape"
            f" {shape} takes {num_bytes:,}"
        )
    return dtype, tuple(shape), (offsets[0], offsets[1])


def _are_sizes(values: JsonValue) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value < MAX_SIZE for value in values
    )


def _check_spans(path: Path, spans: list[tuple[int, int]], num_bytes: int) -> None:
    """Check that the tensors cover the data without gaps or overlaps."""
    ordered = sorted(spans)
    ends = [0, *(end for _, end in ordered)]
    begins = [*(begin for begin, _ in ordered), num_bytes]
    for end, begin in zip(ends, begins, strict=True):
        if end != begin:
            raise DamagedFileError(
                f"{path} isn't a whole safetensors file: a tensor ends at byte {end:,} of the data"
                f" and the next begins, or the file ends, at {begin:,}; fetch it again"
            )
