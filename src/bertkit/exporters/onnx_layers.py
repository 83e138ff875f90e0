"""Layers that all ONNX graphs share: activations, the part of a block after attention, norms.

Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units (GELUs)"; Misra 2019, "Mish".
"""

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

from torch import Tensor, nn

from bertkit.exporters.onnx_graph import OnnxGraph
from bertkit.nn.block import EncoderBlock

Activation: TypeAlias = Callable[[OnnxGraph, str], str]
WriteLinear: TypeAlias = Callable[[OnnxGraph, str, nn.Linear, str], str]
Multiply: TypeAlias = Callable[[OnnxGraph, str, str, Tensor, Tensor], str]
GraphPrecision: TypeAlias = Literal["fp32", "int8"]


def operator(name: str, **attributes: str) -> Activation:
    """Return the activation that is a single operator of ONNX."""
    return lambda graph, values: graph.node(name, values, **attributes)


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


def write_silu(graph: OnnxGraph, values: str) -> str:
    """Add SiLU: x · sigmoid(x)."""
    return graph.node("Mul", values, graph.node("Sigmoid", values))


# The keys of `bertkit.nn.block.ACTIVATIONS`.
ACTIVATION_NODES: dict[str, Activation] = {
    "gelu": write_gelu,
    "gelu_new": write_gelu_tanh,
    "gelu_python": write_gelu,
    "gelu_pytorch_tanh": write_gelu_tanh,
    "mish": write_mish,
    "relu": operator("Relu"),
    "silu": write_silu,
    "swish": write_silu,
    "tanh": operator("Tanh"),
}


def write_after_attention(
    graph: OnnxGraph,
    name: str,
    layer: EncoderBlock,
    inputs: tuple[str, str],
    parts: tuple[WriteLinear, Activation],
    output: str = "",
) -> str:
    """Write the part of a block after attention.

    Args:
        graph: the graph.
        name: of the block.
        layer: the block.
        inputs: names of the block's input and of the context from attention.
        parts: how this graph writes linear layers and the activation.
        output: name of the block's output; by default generated.
    """
    (tokens, context), (write_linear, activate) = inputs, parts
    feed_forward = layer.feed_forward
    mixed = write_linear(graph, f"{name}.attention.output", layer.attention.output, context)
    tokens = add_norm(graph, f"{name}.attention_norm", layer.attention_norm, mixed, tokens)
    inner = write_linear(graph, f"{name}.feed_forward.up", feed_forward.up, tokens)
    inner = activate(graph, inner)
    outer = write_linear(graph, f"{name}.feed_forward.down", feed_forward.down, inner)
    norm = layer.feed_forward_norm
    return add_norm(graph, f"{name}.feed_forward_norm", norm, outer, tokens, output)


def add_norm(
    graph: OnnxGraph, name: str, norm: nn.LayerNorm, values: str, residual: str, output: str = ""
) -> str:
    """Add the residual, then normalize."""
    summed = graph.node("Add", values, residual)
    weights = (graph.weight(f"{name}.weight", norm.weight), graph.weight(f"{name}.bias", norm.bias))
    return graph.node(
        "LayerNormalization", summed, *weights, axis=-1, epsilon=norm.eps, output=output
    )


def take_first(graph: OnnxGraph, tokens: str) -> str:
    """Return the states of each text's first token, `[batch, hidden]`."""
    return take(graph, tokens, 0, axis=1)


def take(graph: OnnxGraph, values: str, index: int, *, axis: int, output: str = "") -> str:
    """Return the values at an index of an axis, without that axis."""
    chosen = graph.node("Gather", values, graph.constant([index]), axis=axis)
    return graph.node("Squeeze", chosen, graph.constant([axis]), output=output)
