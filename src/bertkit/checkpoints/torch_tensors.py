"""Torch's tensors as those of checkpoints, and back; what trains imports this, and nothing else."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertkit.checkpoints.checkpoint import LazyTensor
from bertkit.checkpoints.elements import Array, ElementType
from bertkit.checkpoints.names import NameTable
from bertkit.checkpoints.safetensors_file import open_safetensors


def lazy_tensor(tensor: Tensor) -> LazyTensor:
    """Return a tensor in memory, as it is when it is read."""
    dtype = ElementType(str(tensor.dtype).removeprefix("torch."))

    def read_stored() -> Array:
        kept = tensor.detach().cpu()
        # NumPy has no bfloat16
        kept = kept.view(torch.int16) if dtype is ElementType.BF16 else kept
        stored: Array = kept.numpy().view(dtype.stored)
        return stored

    return LazyTensor(tuple(tensor.shape), dtype, read_stored)


def lazy_tensors(tensors: Mapping[str, Tensor]) -> dict[str, LazyTensor]:
    """Return tensors in memory, as they are when they are read."""
    return {name: lazy_tensor(tensor) for name, tensor in tensors.items()}


def to_tensors(arrays: Mapping[str, NDArray[np.float32]]) -> dict[str, Tensor]:
    """Return tensors that share the memory of arrays."""
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def read_tensor(tensor: LazyTensor) -> Tensor:
    """Return a tensor of its own type, which shares the memory of what was read."""
    stored = tensor.read_stored()
    if tensor.dtype is ElementType.BF16:
        return torch.from_numpy(stored.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(stored)


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Read all tensors of a file in their own types; errors as in `open_safetensors`."""
    return {name: read_tensor(tensor) for name, tensor in open_safetensors(path).items()}


def export_tensors(tensors: Mapping[str, Tensor], names: NameTable) -> dict[str, Tensor]:
    """Convert our tensors to foreign ones, splitting those that were concatenated."""
    foreign = {}
    for name, tensor in tensors.items():
        theirs = names.their_names(name)
        parts = tensor.chunk(len(theirs))
        pairs = zip(theirs, parts, strict=True)
        foreign.update({their: part.contiguous() for their, part in pairs})
    return foreign
