import collections
import io
import pickle
import re
import signal
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pickles import (
    PROTO,
    STOP,
    archive,
    call,
    group,
    integer,
    name,
    old_text,
    pack,
    state,
    storage,
    stream,
    tensor,
    text,
)
from torch import nn

from bertkit.base.errors import (
    BertkitError,
    CheckpointError,
    DamagedFileError,
    MissingFileError,
    UnsafeFileError,
)
from bertkit.checkpoints import pytorch_file
from bertkit.checkpoints.pytorch_file import DTYPES, open_pytorch

BASE = torch.arange(24, dtype=torch.float32).reshape(4, 6)
FORMS = pytest.mark.parametrize("is_archive", [True, False], ids=["archive", "stream"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pytorch_model.bin"


def read(path: Path, data: bytes | None = None) -> dict[str, torch.Tensor]:
    if data is not None:
        path.write_bytes(data)
    tensors = open_pytorch(path)
    read = {key: lazy.read() for key, lazy in tensors.items()}
    for key, lazy in tensors.items():
        assert (lazy.shape, lazy.dtype) == (tuple(read[key].shape), read[key].dtype)
    return read


def save(content: object, *, is_archive: bool = True, protocol: int = 2) -> bytes:
    stream = io.BytesIO()
    torch.save(content, stream, pickle_protocol=protocol, _use_new_zipfile_serialization=is_archive)
    return stream.getvalue()


CONTENTS = {
    "module": nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2)).state_dict(),
    "parameters": dict(nn.Linear(3, 2).named_parameters()),
    "dtypes": {str(dtype): torch.arange(-3, 3).to(dtype) for dtype in DTYPES.values()},
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
    monkeypatch.setattr(torch, "frombuffer", lambda *_, **__: pytest.fail("read"))
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


def test_an_altered_tensor_is_not_found(path):
    data = bytearray(save({"a": BASE, "b": BASE + 100}))
    data[data.index(struct.pack("<f", 123))] ^= 1
    tensors = read(path, bytes(data))
    assert tensors["a"].equal(BASE)
    assert tensors["b"].ne(BASE + 100).sum() == 1


@pytest.mark.parametrize("writes_checksums", [True, False])
def test_an_archive_without_checksums_is_read(writes_checksums, path):
    torch.serialization.set_crc32_options(writes_checksums)
    try:
        data = save({"a": BASE})
    finally:
        torch.serialization.set_crc32_options(True)
    assert read(path, data)["a"].equal(BASE)


def test_an_altered_pickle_is_always_found(path):
    data = bytearray(save({"weight": BASE}))
    data[data.index(b"weight")] ^= 1
    with pytest.raises(DamagedFileError, match=r"was altered in data\.pkl"):
        read(path, bytes(data))


def tar() -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:", format=tarfile.PAX_FORMAT) as file:
        file.addfile(tarfile.TarInfo("storages"), io.BytesIO())
    return written.getvalue()


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", DamagedFileError, "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", DamagedFileError, "pointer of git-lfs"),
        (b"<!doctype html><html>", DamagedFileError, "a web page"),
        (b'{"error": "gone"}', DamagedFileError, "JSON"),
        (b"\x20" + bytes(7) + b'{"a":{}}', DamagedFileError, "a safetensors file; name it model"),
        (b"\x89HDF\r\n", DamagedFileError, "an HDF5 file"),
        (b"hello", DamagedFileError, "torch.save writes: it begins with b'hello'"),
        (tar(), CheckpointError, "the tar form of torch before 0.1.10"),
        (pickle.dumps({"a": 1}, 2), DamagedFileError, "is a pickle, but not of torch.save"),
        (pack({"data.pkl": b""}), DamagedFileError, "a zip archive without one data.pkl"),
        (pack({"a/b/data.pkl": b""}), DamagedFileError, "a zip archive without one data.pkl"),
        (pack({"a/data.pkl": b"", "b/data.pkl": b""}), DamagedFileError, "without one data.pkl"),
        (archive(b"", **{"code/a.py": b""}), UnsafeFileError, "is a TorchScript program"),
        (archive(b"", **{"constants.pkl": b""}), UnsafeFileError, "is a TorchScript program"),
        (archive(b"", byteorder=b"big"), CheckpointError, "numbers in byte order b'big'"),
        (stream(b"", protocol=1000), DamagedFileError, "not of torch.save in its protocol 1001"),
        (stream(b"", system={"little_endian": False}), CheckpointError, "a little-endian machine"),
        (stream(b"", system=1), CheckpointError, "a little-endian machine"),
        (stream(state({}), keys=1), DamagedFileError, "doesn't list the 0 storages"),
        (stream(state({})), DamagedFileError, "doesn't list the 0 storages"),
        (stream(state({"a": tensor()}), keys=["0", "0"]), DamagedFileError, "list the 1 storages"),
        (stream(state({"a": tensor()}))[:-1], DamagedFileError, "4 elements of storage '0' from"),
        (stream(state({"a": tensor()})) + b"\0", DamagedFileError, "has 1 bytes behind its last"),
        (stream(state({"a": tensor()}), [("0", 3, bytes(16))]), DamagedFileError, "should have 4"),
        (stream(state({"a": tensor()}), [("0", -4, bytes(16))]), DamagedFileError, "should have 4"),
        (archive(state({"a": tensor()}), {}), DamagedFileError, "in 'data/0', which isn't there"),
        (archive(state({"a": tensor()}), {"0": bytes(17)}), DamagedFileError, "which has 17"),
        (archive(state({"a": tensor()}), {"0": bytes(12)}), DamagedFileError, "should have 16"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_is_no_file_of_weights_says_so(data, error, message, path):
    with pytest.raises(error, match=re.escape(message)) as caught:
        read(path, data)
    assert str(caught.value).startswith(str(path))
    assert type(caught.value) is error


def test_a_pickle_larger_than_any_is_not_read(path, monkeypatch):
    monkeypatch.setattr(pytorch_file, "MAX_PICKLE_BYTES", 100)
    with pytest.raises(UnsafeFileError, match=r"bytes of data\.pkl; no weights need over 100"):
        read(path, archive(state({"a": tensor()})))
    with pytest.raises(DamagedFileError, match="was cut short or altered"):
        read(path, stream(state({"a": tensor()})))


def test_a_missing_file_and_a_folder_are_missing(path):
    with pytest.raises(MissingFileError, match=r"pytorch_model\.bin"):
        open_pytorch(path)
    with pytest.raises(MissingFileError, match="doesn't exist"):
        open_pytorch(path.parent)


HUGE = 1 << 62
OTHER = storage("1", num_elements=2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (tensor(size=[1 << 30], stride=[0]), "wants 1,073,741,824 elements for 'a' that reach to"),
        (tensor(size=[5], stride=[0]), "wants 5 elements for 'a'"),
        (tensor(size=[5]), "reach to number 5 of a storage of 4"),
        (tensor(offset=1), "reach to number 5 of a storage of 4"),
        (tensor(size=[2, 2], stride=[3, 1]), "reach to number 5 of a storage of 4"),
        (tensor(offset=HUGE, size=[1]), "reach to number"),
        (tensor(size=[2], stride=[HUGE]), "reach to number"),
        (tensor(size=[HUGE, HUGE], stride=[HUGE, 1]), "wants"),
        (tensor(offset=-1), "a negative offset, size or stride for 'a'"),
        (tensor(offset=1, stride=[-1], size=[2]), "a negative offset, size or stride for 'a'"),
        (tensor(size=[-1]), "a negative offset, size or stride for 'a'"),
        (tensor(offset=5, size=[0]), "reach to number 5 of a storage of 4"),
        (tensor(size=[0, HUGE], stride=[1, 1]), "an empty tensor with sizes beyond use, 'a'"),
        (tensor(size=[1] * 9, stride=[1] * 9), "a tensor with 9 sizes and 9 strides"),
        (tensor(size=[1], stride=[]), "a tensor with 1 sizes and 0 strides"),
        (tensor(storage(kind="torch.OrderedDict")), "asks to call torch.OrderedDict"),
        (tensor(storage(kind="torch.ComplexFloatStorage")), "call torch.ComplexFloatStorage"),
        (tensor(storage(num_elements=-1)), "asks for -1 elements of torch.FloatStorage"),
        (tensor(storage().replace(b"storage", b"modules")), "as 'modules'; expected a storage"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_tensor_that_cannot_be_is_refused(value, message, path):
    for data in (archive(state({"a": value})), stream(state({"a": value}))):
        with pytest.raises(UnsafeFileError, match=re.escape(message)):
            read(path, data)


def test_tensors_together_take_no_more_than_their_storages(path):
    halves = {"a": tensor(size=[2]), "b": tensor(offset=2, size=[2]), "c": tensor(size=[2])}
    assert read(path, archive(state(halves))).keys() == halves.keys()
    with pytest.raises(UnsafeFileError, match="tensors of 20 bytes that view the same 16 bytes"):
        read(path, archive(state(halves | {"d": tensor(offset=3, size=[1])})))


def test_tensors_are_no_more_than_a_model_has(path, monkeypatch):
    monkeypatch.setattr(pytorch_file, "MAX_TENSORS", 1)
    assert len(read(path, archive(state({"a": tensor()})))) == 1
    with pytest.raises(UnsafeFileError, match=r"has 2 tensors; no model needs over 1$"):
        read(path, archive(state({"a": tensor(), "b": tensor()})))


def test_a_storage_named_twice_is_the_same(path):
    other = {"a": tensor(), "b": tensor(storage(kind="torch.IntStorage"))}
    with pytest.raises(DamagedFileError, match="the storage '0' twice, and differently"):
        read(path, archive(state(other)))


@pytest.mark.parametrize(
    "value",
    [
        tensor(storage(kind="collections.OrderedDict")),
        tensor(text("0") + b"Q"),
        tensor(storage()[:-2] + group(text("1"), integer(0), integer(1)) + b"tQ"),
        tensor(b"N"),
        tensor(size=[], stride=[]).replace(b"(t(t", b"(Nt(Nt"),
        tensor()[:-2] + b"}tR",
        call("torch._utils._rebuild_parameter", tensor()),
        call("collections.OrderedDict", b"N"),
        call("collections.OrderedDict", b"](Ne"),
        call("collections.OrderedDict", b"]", b"]"),
        call("torch.FloatStorage", integer(1 << 40)),
        b"N" + b"\x85" * 100_000,
        b")" + b"".join(b"q%ch%c\x86" % (index, index) for index in range(200)),
    ],
)
def test_what_has_another_form_than_a_state_dict_is_refused(value, path):
    for content in (state({"a": value}), PROTO + b"}" + value + b"Ns" + STOP):
        for data in (archive(content), stream(content)):
            with pytest.raises(CheckpointError, match="something other than tensors"):
                read(path, data)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (b"(ios\nsystem\n", "has the pickle operation b'i' at byte 3"),
        (b"\x81", "has the pickle operation b'\\\\x81'"),
        (PROTO, "has the pickle operation"),
        (b"\x8a\x20" + b"\x7f" * 32, "has an integer of over 128 bits"),
        (b"N" * 250_000, "a pickle of over 250,000 operations"),
        (name("os.system"), r"asks to call os\.system, which no weights need"),
        (text("os") + text("system") + b"\x93", r"asks to call os\.system"),
    ],
)
def test_operations_that_no_weights_need_are_refused(program, message, path):
    with pytest.raises(UnsafeFileError, match=message):
        read(path, archive(PROTO + program + STOP))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        PROTO,
        b"\x80\x05N.",
        PROTO + b"h\x00.",
        PROTO + b"X\xff\xff\xff\xffa.",
        PROTO + b"N\x93.",
    ],
)
def test_a_broken_pickle_is_damaged(content, path):
    with pytest.raises(DamagedFileError, match=r"has (a|no) pickle"):
        read(path, archive(content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (BASE, "holds something other than tensors; expected a dict of tensors"),
        ([BASE], "holds something other than tensors; expected a dict"),
        ({"a": BASE, "step": 3}, "holds something other than tensors under 'step'"),
        ({"state_dict": {}}, "under 'state_dict'"),
        ({"rate": 0.5}, "under 'rate'"),
        ({3: BASE}, "holds something other than tensors; "),
    ],
)
@FORMS
def test_what_is_no_dict_of_tensors_is_named(content, message, is_archive, path):
    with pytest.raises(CheckpointError, match=re.escape(message)):
        read(path, save(content, is_archive=is_archive))


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


