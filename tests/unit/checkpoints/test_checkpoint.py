"""Weights as memory: views of a file, which never changes by them."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from bertkit.base.errors import DamagedFileError, MissingFileError, UnsafeFileError
from bertkit.checkpoints.checkpoint import MappedFile, transpose
from bertkit.checkpoints.elements import ElementType

NUMBERS = np.arange(6, dtype=np.int32)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(b"abcd" + NUMBERS.tobytes())
    return path


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_a_tensor_is_a_view_that_never_changes_the_file(path):
    content = path.read_bytes()
    lazy = MappedFile.open(path).tensor(4, (2, 3), ElementType.I32)
    first = lazy.read()
    assert np.array_equal(first, NUMBERS.reshape(2, 3))
    first[0, 0] = 99
    assert lazy.read()[0, 0] == 99  # the same memory
    assert path.read_bytes() == content


def test_what_lies_askew_is_copied(path):
    path.write_bytes(b"abc" + NUMBERS.tobytes())
    lazy = MappedFile.open(path).tensor(3, (6,), ElementType.I32)
    first = lazy.read()
    assert np.array_equal(first, NUMBERS)
    first[0] = 99
    assert lazy.read()[0] == 0


def test_an_empty_tensor_needs_no_place(path):
    lazy = MappedFile.open(path).tensor(28, (0, 5), ElementType.F32)
    assert lazy.read().shape == (0, 5)
    lazy.release()
    beyond = MappedFile.open(path).tensor(28, (0, 1 << 62), ElementType.F32)
    with pytest.raises(UnsafeFileError, match="empty tensor of sizes beyond use"):
        beyond.read()


@pytest.mark.parametrize("shape", [(1, 5), (16, 3), (50, 7), (0, 4), (4, 0)])
def test_a_matrix_is_transposed(shape):
    matrix = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    turned = transpose(matrix)
    assert np.array_equal(turned, matrix.T)
    assert turned.flags.c_contiguous


@pytest.mark.skipif(sys.platform != "linux", reason="pages are given back under Linux")
def test_pages_that_are_given_back_are_free_and_come_again(tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(bytes(range(256)) * (1 << 18))  # 64 MiB
    lazy = MappedFile.open(path).tensor(0, (1 << 26,), ElementType.U8)
    total = lazy.read().sum(dtype=np.int64)
    before = resident_bytes()
    lazy.release()
    assert before - resident_bytes() > 60 << 20
    assert lazy.read().sum(dtype=np.int64) == total == 255 * 128 << 18


def test_a_file_that_is_missing_or_empty_is_named(tmp_path):
    with pytest.raises(MissingFileError, match="weights"):
        MappedFile.open(tmp_path / "weights")
    (tmp_path / "weights").touch()
    with pytest.raises(DamagedFileError, match="weights is empty"):
        MappedFile.open(tmp_path / "weights")
