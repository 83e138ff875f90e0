"""The export target onnx: `model.onnx`, which ONNX Runtime, OpenVINO and others load.

The weights of a large model are in `model.onnx_data` beside it, because a protocol buffer file
holds at most two gigabytes and is read into memory whole.
"""

from pathlib import Path
from typing import Any

from torch import Tensor

from bertkit.base.checksums import FileRecord
from bertkit.base.files import durable_file, write_file
from bertkit.checkpoints.sentence_transformers.folder import SentenceModel
from bertkit.exporters.onnx_graph import OnnxGraph, Shape
from bertkit.exporters.onnx_padded import INPUTS, OPSET, write_encoder, write_pooler
from bertkit.exporters.onnx_sentences import count_features, write_sentence
from bertkit.models.bert.encoder import BertModel

MODEL_FILE = "model.onnx"
DATA_FILE = "model.onnx_data"
MAX_INLINE_BYTES = 1 << 30
ALIGNMENT_BYTES = 4096  # so that a reader can memory-map each weight


def write_onnx(
    folder: Path, model: BertModel, sentences: SentenceModel | None
) -> dict[str, FileRecord]:
    """Write a model as an ONNX file.

    Its inputs are `input_ids`, `attention_mask` and `token_type_ids`, `[batch, length]`, int64. Its
    outputs, all float32, are `last_hidden_state`, `[batch, length, hidden]`, `pooler_output`,
    `[batch, hidden]`, if there is a pooler, and `sentence_embedding`, `[batch, features]`, if
    `sentences` is given.

    Args:
        folder: an existing folder.
        model: on a CPU.
        sentences: the modules that turn the model's output into a sentence embedding.

    Returns:
        Size and checksums of each file, by name.
    """
    graph = OnnxGraph(OPSET)
    size = model.config.hidden_size
    tokens = write_encoder(graph, model.encoder, model.config)
    outputs: dict[str, Shape] = {tokens: ("batch", "length", size)}
    if model.pooler is not None:
        outputs[write_pooler(graph, model.pooler, tokens)] = ("batch", size)
    if sentences is not None:
        vectors = write_sentence(graph, sentences, tokens)
        outputs[vectors] = ("batch", count_features(sentences))
    proto = graph.build(INPUTS, outputs)
    records: dict[str, FileRecord] = {}
    if sum(4 * weight.numel() for weight in graph.weights.values()) > MAX_INLINE_BYTES:
        records[DATA_FILE] = _write_weights(folder / DATA_FILE, proto, graph.weights)
    else:
        _take_weights_in(proto, graph.weights)
    records[MODEL_FILE] = write_file(folder / MODEL_FILE, proto.SerializeToString())
    return records


def _take_weights_in(proto: Any, weights: dict[str, Tensor]) -> None:
    for declared in proto.graph.initializer:
        if declared.name in weights:
            declared.ClearField("external_data")
            declared.ClearField("data_location")
            declared.raw_data = _as_bytes(weights[declared.name]).tobytes()


def _write_weights(path: Path, proto: Any, weights: dict[str, Tensor]) -> FileRecord:
    """Write the weights one after another, and record the position of each in the model."""
    offset = 0
    with durable_file(path) as file:
        for declared in proto.graph.initializer:
            if declared.name not in weights:
                continue
            padding = -offset % ALIGNMENT_BYTES
            file.write(bytes(padding))
            content = _as_bytes(weights[declared.name])
            file.write(content)
            declared.ClearField("external_data")
            place = {"location": path.name, "offset": offset + padding, "length": content.nbytes}
            for key, value in place.items():
                declared.external_data.add(key=key, value=str(value))
            offset += padding + content.nbytes
    return file.record()


def _as_bytes(weight: Tensor) -> memoryview:
    """Return a weight as bytes: float32, little-endian, row-major."""
    values = weight.float().contiguous().numpy().astype("<f4", copy=False)
    return values.data.cast("B")