def patched(place: int, form: str, value: int) -> bytes:
    """Such an archive with a number of its directory's first entry changed."""
    data = bytearray(WHOLE)
    struct.pack_into(form, data, data.index(b"PK\x01\x02") + place, value)
    return bytes(data)


def test_a_whole_module_is_refused(path):
    with pytest.raises(UnsafeFileError, match=r"asks to call torch\.nn\.modules\.linear\.Linear,"):
        read(path, save(nn.Linear(2, 2)))


def test_an_entry_beside_the_archives_folder_is_none_of_its(path):
    entries = {"m/data.pkl": state({"a": tensor()}), "m/version": b"3", "data/0": bytes(16)}
    with pytest.raises(DamagedFileError, match="which isn't there"):
        read(path, pack(entries))


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (pack({"m/data.pkl": b""}, zipfile.ZIP_DEFLATED), UnsafeFileError, "a compressed or"),
        (pack({"m/data.pkl": bytes(1 << 20)}, zipfile.ZIP_LZMA), UnsafeFileError, "compressed"),
        (patched(24, "<L", 1 << 30), UnsafeFileError, "entries that are compressed or overlap"),
        (patched(42, "<L", 1 << 30), DamagedFileError, "an entry that isn't where it should be"),
        (patched(42, "<L", 7), DamagedFileError, "an entry that isn't where it should be"),
        (patched(8, "<H", 1), UnsafeFileError, "a compressed or encrypted entry"),
        (patched(0, "<H", 0), DamagedFileError, "isn't a whole zip archive"),
        (WHOLE[:-1], DamagedFileError, "isn't a whole zip archive"),
    ],
)
def test_an_archive_that_torch_does_not_write_is_refused(data, error, message, path):
    with pytest.raises(error, match=message):
        read(path, data)


