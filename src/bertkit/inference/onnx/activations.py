"""Activation functions in standard operators of ONNX."""

import math
from collections.abc import Callable
from typing import TypeAlias

from bertkit.inference.onnx.graph import OnnxGraph

Activation: TypeAlias = Callable[[OnnxGraph, str], str]


def operator(name: str) -> Activation:
    """Return the activation that is a single operator of ONNX."""
    return lambda graph, values: graph.node(name, values)


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


def write_silu(graph: OnnxGraph, values: str) -> str:
    """Add SiLU: x · sigmoid(x)."""
    return graph.node("Mul", values, graph.node("Sigmoid", values))


ACTIVATIONS: dict[str, Activation] = {
    "gelu": write_gelu,
    "gelu_new": write_gelu_tanh,
    "gelu_python": write_gelu,
    "gelu_pytorch_tanh": write_gelu_tanh,
    "mish": lambda graph, values: graph.node(  # x · tanh(softplus(x))
        "Mul", values, graph.node("Tanh", graph.node("Softplus", values))
    ),
    "relu": operator("Relu"),
    "silu": write_silu,
    "swish": write_silu,
    "tanh": operator("Tanh"),
}
