"""The encoder as an ONNX graph for ONNX Runtime on a CPU, with packed batches (no padding).

Linear layers, norms and activations process the concatenated tokens of all sequences,
`[tokens, hidden]`, and use the model's weights without a copy. Only attention arranges the tokens
in rows, one for each sequence. If all sequences have the same length, that is a reshape; otherwise
`rows` holds the token index of each position, `places` the position of each token, and `lengths`
the number of tokens in each row.

Norms and GELU are standard operators, which ONNX Runtime (1.31) runs faster than the operators that
it fuses them into; `docs/performance.md` has the figures. So a session must not fuse them: it uses
the basic optimization level.
"""

from collections.abc import Sequence

import torch
from torch import nn

from bertkit.inference.onnx.graph import (
    ACTIVATION_NODES,
    MICROSOFT,
    Activation,
    GraphPrecision,
    Multiply,
    OnnxGraph,
    Shape,
    add_norm,
    multiply_int8,
    operator,
    write_after_attention,
    write_int8_linear,
)
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder
from bertkit.nn.attention import SelfAttention
from bertkit.nn.block import EncoderBlock
from bertkit.nn.embeddings import Embeddings

OPSET = 20  # the first with GELU
# Inputs of a graph for sequences of one length; `shape` is [sequences, length, hidden].
UNIFORM_INPUTS: dict[str, tuple[torch.dtype, Shape]] = {
    "input_ids": (torch.int64, ("tokens",)),
    "token_type_ids": (torch.int64, ("tokens",)),
    "position_ids": (torch.int64, ("tokens",)),
    "shape": (torch.int64, (3,)),
}
# Inputs of a graph for sequences of any lengths.
MIXED_INPUTS: dict[str, tuple[torch.dtype, Shape]] = {
    **UNIFORM_INPUTS,
    "is_uniform": (torch.bool, ()),
    "rows": (torch.int64, ("sequences", "longest")),
    "places": (torch.int64, ("tokens",)),
    "lengths": (torch.int32, ("sequences",)),
}
ACTIVATIONS: dict[str, Activation] = {
    **ACTIVATION_NODES,  # without the GELU operator, which a padded graph's opset doesn't have
    "gelu": operator("Gelu", approximate="none"),
    "gelu_new": operator("Gelu", approximate="tanh"),
    "gelu_python": operator("Gelu", approximate="none"),
    "gelu_pytorch_tanh": operator("Gelu", approximate="tanh"),
}


def write_packed(
    graph: OnnxGraph,
    encoder: BertEncoder,
    config: BertConfig,
    layers: Sequence[int],
    *,
    is_mixed: bool,
    precision: GraphPrecision = "fp32",
) -> list[str]:
    """Write an encoder's nodes up to the highest of the layers; return their outputs' names.

    The graph is of opset `OPSET`. Layer 0 is the output of the embeddings, n that of block n, each
    `[tokens, hidden]`; `is_mixed` allows sequences of different lengths.
    """
    is_int8 = precision == "int8"
    multiply = multiply_int8 if is_int8 else _multiply
    parts = (write_int8_linear if is_int8 else _write_linear, ACTIVATIONS[config.hidden_act])
    tokens = _write_embeddings(graph, encoder.embeddings)
    states = [tokens]
    for number in range(max(layers)):
        layer = encoder.layers[number]
        assert isinstance(layer, EncoderBlock)
        name = f"layers.{number}"
        queries_keys_values = _write_query_key_value(
            graph, f"{name}.attention", layer.attention, tokens, multiply
        )
        context = _write_attention(graph, layer.attention, queries_keys_values, is_mixed)
        tokens = write_after_attention(graph, name, layer, (tokens, context), parts)
        states.append(tokens)
    return [states[layer] for layer in layers]


def _write_embeddings(graph: OnnxGraph, embeddings: Embeddings) -> str:
    tables = {
        "input_ids": embeddings.word,
        "token_type_ids": embeddings.token_type,
        "position_ids": embeddings.position,
    }
    word, segment, position = (
        graph.node("Gather", graph.weight(f"embeddings.{ids}", table.weight), ids)
        for ids, table in tables.items()
    )
    summed = graph.node("Add", word, segment)
    return add_norm(graph, "embeddings.norm", embeddings.norm, summed, position)


def _write_query_key_value(
    graph: OnnxGraph, name: str, attention: SelfAttention, tokens: str, multiply: Multiply
) -> list[str]:
    """Write three products, which avoid a copy to split one."""
    linear = attention.query_key_value
    return [
        multiply(graph, f"{name}.{part}", tokens, weight, bias)
        for part, weight, bias in zip(
            ("query", "key", "value"), linear.weight.chunk(3), linear.bias.chunk(3), strict=True
        )
    ]


def _write_attention(
    graph: OnnxGraph, attention: SelfAttention, parts: Sequence[str], is_mixed: bool
) -> str:
    """Write attention without its output layer."""
    size, num_heads = attention.output.in_features, attention.num_heads
    if not is_mixed:
        return _attend_uniform(graph, parts, num_heads, size)
    branches = {
        "then_branch": lambda: _attend_uniform(graph, parts, num_heads, size),
        "else_branch": lambda: _attend_mixed(graph, parts, num_heads, size),
    }
    graphs = {name: graph.branch(write, ("tokens", size)) for name, write in branches.items()}
    return graph.node("If", "is_uniform", **graphs)


def _attend_uniform(graph: OnnxGraph, parts: Sequence[str], num_heads: int, size: int) -> str:
    """Write attention for sequences of one length, without mask or padding."""
    rows = [graph.node("Reshape", part, "shape") for part in parts]
    context = graph.node("MultiHeadAttention", *rows, domain=MICROSOFT, num_heads=num_heads)
    return graph.node("Reshape", context, graph.constant([-1, size]))


def _attend_mixed(graph: OnnxGraph, parts: Sequence[str], num_heads: int, size: int) -> str:
    """Write attention for sequences of different lengths, in rows as long as the longest."""
    rows = [graph.node("Gather", part, "rows") for part in parts]
    inputs = (*rows, "", "lengths")
    context = graph.node("MultiHeadAttention", *inputs, domain=MICROSOFT, num_heads=num_heads)
    context = graph.node("Reshape", context, graph.constant([-1, size]))
    return graph.node("Gather", context, "places")


def _write_linear(graph: OnnxGraph, name: str, linear: nn.Linear, values: str) -> str:
    return _multiply(graph, name, values, linear.weight, linear.bias)


def _multiply(
    graph: OnnxGraph, name: str, values: str, weight: torch.Tensor, bias: torch.Tensor
) -> str:
    weights = (graph.weight(f"{name}.weight", weight), graph.weight(f"{name}.bias", bias))
    return graph.node("Gemm", values, *weights, transB=1)
