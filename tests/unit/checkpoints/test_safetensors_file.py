"""The safetensors file, beside the library that defines it; what is refused is in tests/hostile."""

import os

import pytest
import safetensors.torch
import torch

from bertkit.base.errors import StorageError, UnsafeFileError
from bertkit.checkpoints import safetensors_file
from bertkit.checkpoints.checkpoint import copied_files
from bertkit.checkpoints.elements import ElementType
from bertkit.checkpoints.safetensors_file import open_safetensors, write_safetensors
from bertkit.checkpoints.torch_tensors import lazy_tensors, read_safetensors, read_tensor

TENSORS = {
    f"t{number}": torch.arange(6).reshape(2, 3).to(getattr(torch, dtype.value))
    for number, dtype in enumerate(ElementType)
} | {"scalar": torch.tensor(1.5), "empty": torch.empty(0, 4), "turned": torch.ones(2, 3).t()}


def assert_equal(found: dict[str, torch.Tensor]) -> None:
    assert found.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)
        assert found[name].is_contiguous()


def test_both_libraries_read_what_the_other_wrote(tmp_path):
    write_safetensors(tmp_path / "ours", lazy_tensors(TENSORS))
    assert_equal(safetensors.torch.load_file(tmp_path / "ours"))
    contiguous = {name: tensor.contiguous() for name, tensor in TENSORS.items()}
    safetensors.torch.save_file(contiguous, tmp_path / "theirs")
    assert_equal(read_safetensors(tmp_path / "theirs"))


def test_a_file_that_is_copied_may_be_written_over(tmp_path):
    path = tmp_path / "file"
    write_safetensors(path, lazy_tensors(TENSORS))
    with copied_files():
        tensors = open_safetensors(path)
    path.write_bytes(b"")
    for tensor in tensors.values():
        tensor.release()
    assert_equal({name: read_tensor(tensor) for name, tensor in tensors.items()})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "file").chmod(0)
    with pytest.raises(StorageError, match="can't be read"):
        open_safetensors(tmp_path / "file")


def test_the_header_is_limited(tmp_path, monkeypatch):
    write_safetensors(tmp_path / "file", lazy_tensors(TENSORS))
    monkeypatch.setattr(safetensors_file, "MAX_TENSORS", len(TENSORS) - 1)
    with pytest.raises(UnsafeFileError, match=f"names {len(TENSORS)} tensors"):
        open_safetensors(tmp_path / "file")
    monkeypatch.setattr(safetensors_file, "HEADER_LIMIT_BYTES", 8)
    with pytest.raises(UnsafeFileError, match="none needs more than 8"):
        open_safetensors(tmp_path / "file")
