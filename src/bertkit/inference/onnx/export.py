"""A model as ONNX: `onnx/model.onnx`, which ONNX Runtime, transformers.js and others load.

With matrices of integers it is `onnx/model_quantized.onnx`. The weights of a large model are in a
file beside it, `….onnx_data`, because a protocol buffer file holds at most two gigabytes and is
read into memory whole. `bertkit.checkpoints.onnx_file` reads both files back.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.base.checksums import FileRecord
from bertkit.base.files import durable_file, make_folder, write_file
from bertkit.checkpoints.file_names import DATA_SUFFIX, ONNX_FILE, QUANTIZED_FILE
from bertkit.checkpoints.sentence_transformers import SentenceModel
from bertkit.inference.graphs.graph import Weights
from bertkit.inference.onnx.graph import Array, OnnxGraph
from bertkit.inference.onnx.models import ExportedKind, Outputs, list_inputs, their_name
from bertkit.inference.onnx.padded import OPSET, GraphPrecision, PaddedGraph
from bertkit.inference.onnx.sentences import write_sentence
from bertkit.models.bert.config import BertConfig

MAX_INLINE_BYTES = 1 << 30
ALIGNMENT_BYTES = 4096  # so that a reader can memory-map each weight


def write_onnx(
    folder: Path,
    config: BertConfig,
    weights: Weights,
    kind: ExportedKind,
    sentences: SentenceModel | None = None,
    precision: GraphPrecision = "fp32",
) -> tuple[dict[str, FileRecord], tuple[str, ...]]:
    """Write a model as an ONNX file; return file records and output names.

    Its inputs are those of `list_inputs`, int64; its outputs, all float32, are those of its
    architecture, and `sentence_embedding`, `[batch, features]`, if
    `sentences` is given.
    """
    table = config.names.table(kind.architecture)
    graph = OnnxGraph(OPSET, partial(their_name, table=table))
    outputs: Outputs = kind.write(PaddedGraph(graph, config, weights, kind.architecture, precision))
    if sentences is not None:
        vectors = write_sentence(graph, sentences, "last_hidden_state")
        outputs[vectors] = ("batch", sentences.dimension)
    proto = graph.build(dict.fromkeys(list_inputs(config), kind.input_shape), outputs)
    name = QUANTIZED_FILE if precision == "int8" else ONNX_FILE
    make_folder((folder / name).parent)
    records: dict[str, FileRecord] = {}
    if sum(weight.nbytes for weight in graph.weights.values()) > MAX_INLINE_BYTES:
        data_name = name + DATA_SUFFIX
        records[data_name] = _write_weights(folder / data_name, proto, graph.weights)
    else:
        take_weights_in(proto, graph.weights)
    records[name] = write_file(folder / name, proto.SerializeToString())
    return records, tuple(outputs)


def take_weights_in(proto: Any, weights: dict[str, Array]) -> None:
    """Put the weights into the model, whose file then has all."""
    for declared in proto.graph.initializer:
        if declared.name in weights:
            declared.ClearField("external_data")
            declared.ClearField("data_location")
            declared.raw_data = _as_bytes(weights[declared.name]).tobytes()


def _write_weights(path: Path, proto: Any, weights: dict[str, Array]) -> FileRecord:
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


def _as_bytes(weight: Array) -> memoryview:
    """Return a weight as bytes: float32 or int8, little-endian, row-major."""
    values = np.ascontiguousarray(weight)
    return values.astype(values.dtype.newbyteorder("<"), copy=False).data.cast("B")
