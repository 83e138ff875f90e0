"""Plain records of the tensors that a state dict's pickle describes, with validation.

A record is built where the pickle asks torch to rebuild a tensor. Nothing is allocated; offset,
sizes and strides are checked against the storage that the tensor refers to.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError
from bertkit.checkpoints.pytorch.pickle_machine import (
    Builder,
    Name,
    advise_extraction,
    set_items,
)

MAX_TENSORS = 10_000  # BERT-Large has 400
MAX_DIMENSIONS = 8  # BERT's tensors have at most two
MAX_EMPTY_ELEMENTS = 1 << 40  # limit for empty tensors, counting sizes of 0 as 1

DTYPES = {
    "torch.FloatStorage": torch.float32,
    "torch.HalfStorage": torch.float16,
    "torch.BFloat16Storage": torch.bfloat16,
    "torch.DoubleStorage": torch.float64,
    "torch.LongStorage": torch.int64,
    "torch.IntStorage": torch.int32,
    "torch.ShortStorage": torch.int16,
    "torch.CharStorage": torch.int8,
    "torch.ByteStorage": torch.uint8,
    "torch.BoolStorage": torch.bool,
}


@dataclass(frozen=True, slots=True)
class StorageRecord:
    """A contiguous run of elements in the file, which tensors are views of."""

    key: str
    dtype: torch.dtype
    num_elements: int

    @property
    def num_bytes(self) -> int:
        """Size in the file."""
        return self.num_elements * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """A view of a storage; offset and strides count elements."""

    storage: StorageRecord
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def num_elements(self) -> int:
        """Number of elements of the tensor, not of its storage."""
        return math.prod(self.size)

    @property
    def num_spanned(self) -> int:
        """Number of storage elements from the tensor's first element to its last."""
        steps = ((size - 1) * stride for size, stride in zip(self.size, self.stride, strict=True))
        return 1 + sum(steps) if self.num_elements else 0


class StorageTable:
    """The storages that a pickle refers to, by key.

    Attributes:
        records: in the order of first reference.
    """

    def __init__(self) -> None:
        self.records: dict[str, StorageRecord] = {}

    def load(self, persistent_id: Any) -> StorageRecord:
        """Parse one reference: `("storage", class, key, device, number of elements)`.

        The older format has a sixth item, for storages that are views of others; state dicts don't
        use it.
        """
        types = (str, Name, str, str, int)
        parts = persistent_id if type(persistent_id) is tuple else ()
        if tuple(map(type, parts[:5])) != types or parts[5:] not in ((), (None,)):
            raise UnsafeFileError("asks for a persistent object that isn't a plain storage")
        kind, name, key, _, num_elements = parts[:5]
        if kind != "storage" or name.dotted not in DTYPES or num_elements < 0:
            raise UnsafeFileError(
                f"asks for {num_elements:,} elements of {name.dotted} as {kind[:80]!a};"
                " expected a storage of numbers"
            )
        record = StorageRecord(key, DTYPES[name.dotted], num_elements)
        if self.records.setdefault(key, record) != record:
            raise DamagedFileError(f"names the storage {key[:80]!a} twice, and differently")
        return record


def rebuild_tensor(arguments: tuple[Any, ...]) -> TensorRecord:
    """Record a call of `torch._utils._rebuild_tensor(storage, offset, size, stride)`."""
    if tuple(map(type, arguments)) != (StorageRecord, int, tuple, tuple):
        raise _refuse("torch._utils._rebuild_tensor", arguments)
    storage, offset, size, stride = arguments
    if len(size) > MAX_DIMENSIONS or len(size) != len(stride):
        raise UnsafeFileError(
            f"has a tensor with {len(size)} sizes and {len(stride)} strides; expected as many of"
            f" both, and at most {MAX_DIMENSIONS}"
        )
    if any(type(number) is not int for number in (*size, *stride)):
        raise _refuse("torch._utils._rebuild_tensor", (*size, *stride))
    return TensorRecord(storage, offset, size, stride)


def rebuild_tensor_v2(arguments: tuple[Any, ...]) -> TensorRecord:
    """Record a call of `_rebuild_tensor_v2`, with `requires_grad` and an empty dict of hooks."""
    if tuple(map(type, arguments[4:])) != (bool, dict):
        raise _refuse("torch._utils._rebuild_tensor_v2", arguments)
    return rebuild_tensor(arguments[:4])


