"""The common form of every checkpoint format: a config dict and lazily read tensors.

Tensors have the names of Hugging Face's `BertForPreTraining` and related classes
(`bert.encoder.layer.0.…`); each format has its own table that maps its names to these.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def _keep() -> None:
    """Do nothing: the default `release` of a tensor that isn't a view of a file."""


@dataclass(frozen=True)
class LazyTensor:
    """A tensor that is still on disk; its header was read and validated.

    Attributes:
        shape: its sizes.
        dtype: of its elements.
        read: returns the tensor, contiguous; it may be a view of the file.
        release: frees the memory of a view, which is read from the file again when next used;
            the view must not have been written to.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    read: Callable[[], Tensor]
    release: Callable[[], None] = _keep

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Checkpoint:
    """A model read from a folder, independent of any model class.

    Attributes:
        format: a key of `FORMATS`.
        folder: where it was read from.
        config: the content of `config.json`, or its equivalent with the same keys.
        tensors: by current Hugging Face name, always with the `bert.` prefix.
        files: the config and weight files.
    """

    format: str
    folder: Path
    config: dict[str, Any]
    tensors: Mapping[str, LazyTensor]
    files: tuple[Path, ...]