def test_two_entries_of_one_name_are_refused(path):
    data = pack({"m/data.pkl": b"", "m/data/0": b"", "m/data/1": b""})
    with pytest.raises(UnsafeFileError, match="two of one name"):
        read(path, data.replace(b"data/1", b"data/0"))


def test_a_directory_beyond_its_limits_is_refused(path, monkeypatch):
    monkeypatch.setattr(pytorch_file, "MAX_ENTRIES", 2)
    with pytest.raises(UnsafeFileError, match="has 4 entries"):
        read(path, WHOLE)
    monkeypatch.setattr(pytorch_file, "MAX_DIRECTORY_BYTES", 100)
    with pytest.raises(
        UnsafeFileError, match=r"zip directory of \d+ bytes; no weights need over 100"
    ):
        read(path, WHOLE)


SMALL = {
    is_archive: save(
        collections.OrderedDict(a=BASE[:2, :2].clone(), b=BASE.t()), is_archive=is_archive
    )
    for is_archive in (True, False)
}


@FORMS
@settings(max_examples=100)
@given(data=st.data())
def test_an_altered_file_is_refused_or_read(is_archive, data, tmp_path_factory):
    content = bytearray(SMALL[is_archive])
    kind = data.draw(st.sampled_from(["flip", "cut", "insert"]))
    place = data.draw(st.integers(0, len(content) - 1))
    if kind == "flip":
        content[place] ^= data.draw(st.integers(1, 255))
    elif kind == "cut":
        del content[place:]
    else:
        content[place:place] = data.draw(st.binary(min_size=1, max_size=9))
    path = tmp_path_factory.getbasetemp() / "altered.bin"
    try:
        tensors = read(path, bytes(content))
    except BertkitError:
        return
    assert sum(value.nbytes for value in tensors.values()) <= len(content)


TUPLES_IN_TUPLES = b"\x80\x02}()" + b"\x85" * 240_000 + b"K\x01u."  # as the only key of a dict
LOAD = "import sys, torch; torch.load(sys.argv[1], weights_only=True)"


def test_a_key_that_ends_torch_is_refused_by_us(path):
    """The reason why `torch.load` doesn't read for us; without it, `pytorch_file.py` could."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", TUPLES_IN_TUPLES)
        file.writestr("archive/version", "3")
        file.writestr("archive/byteorder", "little")
    result = subprocess.run([sys.executable, "-c", LOAD, path], capture_output=True, check=False)
    assert result.returncode == -signal.SIGSEGV
    with pytest.raises(BertkitError, match=r"pytorch_model\.bin"):
        open_pytorch(path)
