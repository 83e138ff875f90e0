"""The bundle: what TensorFlow wrote comes back bit for bit, and nothing that isn't so passes."""

import errno
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.bundles import DTYPES as NUMBERS
from tests.bundles import (
    PREFIX,
    Pairs,
    bundle,
    entry,
    field,
    flip_in_turn,
    header,
    masked_crc,
    tensor_bytes,
    write_bundle,
    write_files,
)
from torch import Tensor

from bertkit.base.errors import (
    CheckpointError,
    DamagedFileError,
    MissingFileError,
    StorageError,
    UnsafeFileError,
)
from bertkit.checkpoints import tensor_bundle
from bertkit.checkpoints.tensor_bundle import DTYPES, open_bundle

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "tensorflow"
TENSORS = {
    "a": torch.arange(6.0).reshape(2, 3),
    "b": torch.tensor(7),
    "c": torch.arange(-4, 4, dtype=torch.bfloat16),
}
DATA = f"{PREFIX}.data-00000-of-00001"


def read(folder: Path) -> dict[str, Tensor]:
    return {name: tensor.read() for name, tensor in open_bundle(folder, PREFIX)[0].items()}


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
    assert_same({name: tensor.read() for name, tensor in tensors.items()}, read_golden())
    assert {name: tensor.shape for name, tensor in tensors.items()} == {
        name: tensor.shape for name, tensor in read_golden().items()
    }


def test_our_writer_writes_tensorflows_bytes():
    for name, data in bundle(read_golden()).items():
        assert data == (GOLDEN / name).read_bytes(), name


def test_every_type_comes_back(tmp_path):
    assert {NUMBERS[dtype]: dtype for dtype in NUMBERS} == DTYPES
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


CHECKSUM = masked_crc(tensor_bytes(TENSORS["a"]))


def entry_of_a(**changes: int) -> Callable[[Pairs], None]:
    """An edit after which the entry of `a` says something else."""
    values = {"offset": 0, "size": 24, "checksum": CHECKSUM, **changes}
    return lambda pairs: pairs.update({b"a": entry((2, 3), **values)})


def shape_of_a(*shape: int) -> Callable[[Pairs], None]:
    return lambda pairs: pairs.update({b"a": entry(shape, 0, 24, CHECKSUM)})


def header_is(**values: int) -> Callable[[Pairs], None]:
    return lambda pairs: pairs.update({b"": header(**values)})


@pytest.mark.parametrize(
    ("edit", "error", "message"),
    [
        (lambda pairs: pairs.pop(b""), DamagedFileError, "it has no header"),
        (header_is(endianness=1), CheckpointError, "is of a big-endian machine"),
        (header_is(endianness=2), DamagedFileError, "1 data files, byte order 2"),
        (header_is(num_shards=-1), DamagedFileError, "-1 data files"),
        (header_is(num_shards=1001), UnsafeFileError, "1,001 data files; at most 1,000"),
        (header_is(min_consumer=2), CheckpointError, "a reader of version 2, and this one has 1"),
        (entry_of_a(dtype=7), CheckpointError, "'a', has TensorFlow's type 7; read are float32, f"),
        (entry_of_a(dtype=2), DamagedFileError, r"\[2, 3\] of torch.float64 can't have 24 bytes"),
        (entry_of_a(size=20), DamagedFileError, "can't have 20 bytes"),
        (entry_of_a(offset=-1), DamagedFileError, "can't have 24 bytes at -1"),
        (entry_of_a(offset=1 << 40), DamagedFileError, "'a' ends at byte 1,099,511,627,800"),
        (entry_of_a(offset=8), UnsafeFileError, "'a' lies over another tensor|'b' lies over"),
        (entry_of_a(shard=1), DamagedFileError, "it lies in data file 1 of 1"),
        (entry_of_a(shard=-1), DamagedFileError, "it lies in data file -1 of 1"),
        (entry_of_a(checksum=0), DamagedFileError, "damaged in 'a', between bytes 0 and 24"),
        (shape_of_a(2, -3), DamagedFileError, r"its shape is \[2, -3\], and must have"),
        (shape_of_a(0, 1 << 62), DamagedFileError, "each at least 1"),
        (shape_of_a(1, 1, 1, 1, 1, 1, 1, 2, 3), DamagedFileError, "at most 8 sizes"),
        (shape_of_a(1 << 62, 1 << 62), DamagedFileError, "can't have 24 bytes"),
        (
            lambda pairs: pairs.update({b"a": entry((2, 3), 0, 24, 0, slices=field(1, b""))}),
            CheckpointError,
            "holds variables in slices, 'a' among them",
        ),
        (lambda pairs: pairs.update({b"\0a": pairs[b"a"]}), CheckpointError, "in slices"),
        (lambda pairs: pairs.update({b"\x1b[2J": pairs[b"a"]}), DamagedFileError, "can't be a nam"),
        (
            lambda pairs: pairs.update({b"_CHECKPOINTABLE_OBJECT_GRAPH": b""}),
            CheckpointError,
            "tf.train.Checkpoint of TensorFlow 2",
        ),
    ],
)
def test_an_index_that_lies_is_refused(tmp_path, edit, error, message):
    write_files(tmp_path, bundle(TENSORS, edit=edit))
    with pytest.raises(error, match=message) as caught:
        read(tmp_path)
    assert type(caught.value) is error


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
