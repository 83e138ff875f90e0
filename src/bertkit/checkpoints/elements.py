"""The types of a tensor's elements, and the numbers that their bits mean."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class ElementType(Enum):
    """The type of a tensor's elements: its name in safetensors files, and in torch.

    NumPy has no bfloat16, so its bits are kept in unsigned integers.
    """

    F64 = "float64"
    F32 = "float32"
    F16 = "float16"
    BF16 = "bfloat16"
    I64 = "int64"
    I32 = "int32"
    I16 = "int16"
    I8 = "int8"
    U8 = "uint8"
    BOOL = "bool"

    @property
    def stored(self) -> np.dtype[Any]:
        """NumPy's type of the elements as they are in files."""
        return np.dtype("uint16" if self is ElementType.BF16 else self.value)

    @property
    def itemsize(self) -> int:
        """Size of an element in bytes."""
        return self.stored.itemsize

    @property
    def is_floating_point(self) -> bool:
        """Whether elements are floating-point numbers."""
        return "float" in self.value

    @property
    def largest(self) -> float:
        """The largest finite number of a type of floating-point numbers."""
        if self is ElementType.BF16:
            return float(widen(np.array(0x7F7F, np.uint16), self))
        return float(np.finfo(self.value).max)


def widen(stored: Array, dtype: ElementType) -> Array:
    """Return the numbers of stored elements: those of bfloat16 in float32, others as they are."""
    if dtype is not ElementType.BF16:
        return stored
    bits = stored.astype(np.uint32)
    bits <<= np.uint32(16)
    return bits.view(np.float32)


@dataclass(frozen=True)
class StoredRows:
    """A matrix as it is in a file, of which those rows are read that are asked for.

    Attributes:
        stored: the elements; usually a view of the file.
    """

    stored: Array
    dtype: ElementType

    def __getitem__(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return a copy of some rows, as float32."""
        return widen(self.stored[places], self.dtype).astype(np.float32, copy=False)

    def read(self) -> NDArray[np.float32]:
        """Return the whole matrix, as float32."""
        return widen(self.stored, self.dtype).astype(np.float32, copy=False)


def narrow(numbers: Array, dtype: ElementType) -> Array:
    """Return finite numbers as stored elements of a type, rounded to the nearest, halves to even.

    A number beyond the largest becomes infinite.
    """
    with np.errstate(over="ignore"):
        if dtype is not ElementType.BF16:
            return numbers.astype(dtype.stored)
        bits = numbers.astype(np.float32).view(np.uint32)
    rounded: Array = (bits + (bits >> 16 & 1) + np.uint32(0x7FFF) >> 16).astype(np.uint16)
    return rounded
