"""An encoder as a graph for ONNX Runtime on a CPU, in the packed form: nothing in it is padding.

Linear layers, norms and activations see the tokens of all sequences end to end, `[tokens, hidden]`,
and take our weights as they lie in memory. Attention alone lays them out in rows, one for each
sequence. Where all sequences are of one length that is a matter of shape; otherwise `rows` says
which token comes to each place, `places` where each token went, `lengths` how much of a row counts.

Norms and GELU are standard operators, which ONNX Runtime (1.31) computes faster than those that it
joins them into; `docs/performance.md` has the figures. A session must not join
them: it optimizes at its basic level.
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
# Of a graph for sequences of one length; `shape` is that of the rows, [sequences, length, hidden].
UNIFORM_INPUTS: dict[str, tuple[torch.dtype, Shape]] = {
    "input_ids": (torch.int64, ("tokens",)),
    "token_type_ids": (torch.int64, ("tokens",)),
    "position_ids": (torch.int64, ("tokens",)),
    "shape": (torch.int64, (3,)),
}
# Of a graph that takes others too.
MIXED_INPUTS: dict[str, tuple[torch.dtype, Shape]] = {
    **UNIFORM_INPUTS,
    "is_uniform": (torch.bool, ()),
    "rows": (torch.int64, ("sequences", "longest")),
    "places": (torch.int64, ("tokens",)),
    "lengths": (torch.int32, ("sequences",)),
}
# GELU by its own operator; what else there is, as in a padded graph.
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
    """Write the nodes of an encoder, as far as the highest of some layers.

    Args:
        graph: of opset `OPSET`.
        encoder: its weights are used where they lie.
        config: of the encoder.
        layers: hidden states to give: 0 is what the embeddings give, n what block n gives.
        is_mixed: whether it takes sequences of different lengths.

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
    """What follows attention in a block."""
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
    """Attention without the layer behind it; three products save a copy for cutting up one."""
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
    """Attention between sequences of one length, which has no mask and no gaps."""
    rows = [graph.node("Reshape", part, "shape") for part in parts]
    context = graph.node("MultiHeadAttention", *rows, domain=MICROSOFT, num_heads=num_heads)
    return graph.node("Reshape", context, graph.constant([-1, size]))


def _attend_mixed(graph: OnnxGraph, parts: Sequence[str], num_heads: int, size: int) -> str:
    """Attention between sequences in rows as long as the longest."""
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
    """Add what is there, and normalize."""
    weights = (graph.weight(f"{name}.weight", norm.weight), graph.weight(f"{name}.bias", norm.bias))
    summed = graph.node("Add", values, residual)
    return graph.node("LayerNormalization", summed, *weights, axis=-1, epsilon=norm.eps)
