"""What every format is read into: a config, and tensors that are read when they are asked for.

The names of the tensors are those of Hugging Face's `BertForPreTraining` and its sisters
(`bert.encoder.layer.0.…`); each format says by a table of its own how its names become these.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def _keep() -> None:
    """Release nothing."""


@dataclass(frozen=True)
class LazyTensor:
    """A tensor that is still on the disk; its header was read and believed.

    Attributes:
        shape: its sizes.
        dtype: of its elements.
        read: fetches it; the result is contiguous, and may be a view of the file.
        release: gives the memory of a view back, whose bytes come again from the file when they
            are next used; nothing may have been written to it.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    read: Callable[[], Tensor]
    release: Callable[[], None] = _keep

    @property
    def nbytes(self) -> int:
        """Size of its elements."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Checkpoint:
    """A model as a folder holds it; knows no model class.

    Attributes:
        format: a key of `FORMATS`.
        folder: where it was read from.
        config: the content of `config.json`, or what stands for it, under the same keys.
        tensors: under today's names, the `bert.` prefix always present.
        files: those that it is made of, config and weights.
    """

    format: str
    folder: Path
    config: dict[str, Any]
    tensors: Mapping[str, LazyTensor]
    files: tuple[Path, ...]
