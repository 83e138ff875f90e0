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

from bertkit.exporters.onnx_activations import ACTIVATION_NODES
from bertkit.exporters.onnx_graph import MICROSOFT, OnnxGraph, Shape
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
# Activations that use the GELU operator; all others are written as in a padded graph.
GELU_FORMS = {
    "gelu": "none",
    "gelu_new": "tanh",
    "gelu_python": "none",
    "gelu_pytorch_tanh": "tanh",
}


def write_packed(
    graph: OnnxGraph,
    encoder: BertEncoder,
    config: BertConfig,
    layers: Sequence[int],
    *,
    is_mixed: bool,
) -> list[str]:
    """Write the nodes of an encoder, up to the highest of the given layers.

    Args:
        graph: a graph of opset `OPSET`.
        encoder: its weights are used without a copy.
        config: the encoder's config.
        layers: hidden states to return: 0 is the output of the embeddings, n that of block n.
        is_mixed: whether the graph takes sequences of different lengths.

    Returns:
        The name of each of those hidden states, `[tokens, hidden]`.
    """
    tokens = _write_embeddings(graph, encoder.embeddings)
    states = [tokens]
    for number in range(max(layers)):
        layer = encoder.layers[number]
        assert isinstance(layer, EncoderBlock)
        name = f"layers.{number}"
        context = _write_attention(graph, f"{name}.attention", layer.attention, tokens, is_mixed)
        tokens = _write_rest(graph, name, layer, tokens, context, config.hidden_act)
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
    return _add_norm(graph, "embeddings.norm", embeddings.norm, summed, position)


def _write_rest(
    graph: OnnxGraph, name: str, layer: EncoderBlock, tokens: str, context: str, activation: str
) -> str:
    """Write the rest of a block after attention."""
    mixed = _write_linear(graph, f"{name}.attention.output", layer.attention.output, context)
    tokens = _add_norm(graph, f"{name}.attention_norm", layer.attention_norm, mixed, tokens)
    wide = _write_linear(graph, f"{name}.feed_forward.up", layer.feed_forward.up, tokens)
    if activation in GELU_FORMS:
        bent = graph.node("Gelu", wide, approximate=GELU_FORMS[activation])
    else:
        bent = ACTIVATION_NODES[activation](graph, wide)
    narrow = _write_linear(graph, f"{name}.feed_forward.down", layer.feed_forward.down, bent)
    return _add_norm(graph, f"{name}.feed_forward_norm", layer.feed_forward_norm, narrow, tokens)


def _write_attention(
    graph: OnnxGraph, name: str, attention: SelfAttention, tokens: str, is_mixed: bool
) -> str:
    """Write attention without its output layer; three products avoid a copy to split one."""
    linear = attention.query_key_value
    parts = [
        _multiply(graph, f"{name}.{part}", tokens, weight, bias)
        for part, weight, bias in zip(
            ("query", "key", "value"), linear.weight.chunk(3), linear.bias.chunk(3), strict=True
        )
    ]
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


def _add_norm(graph: OnnxGraph, name: str, norm: nn.LayerNorm, values: str, residual: str) -> str:
    """Add the residual, then normalize."""
    weights = (graph.weight(f"{name}.weight", norm.weight), graph.weight(f"{name}.bias", norm.bias))
    summed = graph.node("Add", values, residual)
    return graph.node("LayerNormalization", summed, *weights, axis=-1, epsilon=norm.eps)
