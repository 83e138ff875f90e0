"""An exported file is loaded by ONNX Runtime and gives what our model gives."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray
from tests.closeness import assert_close
from tests.unit.inference.small import arrays_of, build_config
from torch import nn

from bertkit.checkpoints.sentence_modules import ACTIVATIONS as DENSE_ACTIVATIONS
from bertkit.checkpoints.sentence_modules import POOLING_FLAGS, Dense, Normalize, Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel
from bertkit.checkpoints.torch_tensors import lazy_tensor
from bertkit.inference.embeddings.pooling import SentenceHead, Span
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.engines.torch_engine import TorchEngine
from bertkit.inference.onnx import export as module
from bertkit.inference.onnx.activations import ACTIVATIONS as ACTIVATION_NODES
from bertkit.inference.onnx.export import write_onnx
from bertkit.inference.onnx.models import EXPORTED
from bertkit.inference.onnx.sentences import DENSE_NODES, POOLING_NODES
from bertkit.models.bert.encoder import BertModel
from bertkit.nn.block import ACTIVATIONS
from bertkit.nn.packed_ids import PackedIds
from bertkit.nn.packing import PackedBatch

IDS = torch.tensor([[2, 5, 6, 7, 3], [2, 9, 3, 0, 0], [3, 0, 0, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 1, 1, 1], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0]])


def build(activation: str = "gelu", *, has_pooler: bool = True) -> BertModel:
    torch.manual_seed(0)
    config = build_config(vocab_size=12, hidden_act=activation)
    model = BertModel(config, has_pooler=has_pooler).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


def write(folder: Path, model: BertModel, sentences: SentenceModel | None = None) -> Any:
    return write_onnx(folder, model.config, arrays_of(model), EXPORTED["BertModel"], sentences)[0]


def run(folder: Path) -> dict[str, torch.Tensor]:
    session = onnxruntime.InferenceSession(
        folder / "onnx/model.onnx", providers=["CPUExecutionProvider"]
    )
    inputs = {"input_ids": IDS, "attention_mask": MASK, "token_type_ids": SEGMENTS}
    names = [output.name for output in session.get_outputs()]
    values: Any = session.run(names, {name: ids.numpy() for name, ids in inputs.items()})
    return {name: torch.from_numpy(value) for name, value in zip(names, values, strict=True)}


def pack() -> PackedBatch:
    return PackedBatch.from_padded(IDS, SEGMENTS, MASK.bool())


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_hidden_states_and_pooler_agree(tmp_path, activation):
    model = build(activation)
    write(tmp_path, model)
    onnx.checker.check_model(tmp_path / "onnx/model.onnx", full_check=True)
    found = run(tmp_path)
    expected = model(IDS, SEGMENTS, MASK)
    real = MASK.bool()
    assert found.keys() == {"last_hidden_state", "pooler_output"}
    for name, tensor in found.items():
        wanted = getattr(expected, name)
        chosen = (tensor[real], wanted[real]) if name == "last_hidden_state" else (tensor, wanted)
        assert_close(*chosen)


def test_operators_are_standard_ones(tmp_path):
    write(tmp_path, build())
    model = onnx.load(tmp_path / "onnx/model.onnx")
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", 17)]
    shapes = {
        value.name: [size.dim_param or size.dim_value for size in value.type.tensor_type.shape.dim]
        for value in [*model.graph.input, *model.graph.output]
    }
    assert shapes == {
        "input_ids": ["batch", "length"],
        "attention_mask": ["batch", "length"],
        "token_type_ids": ["batch", "length"],
        "last_hidden_state": ["batch", "length", 8],
        "pooler_output": ["batch", 8],
    }


def test_a_model_without_pooler_has_no_such_output(tmp_path):
    write(tmp_path, build(has_pooler=False))
    assert run(tmp_path).keys() == {"last_hidden_state"}


def unpad(rows: torch.Tensor) -> list[list[int]]:
    return [row[real].tolist() for row, real in zip(rows, MASK.bool(), strict=True)]


def embed(model: BertModel, sentences: SentenceModel) -> NDArray[np.float32]:
    head = SentenceHead.build(sentences, EmbedderSettings(), 8)
    ids = PackedIds.from_sequences(*map(unpad, (IDS, SEGMENTS)))
    pooled = head.pool(TorchEngine(model, head.layers)(ids), Span.of(ids, [0] * 3))
    return head.finish(pooled)


@pytest.mark.parametrize("mode", POOLING_FLAGS.values())
def test_each_way_of_pooling_agrees_with_ours(tmp_path, mode):
    model, sentences = build(), SentenceModel((Pooling(8, (mode,)),), max_seq_length=20)
    write(tmp_path, model, sentences)
    onnx.checker.check_model(tmp_path / "onnx/model.onnx", full_check=True)
    found = run(tmp_path)["sentence_embedding"]
    assert_close(found, embed(model, sentences))


@pytest.mark.parametrize("activation", DENSE_ACTIVATIONS)
@pytest.mark.parametrize("has_bias", [True, False])
def test_dense_layers_and_scaling_and_cutting_agree_with_ours(tmp_path, activation, has_bias):
    torch.manual_seed(1)
    linear = nn.Linear(16, 6)
    bias = lazy_tensor(linear.bias) if has_bias else None
    modules = (
        Pooling(8, ("mean", "max")),
        Dense(lazy_tensor(linear.weight), bias, activation),
        Normalize(),
    )
    sentences = SentenceModel(modules, max_seq_length=20, truncate_dimension=4)
    model = build()
    write(tmp_path, model, sentences)
    onnx.checker.check_model(tmp_path / "onnx/model.onnx", full_check=True)
    found = run(tmp_path)["sentence_embedding"]
    assert found.shape == (3, 4)
    assert_close(found, embed(model, sentences))


def test_weights_of_a_large_model_lie_beside_it(tmp_path, monkeypatch):
    model = build()
    (tmp_path / "small").mkdir()
    write(tmp_path / "small", model)
    monkeypatch.setattr(module, "MAX_INLINE_BYTES", 1000)
    records = write(tmp_path, model)
    assert records.keys() == {"onnx/model.onnx", "onnx/model.onnx_data"}
    for name, record in records.items():
        assert (tmp_path / name).stat().st_size == record.size_bytes
    onnx.checker.check_model(tmp_path / "onnx/model.onnx", full_check=True)
    for name, tensor in run(tmp_path / "small").items():
        assert torch.equal(run(tmp_path)[name], tensor)
    declared = onnx.load(tmp_path / "onnx/model.onnx", load_external_data=False).graph.initializer
    offsets = [
        int(entry.value)
        for tensor in declared
        for entry in tensor.external_data
        if entry.key == "offset"
    ]
    assert len(offsets) > 30
    assert all(offset % 4096 == 0 for offset in offsets)


def test_tables_have_all_that_models_have():
    assert ACTIVATION_NODES.keys() == ACTIVATIONS.keys()
    assert POOLING_NODES.keys() == set(POOLING_FLAGS.values())
    assert DENSE_NODES.keys() == DENSE_ACTIVATIONS.keys()


def test_padding_on_the_left_is_seen_as_padding(tmp_path):
    """Positions count columns, as in transformers; the mean leaves padding out wherever it is."""
    sentences = SentenceModel((Pooling(8, ("mean",)),), max_seq_length=20)
    model = build()
    write(tmp_path, model, sentences)
    session = onnxruntime.InferenceSession(tmp_path / "onnx/model.onnx")
    ids = np.array([[0, 0, 2, 5, 3]])
    inputs = {
        "input_ids": ids,
        "attention_mask": (ids > 0).astype(np.int64),
        "token_type_ids": 0 * ids,
    }
    (states, vectors) = session.run(["last_hidden_state", "sentence_embedding"], inputs)
    assert_close(vectors[0], states[0, 2:].mean(axis=0))
