"""The bundle: what TensorFlow wrote comes back bit for bit, and nothing that isn't so passes."""

import errno
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.bundles import DTYPES as NUMBERS
from tests.bundles import PREFIX, bundle, flip_in_turn, write_bundle, write_files
from torch import Tensor

from bertkit.base.errors import DamagedFileError, MissingFileError, StorageError, UnsafeFileError
from bertkit.checkpoints import tensor_bundle
from bertkit.checkpoints.tensor_bundle import DTYPES, open_bundle
from bertkit.checkpoints.torch_tensors import read_tensor

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "tensorflow"
TENSORS = {
    "a": torch.arange(6.0).reshape(2, 3),
    "b": torch.tensor(7),
    "c": torch.arange(-4, 4, dtype=torch.bfloat16),
}
DATA = f"{PREFIX}.data-00000-of-00001"


def read(folder: Path) -> dict[str, Tensor]:
    return {name: read_tensor(tensor) for name, tensor in open_bundle(folder, PREFIX)[0].items()}


def read_golden() -> dict[str, Tensor]:
    with np.load(GOLDEN / "expected.npz", allow_pickle=False) as arrays:
        return {
            name.removeprefix("variables/"): torch.from_numpy(arrays[name])
            for name in arrays.files
            if name.startswith("variables/")
        }


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor), name
        assert found[name].is_contiguous()


def test_what_tensorflow_wrote_is_read_bit_for_bit():
    tensors, files = open_bundle(GOLDEN, PREFIX)
    assert [path.name for path in files] == [f"{PREFIX}.index", DATA]
    assert_same({name: read_tensor(tensor) for name, tensor in tensors.items()}, read_golden())
    assert {name: tensor.shape for name, tensor in tensors.items()} == {
        name: tensor.shape for name, tensor in read_golden().items()
    }


def test_our_writer_writes_tensorflows_bytes():
    for name, data in bundle(read_golden()).items():
        assert data == (GOLDEN / name).read_bytes(), name


def test_every_type_comes_back(tmp_path):
    assert {number: getattr(torch, dtype.value) for number, dtype in DTYPES.items()} == {
        number: dtype for dtype, number in NUMBERS.items()
    }
    tensors = {str(dtype): torch.arange(5).to(dtype) for dtype in NUMBERS}
    write_bundle(tmp_path, tensors)
    assert_same(read(tmp_path), tensors)


def test_several_data_files(tmp_path):
    write_files(tmp_path, bundle(TENSORS, num_shards=2))
    assert_same(read(tmp_path), TENSORS)
    (tmp_path / f"{PREFIX}.data-00001-of-00002").unlink()
    with pytest.raises(MissingFileError, match="data-00001-of-00002 doesn't exist"):
        open_bundle(tmp_path, PREFIX)


def test_a_tensor_may_be_written_to_and_the_file_stays(tmp_path):
    write_bundle(tmp_path, TENSORS)
    before = (tmp_path / DATA).read_bytes()
    read(tmp_path)["a"].zero_()
    assert (tmp_path / DATA).read_bytes() == before


def test_a_tensor_that_the_system_has_no_room_for_is_told(tmp_path, monkeypatch):
    def refuse(*arguments: object, **more: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    write_bundle(tmp_path, TENSORS)
    tensors, _ = open_bundle(tmp_path, PREFIX)
    monkeypatch.setattr(tensor_bundle, "mmap", refuse)
    with pytest.raises(StorageError, match="data-00000-of-00001 can't be read: Cannot allocate"):
        tensors["a"].read()


def test_every_flipped_byte_of_the_data_is_found_when_it_is_read(tmp_path):
    write_bundle(tmp_path, TENSORS)
    for _ in flip_in_turn(tmp_path / DATA):
        with pytest.raises(DamagedFileError, match=r"is damaged in '[abc]', between bytes \d+ and"):
            read(tmp_path)
    assert_same(read(tmp_path), TENSORS)


def test_data_cut_short_before_or_after_opening(tmp_path):
    write_bundle(tmp_path, TENSORS)
    tensors, _ = open_bundle(tmp_path, PREFIX)
    data = (tmp_path / DATA).read_bytes()
    (tmp_path / DATA).write_bytes(data[:-1])
    with pytest.raises(DamagedFileError, match="has 47 bytes, and 'c' ends at byte 48"):
        open_bundle(tmp_path, PREFIX)
    with pytest.raises(DamagedFileError, match="is damaged in 'c'"):
        tensors["c"].read()
    (tmp_path / DATA).unlink()
    with pytest.raises(MissingFileError, match="doesn't exist"):
        tensors["a"].read()


def test_files_lie_in_the_folder_and_are_files(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    write_files(tmp_path, bundle(TENSORS))
    (folder / f"{PREFIX}.index").symlink_to(tmp_path / f"{PREFIX}.index")
    with pytest.raises(UnsafeFileError, match="is a link that leads out"):
        open_bundle(folder, PREFIX)
    (folder / f"{PREFIX}.index").unlink()
    (folder / f"{PREFIX}.index").mkdir()
    with pytest.raises(DamagedFileError, match=r"ckpt\.index must be a file"):
        open_bundle(folder, PREFIX)
