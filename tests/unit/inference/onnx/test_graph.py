"""Matrices are rounded to ONNX Runtime's integers, and a layer computes with them."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import numpy_helper
from onnxruntime import quantization
from tests.closeness import assert_close
from torch import nn

from bertkit.inference.onnx.export import take_weights_in
from bertkit.inference.onnx.graph import OnnxGraph
from bertkit.inference.onnx.padded import multiply_int8
from bertkit.training.processor import has_native_int8

OPSET = 17
NEEDS_VNNI = pytest.mark.skipif(
    not has_native_int8(),
    reason="without VNNI, x86 processors add products in 16 bits, which may saturate",
)


@pytest.fixture
def linear():
    torch.manual_seed(0)
    return nn.Linear(24, 10)


def multiply(graph: OnnxGraph, name: str, linear: nn.Linear) -> str:
    product = multiply_int8(graph, name, "x", linear.weight.detach().numpy())
    return graph.node("Add", product, graph.weight(f"{name}.bias", linear.bias.detach().numpy()))


def quantize(linear: nn.Linear) -> tuple[np.ndarray, np.ndarray]:
    """The integers of a layer's matrix, transposed, and the scales of its rows."""
    graph = OnnxGraph(OPSET)
    multiply(graph, "layer", linear)
    return graph.weights["layer.weight.T"], graph.weights["layer.weight.scale"]


def build(graph: OnnxGraph, output: str) -> onnx.ModelProto:
    graph.node("Identity", output, output="y")
    model = graph.build({"x": ("rows", 24)}, {"y": ("rows", 10)})
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    take_weights_in(model, graph.weights)
    onnx.checker.check_model(model, full_check=True)
    return model


def run(model: onnx.ModelProto, values: torch.Tensor) -> torch.Tensor:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return torch.from_numpy(session.run(None, {"x": values.numpy()})[0])


def test_integers_are_those_of_onnx_runtimes_quantizer(linear, tmp_path):
    graph = OnnxGraph(OPSET)
    matrix = graph.weight("w", linear.weight.detach().numpy().T)
    path = tmp_path / "quantized.onnx"
    quantization.quantize_dynamic(
        build(graph, graph.node("MatMul", "x", matrix)),
        path,
        per_channel=True,
        weight_type=quantization.QuantType.QInt8,
    )
    theirs = {one.name: numpy_helper.to_array(one) for one in onnx.load(path).graph.initializer}
    integers, scales = quantize(linear)
    assert np.array_equal(theirs["w_quantized"], integers)
    assert_close(theirs["w_scale"], scales, floor=0)


@NEEDS_VNNI
def test_a_layer_is_near_its_float32_twin(linear):
    graph = OnnxGraph(OPSET)
    values = torch.randn(50, 24)
    product = multiply(graph, "layer", linear)
    found = run(build(graph, product), values)
    with torch.no_grad():
        expected = linear(values)
    assert_close(found, expected, within=0.05)
    assert not torch.equal(found, expected)
    assert graph.weights["layer.weight.T"].dtype == np.int8


def test_values_are_quantized_once_for_all_their_products(linear):
    graph = OnnxGraph(OPSET)
    parts = [multiply(graph, name, linear) for name in ("query", "key")]
    model = build(graph, graph.node("Add", *parts))
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("DynamicQuantizeLinear") == 1
    assert kinds.count("MatMulInteger") == 2


def test_a_row_of_zeros_stays_zero(linear):
    linear.weight.data[0] = 0.0
    linear.weight.data[1] = torch.tensor([1.0, -0.5] * 12)
    integers, scales = quantize(linear)
    assert integers[:, :2].T.tolist() == [[0] * 24, [127, -64] * 12]
    assert np.isfinite(scales).all()
    assert not (integers * scales)[:, 0].any()
