"""Linear layers of an ONNX graph in integers of 8 bits.

A weight matrix has one scale for each output feature. Inputs get one scale and one zero point for
all tokens of a call, found as it runs (dynamic quantization). ONNX Runtime joins the nodes of a
layer into one kernel.

ONNX Runtime's own quantizer makes the same integers, but loops over features in Python: 4 s for a
small encoder, which an engine can't spend whenever it starts.

Source: Jacob et al. 2018, "Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference"; ONNX operators DynamicQuantizeLinear and MatMulInteger.
"""

import torch
from jaxtyping import Float, Int8
from torch import Tensor, nn

from bertkit.checkpoints.onnx_file import SCALE, TRANSPOSED
from bertkit.exporters.onnx_graph import OnnxGraph

LARGEST = 127  # -128 isn't used, so that a weight and its negative are equally exact
FLOAT = 1  # ONNX's number of the type


def write_int8_linear(graph: OnnxGraph, name: str, linear: nn.Linear, values: str) -> str:
    """Write a linear layer with an int8 matrix; return the name of its output, float32."""
    return multiply_int8(graph, name, values, linear.weight, linear.bias)


def multiply_int8(
    graph: OnnxGraph, name: str, values: str, weight: Float[Tensor, "out in"], bias: Tensor
) -> str:
    """Write the product of values with an int8 matrix, plus a bias; values are quantized once."""
    integers, scales = quantize_matrix(weight)
    matrix = graph.weight(f"{name}.weight{TRANSPOSED}", integers.t())
    scale = graph.weight(f"{name}.weight{SCALE}", scales)
    inputs, input_scale, input_zero = graph.quantize(values)
    sums = graph.node("Cast", graph.node("MatMulInteger", inputs, matrix, input_zero), to=FLOAT)
    product = graph.node("Mul", sums, graph.node("Mul", input_scale, scale))
    return graph.node("Add", product, graph.weight(f"{name}.bias", bias))


def quantize_matrix(
    weight: Float[Tensor, "out in"],
) -> tuple[Int8[Tensor, "out in"], Float[Tensor, " out"]]:
    """Round a matrix to integers from -127 to 127; also return the scale of each row."""
    weight = weight.detach().float()
    scales = weight.abs().amax(dim=1).clamp(min=torch.finfo(torch.float32).tiny) / LARGEST
    return (weight / scales[:, None]).round().to(torch.int8), scales
