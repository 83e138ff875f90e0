"""Quantization of an ONNX graph: matrices of linear layers as integers of 8 bits.

Weights have a scale for each output feature. The inputs of a matrix product get one scale and zero
point as it runs (dynamic quantization).

Source: ONNX Runtime's quantizer; Jacob et al. 2018, "Quantization and Training of Neural Networks
for Efficient Integer-Arithmetic-Only Inference".
"""

import tempfile
from pathlib import Path
from typing import Any

from bertkit.exporters.onnx_graph import import_extra


def quantize(model: Any) -> Any:
    """Return a model, a `ModelProto` that holds its weights, with its `MatMul` nodes quantized.

    Raises:
        MissingExtraError: `bertkit[onnx]` isn't installed.
    """
    quantization = import_extra("onnxruntime.quantization")
    # Tells the quantizer that it needs no other tool's preparation of the graph.
    model.metadata_props.add(key="onnx.quant.pre_process", value="onnxruntime.quant")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        quantization.quantize_dynamic(
            model,
            path,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            weight_type=quantization.QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
        return import_extra("onnx").load(path)