def rebuild_parameter(arguments: tuple[Any, ...]) -> TensorRecord:
    """Record a call of `torch._utils._rebuild_parameter(tensor, requires_grad, hooks)`."""
    if tuple(map(type, arguments)) != (TensorRecord, bool, dict):
        raise _refuse("torch._utils._rebuild_parameter", arguments)
    tensor: TensorRecord = arguments[0]
    return tensor


def rebuild_dict(arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Replace `collections.OrderedDict()`; Python 2 passed it a list of pairs."""
    items: dict[str, Any] = {}
    if arguments:
        pairs = arguments[0]
        if len(arguments) > 1 or type(pairs) is not list or not all(map(_is_pair, pairs)):
            raise _refuse("collections.OrderedDict", arguments)
        set_items(items, [key for key, _ in pairs], [value for _, value in pairs])
    return items


def _is_pair(value: Any) -> bool:
    return type(value) in (list, tuple) and len(value) == 2


def _refuse(name: str, arguments: tuple[Any, ...]) -> UnsafeFileError:
    kinds = ", ".join(type(argument).__name__ for argument in arguments[:9])
    return UnsafeFileError(f"asks to call {name}({kinds}), which isn't how torch writes tensors")


NAMES: dict[str, Builder | None] = {
    **dict.fromkeys(DTYPES),
    "collections.OrderedDict": rebuild_dict,
    "torch._utils._rebuild_parameter": rebuild_parameter,
    "torch._utils._rebuild_tensor": rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": rebuild_tensor_v2,
}


def check_state_dict(value: Any) -> dict[str, TensorRecord]:
    """Check that the unpickled value is a flat dict of tensors that fit into their storages."""
    if type(value) is not dict:
        raise CheckpointError(
            f"holds a {type(value).__name__}; expected a dict of tensors, as"
            " torch.save(model.state_dict(), …) writes"
        )
    if len(value) > MAX_TENSORS:
        raise UnsafeFileError(f"has {len(value):,} tensors; no model needs over {MAX_TENSORS:,}")
    for name, tensor in value.items():
        if type(tensor) is not TensorRecord:
            if (key := _find_weights(value)) is not None:
                raise CheckpointError(
                    f"holds a dict of tensors under {key[:80]!a}; expected tensors only, so"
                    f" {advise_extraction(key)}"
                )
            raise CheckpointError(
                f"holds a {type(tensor).__name__} under {name[:80]!a}; expected tensors only,"
                " so load it with torch and save the model's state_dict() alone"
            )
        _check_place(name, tensor)
    _check_sum(value.values())
    return value


def _find_weights(checkpoint: dict[str, Any]) -> str | None:
    """Return the key of the weights in a training checkpoint, or None if it is something else."""
    for key, value in checkpoint.items():
        # Only the first, because a small file may refer to a large dict very often.
        if type(value) is dict and type(next(iter(value.values()), None)) is TensorRecord:
            return key
    return None


def _check_place(name: str, tensor: TensorRecord) -> None:
    """Check one tensor's offset, sizes and strides against its storage."""
    shown = ascii(name[:80])
    if min((tensor.offset, *tensor.size, *tensor.stride)) < 0:
        raise UnsafeFileError(f"has a negative offset, size or stride for {shown}")
    room = tensor.storage.num_elements
    if tensor.num_elements > room or tensor.offset + tensor.num_spanned > room:
        raise UnsafeFileError(
            f"wants {tensor.num_elements:,} elements for {shown} that reach to number"
            f" {tensor.offset + tensor.num_spanned:,} of a storage of {room:,}"
        )
    if math.prod(max(length, 1) for length in tensor.size) > max(room, MAX_EMPTY_ELEMENTS):
        raise UnsafeFileError(f"has an empty tensor with sizes beyond use, {shown}")


def _check_sum(tensors: Iterable[TensorRecord]) -> None:
    """Check that tensors that share storages don't add up to more bytes than the storages."""
    distinct = set(tensors)
    wanted = sum(tensor.num_elements * tensor.storage.dtype.itemsize for tensor in distinct)
    storages = {tensor.storage for tensor in distinct}
    there = sum(storage.num_bytes for storage in storages)
    if wanted > there:
        raise UnsafeFileError(
            f"has tensors of {wanted:,} bytes that view the same {there:,} bytes; expected at most"
            " as many"
        )
