"""Files of `torch.save`, beside torch's own reading; what is refused is in tests/hostile."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.pickles import (
    PROTO,
    STOP,
    archive,
    call,
    group,
    integer,
    name,
    old_text,
    state,
    storage,
    stream,
    tensor,
)
from torch import nn

from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError
from bertkit.checkpoints import pytorch_file
from bertkit.checkpoints.pytorch_file import open_pytorch
from bertkit.checkpoints.pytorch_pickle import DTYPES
from bertkit.checkpoints.torch_tensors import read_tensor

BASE = torch.arange(24, dtype=torch.float32).reshape(4, 6)
FORMS = pytest.mark.parametrize("is_archive", [True, False], ids=["archive", "stream"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pytorch_model.bin"


def read(path: Path, data: bytes | None = None) -> dict[str, torch.Tensor]:
    if data is not None:
        path.write_bytes(data)
    tensors = open_pytorch(path)
    read = {key: read_tensor(lazy) for key, lazy in tensors.items()}
    for key, lazy in tensors.items():
        dtype = getattr(torch, lazy.dtype.value)
        assert (lazy.shape, dtype) == (tuple(read[key].shape), read[key].dtype)
    return read


def save(content: object, *, is_archive: bool = True, protocol: int = 2) -> bytes:
    stream = io.BytesIO()
    torch.save(content, stream, pickle_protocol=protocol, _use_new_zipfile_serialization=is_archive)
    return stream.getvalue()


CONTENTS = {
    "module": nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2)).state_dict(),
    "parameters": dict(nn.Linear(3, 2).named_parameters()),
    "dtypes": {
        str(dtype): torch.arange(-3, 3).to(getattr(torch, dtype.value)) for dtype in DTYPES.values()
    },
    "tied": {"a": BASE, "b": BASE},
    "views": {"left": BASE[:, :3], "right": BASE[:, 3:]},
    "transposed": {"t": BASE.t(), "middle": torch.arange(10)[3:7]},
    "shapes": {
        "scalar": torch.tensor(3.0),
        "empty": torch.empty(0, 3),
        "four": torch.rand(2, 1, 3, 2),
        "expanded": torch.arange(5).expand(1, -1),
    },
    "odd": {"bytes": torch.ByteTensor([1, 2, 3]), "double": torch.rand(3, dtype=torch.float64)},
    "gradient": {"a": torch.rand(2, requires_grad=True)},
    "nothing": {},
}


@FORMS
@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_tensors_are_those_that_torch_reads(content, protocol, is_archive, path):
    data = save(content, is_archive=is_archive, protocol=protocol)
    expected = torch.load(io.BytesIO(data), weights_only=False)
    tensors = read(path, data)
    assert list(tensors) == list(expected)
    for key, value in expected.items():
        assert tensors[key].dtype == value.dtype
        assert torch.equal(tensors[key], value.detach())
        assert tensors[key].is_contiguous()


@FORMS
def test_tied_tensors_share_their_memory_and_the_file_is_never_written_to(is_archive, path):
    data = save(CONTENTS["tied"], is_archive=is_archive)
    tensors = read(path, data)
    if is_archive:  # the older form aligns nothing, and a copy is a copy
        assert tensors["a"].data_ptr() == tensors["b"].data_ptr()
    tensors["a"].zero_()
    assert path.read_bytes() == data
    assert torch.equal(read(path)["a"], BASE)


def test_nothing_is_read_before_it_is_asked_for(path, monkeypatch):
    path.write_bytes(save({"a": BASE, "b": BASE + 1}))
    monkeypatch.setattr(np, "frombuffer", lambda *_, **__: pytest.fail("read"))
    assert list(open_pytorch(path)) == ["a", "b"]


def test_what_python_2_and_the_first_versions_wrote_is_read(path):
    """Strings of bytes, `OrderedDict` with a list of pairs, `_rebuild_tensor` without `_v2`."""
    place = group(
        old_text("storage"),
        name("torch.FloatStorage"),
        old_text("94"),
        old_text("cuda:0"),
        integer(4),
        b"N",
    )
    first = call(
        "torch._utils._rebuild_tensor",
        place + b"Q",
        integer(1),
        group(integer(3)),
        group(integer(1)),
    )
    pairs = b"](](" + old_text("a") + first + b"ee"
    content = PROTO + call("collections.OrderedDict", pairs) + STOP
    data = stream(content, [("94", 4, struct.pack("<4f", 0, 1, 2, 3))])
    assert read(path, data)["a"].tolist() == [1, 2, 3]


def test_a_boolean_is_true_or_false(path):
    place = storage(kind="torch.BoolStorage", num_elements=3)
    data = archive(state({"a": tensor(place, size=[3])}), {"0": b"\x00\x01\x02"})
    assert read(path, data)["a"].view(torch.uint8).tolist() == [0, 1, 1]


def test_an_archive_without_checksums_is_read(path):
    torch.serialization.set_crc32_options(False)
    try:
        data = save({"a": BASE})
    finally:
        torch.serialization.set_crc32_options(True)
    assert read(path, data)["a"].equal(BASE)


def test_a_pickle_larger_than_any_is_not_read(path, monkeypatch):
    monkeypatch.setattr(pytorch_file, "MAX_PICKLE_BYTES", 100)
    with pytest.raises(UnsafeFileError, match=r"bytes of data\.pkl; no weights need over 100"):
        read(path, archive(state({"a": tensor()})))
    with pytest.raises(DamagedFileError, match="was cut short or altered"):
        read(path, stream(state({"a": tensor()})))


@pytest.mark.parametrize("has_optimizer", [False, True])
@pytest.mark.parametrize("key", ["state_dict", "model's"])
@FORMS
def test_the_advice_for_a_training_checkpoint_gets_its_weights(
    key, has_optimizer, is_archive, path
):
    weights = {"a": BASE, "b": BASE[0].clone()}
    content = {"epoch": 3, key: weights}
    if has_optimizer:
        content["optimizer"] = {"state": {0: {"step": 2, "exp_avg": BASE}}}
    with pytest.raises(CheckpointError, match="save its weights alone: ") as caught:
        read(path, save(content, is_archive=is_archive))
    advice = str(caught.value).rpartition("weights alone: ")[2]
    assert "\n" not in str(caught.value)
    assert f"holds a dict of tensors under {key!r}" in str(caught.value)
    exec(advice, {"torch": torch, "path": path})
    assert all(torch.equal(tensor, weights[name]) for name, tensor in read(path).items())


WHOLE = archive(state({"a": tensor()}))


def test_a_directory_beyond_its_limits_is_refused(path, monkeypatch):
    monkeypatch.setattr(pytorch_file, "MAX_ENTRIES", 2)
    with pytest.raises(UnsafeFileError, match="has 4 entries"):
        read(path, WHOLE)
    monkeypatch.setattr(pytorch_file, "MAX_DIRECTORY_BYTES", 100)
    with pytest.raises(
        UnsafeFileError, match=r"zip directory of \d+ bytes; no weights need over 100"
    ):
        read(path, WHOLE)
