"""Weights are read from ONNX files of ours, and damaged or foreign ones are refused."""

from pathlib import Path

import onnx
import pytest
import torch
from tests.unit.inference.small import arrays_of, build_config

from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError
from bertkit.checkpoints.onnx_file import open_onnx
from bertkit.checkpoints.torch_tensors import read_tensor
from bertkit.inference.onnx import export as exporter
from bertkit.inference.onnx.export import write_onnx
from bertkit.inference.onnx.models import EXPORTED
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel

WORDS = "bert.embeddings.word_embeddings.weight"


@pytest.fixture
def file(tmp_path):
    torch.manual_seed(0)
    model = BertModel(build_config(vocab_size=12, num_hidden_layers=1))
    write_onnx(tmp_path, model.config, arrays_of(model), EXPORTED["BertModel"])
    return tmp_path / "onnx/model.onnx"


def change(file: Path, /, **values: object) -> None:
    """Write other values into an initializer's fields."""
    model = onnx.load(file, load_external_data=False)
    (tensor,) = (one for one in model.graph.initializer if one.name == WORDS)
    for field, value in values.items():
        if field in ("dims", "external_data"):
            tensor.ClearField(field)
            getattr(tensor, field).extend(value)
        else:
            setattr(tensor, field, value)
    file.write_bytes(model.SerializeToString())


def test_weights_beside_the_file_are_read(tmp_path, monkeypatch):
    model = BertModel(BertConfig.preset("tiny", vocab_size=12))
    monkeypatch.setattr(exporter, "MAX_INLINE_BYTES", 1000)
    records, _ = write_onnx(tmp_path, model.config, arrays_of(model), EXPORTED["BertModel"])
    assert records.keys() == {"onnx/model.onnx", "onnx/model.onnx_data"}
    read = open_onnx(tmp_path / "onnx/model.onnx")
    assert read_tensor(read[WORDS]).equal(model.encoder.embeddings.word.weight)
    turned = "bert.encoder.layer.1.intermediate.dense.weight"
    assert read_tensor(read[turned]).equal(model.encoder.layers[1].feed_forward.up.weight)


def test_a_file_of_another_tool_is_refused(file):
    model = onnx.load(file)
    model.producer_name = "pytorch"
    onnx.save(model, file)
    with pytest.raises(CheckpointError, match="wasn't written by `bertkit export`"):
        open_onnx(file)


@pytest.mark.parametrize(
    ("values", "error", "match"),
    [
        ({"raw_data": b"1234"}, DamagedFileError, "has 4 bytes, and its shape"),
        ({"dims": [1 << 40, 1 << 40]}, DamagedFileError, "bytes, and its shape"),
        ({"dims": [-12, -8]}, DamagedFileError, "expected sizes"),
        ({"dims": [1] * 9}, DamagedFileError, "expected sizes"),
        ({"name": "bert.pooler.dense.bias"}, DamagedFileError, "two initializers"),
        ({"name": "bert.pooler.dense.weight"}, DamagedFileError, "two initializers for"),
        ({"data_type": onnx.TensorProto.FLOAT16}, DamagedFileError, "must hold float32 or int8"),
        ({"raw_data": b""}, DamagedFileError, "must hold float32 or int8"),
    ],
)
def test_a_damaged_initializer_is_refused(file, values, error, match):
    change(file, **values)
    with pytest.raises(error, match=match):
        open_onnx(file)


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "model.onnx", ""])
def test_weights_lie_in_no_other_file(file, location):
    place = {"location": location, "offset": "0", "length": "384"}
    entries = [onnx.StringStringEntryProto(key=key, value=value) for key, value in place.items()]
    change(file, external_data=entries, raw_data=b"")
    with pytest.raises(UnsafeFileError, match=r"expected model\.onnx_data"):
        open_onnx(file)


@pytest.mark.parametrize(
    "place",
    [
        {"offset": "0", "length": "383"},
        {"offset": "17", "length": "384"},
        {"offset": "-1", "length": "384"},
        {"offset": "zero", "length": "384"},
        {"length": "384"},
    ],
)
def test_weights_lie_within_the_file_beside(file, place):
    file.with_name("model.onnx_data").write_bytes(bytes(400))
    place = {"location": "model.onnx_data", **place}
    entries = [onnx.StringStringEntryProto(key=key, value=value) for key, value in place.items()]
    change(file, external_data=entries, raw_data=b"")
    with pytest.raises(DamagedFileError):
        open_onnx(file)


def test_integers_need_their_scales(file):
    model = onnx.load(file)
    (words,) = (one for one in model.graph.initializer if one.name == WORDS)
    words.data_type, words.raw_data = 3, bytes(12 * 8)
    onnx.save(model, file)
    with pytest.raises(DamagedFileError, match="a scale for each of its columns"):
        open_onnx(file)
