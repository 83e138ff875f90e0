"""Types of elements: bfloat16, which NumPy lacks, is widened and rounded as torch does."""

import numpy as np
import pytest
import torch

from bertkit.checkpoints.elements import ElementType, narrow, widen
from bertkit.checkpoints.torch_tensors import lazy_tensor, read_tensor

FLOATS = [dtype for dtype in ElementType if dtype.is_floating_point]


def draw_numbers() -> torch.Tensor:
    """Numbers of all sizes, and those halfway between two of bfloat16."""
    bits = torch.randint(-(1 << 31), 1 << 31, (20_000,), generator=torch.manual_seed(0))
    halves = (bits[:5_000] & ~0xFFFF) | 0x8000
    numbers = torch.cat([bits, halves]).to(torch.int32).view(torch.float32)
    return numbers[numbers.isfinite()]


@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers_are_rounded_and_widened_as_in_torch(dtype):
    numbers = draw_numbers()
    expected = numbers.to(getattr(torch, dtype.value))
    stored = narrow(numbers.numpy(), dtype)
    assert (stored.dtype, stored.itemsize) == (dtype.stored, dtype.itemsize)
    assert np.array_equal(widen(stored, dtype), expected.double().numpy(), equal_nan=True)
    assert torch.equal(read_tensor(lazy_tensor(expected)), expected)


@pytest.mark.parametrize("dtype", ElementType)
def test_a_type_is_torchs_of_its_name(dtype):
    theirs = getattr(torch, dtype.value)
    assert dtype.itemsize == theirs.itemsize
    assert dtype.is_floating_point == theirs.is_floating_point
    if dtype.is_floating_point:
        assert dtype.largest == torch.finfo(theirs).max
