"""Activation functions as nodes of ONNX's standard operators.

Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units (GELUs)"; Misra 2019, "Mish".
"""

import math
from collections.abc import Callable

from bertkit.exporters.onnx_graph import OnnxGraph


def write_gelu(graph: OnnxGraph, values: str) -> str:
    """Add GELU: 0.5 · x · (1 + erf(x / √2))."""
    erf = graph.node("Erf", graph.node("Div", values, graph.constant(math.sqrt(2.0))))
    doubled = graph.node("Mul", values, graph.node("Add", erf, graph.constant(1.0)))
    return graph.node("Mul", doubled, graph.constant(0.5))


def write_gelu_tanh(graph: OnnxGraph, values: str) -> str:
    """Add the tanh approximation of GELU."""
    cube = graph.node("Mul", values, graph.node("Mul", values, values))
    summed = graph.node("Add", values, graph.node("Mul", cube, graph.constant(0.044715)))
    scaled = graph.node("Mul", summed, graph.constant(math.sqrt(2.0 / math.pi)))
    share = graph.node("Add", graph.node("Tanh", scaled), graph.constant(1.0))
    return graph.node("Mul", graph.node("Mul", values, graph.constant(0.5)), share)


def write_mish(graph: OnnxGraph, values: str) -> str:
    """Add Mish: x · tanh(softplus(x))."""
    return graph.node("Mul", values, graph.node("Tanh", graph.node("Softplus", values)))


def write_relu(graph: OnnxGraph, values: str) -> str:
    """Add ReLU: max(x, 0)."""
    return graph.node("Relu", values)


def write_silu(graph: OnnxGraph, values: str) -> str:
    """Add SiLU: x · sigmoid(x)."""
    return graph.node("Mul", values, graph.node("Sigmoid", values))


def write_tanh(graph: OnnxGraph, values: str) -> str:
    """Add tanh(x)."""
    return graph.node("Tanh", values)


# The keys of `bertkit.nn.block.ACTIVATIONS`.
ACTIVATION_NODES: dict[str, Callable[[OnnxGraph, str], str]] = {
    "gelu": write_gelu,
    "gelu_new": write_gelu_tanh,
    "gelu_python": write_gelu,
    "gelu_pytorch_tanh": write_gelu_tanh,
    "mish": write_mish,
    "relu": write_relu,
    "silu": write_silu,
    "swish": write_silu,
    "tanh": write_tanh,
}
