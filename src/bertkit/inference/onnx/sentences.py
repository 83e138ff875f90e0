"""What follows the encoder in a model of sentence embeddings, as nodes of ONNX."""

from collections.abc import Callable, Sequence

from bertkit.checkpoints.onnx_file import SENTENCE
from bertkit.checkpoints.sentence_modules import Dense, Normalize, Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel
from bertkit.inference.onnx.activations import Activation, operator, write_gelu, write_silu
from bertkit.inference.onnx.graph import OnnxGraph

LOWEST = -1e9  # below any feature; replaces padding before the maximum
LEAST_LENGTH = 1e-12  # least divisor, for vectors of zeros, as in torch's normalize


def write_sentence(graph: OnnxGraph, model: SentenceModel, tokens: str) -> str:
    """Write all modules of a model; return the name of the embeddings, `[batch, features]`."""
    vectors = ""
    for number, module in enumerate(model.modules, start=1):
        match module:
            case Pooling():
                vectors = write_pooling(graph, module.modes, tokens)
            case Dense():
                name, bias = f"{SENTENCE}{number}", module.bias
                inputs = [vectors, graph.weight(f"{name}.weight", module.weight.read_float32())]
                if bias is not None:
                    inputs.append(graph.weight(f"{name}.bias", bias.read_float32()))
                product = graph.node("Gemm", *inputs, transB=1)
                vectors = DENSE_NODES[module.activation](graph, product)
            case Normalize():
                norm = graph.node("ReduceL2", vectors, axes=[1], keepdims=1)
                norm = graph.node("Max", norm, graph.constant(LEAST_LENGTH))
                vectors = graph.node("Div", vectors, norm)
    if model.truncate_dimension is not None:
        bounds = (graph.constant([value]) for value in (0, model.truncate_dimension, 1))
        vectors = graph.node("Slice", vectors, *bounds)
    return graph.node("Identity", vectors, output="sentence_embedding")


def write_pooling(graph: OnnxGraph, modes: Sequence[str], tokens: str) -> str:
    """Write the pooling of tokens by each of some modes, concatenated; return its name."""
    mask = graph.node("Cast", "attention_mask", to=1)
    mask = graph.node("Unsqueeze", mask, graph.constant([2]))
    vectors = [POOLING_NODES[mode](graph, tokens, mask) for mode in modes]
    return vectors[0] if len(vectors) == 1 else graph.node("Concat", *vectors, axis=1)


def _write_max(graph: OnnxGraph, tokens: str, mask: str) -> str:
    is_token = graph.node("Cast", mask, to=9)
    shown = graph.node("Where", is_token, tokens, graph.constant(LOWEST))
    return graph.node("ReduceMax", shown, axes=[1], keepdims=0)


def _write_weighted_mean(graph: OnnxGraph, tokens: str, mask: str) -> str:
    weights = graph.node("Mul", _number(graph, mask), mask)
    return graph.node("Div", _sum(graph, tokens, weights), _count(graph, weights))


def _write_last(graph: OnnxGraph, tokens: str, mask: str) -> str:
    length = graph.node("ReduceSum", mask, graph.constant([1]), keepdims=1)
    is_last = graph.node("Equal", _number(graph, mask), length)
    return _sum(graph, tokens, graph.node("Mul", graph.node("Cast", is_last, to=1), mask))


def _sum(graph: OnnxGraph, tokens: str, weights: str) -> str:
    weighted = graph.node("Mul", tokens, weights)
    return graph.node("ReduceSum", weighted, graph.constant([1]), keepdims=0)


def _count(graph: OnnxGraph, weights: str) -> str:
    return graph.node("ReduceSum", weights, graph.constant([1]), keepdims=0)


def _number(graph: OnnxGraph, mask: str) -> str:
    """Add the position of each token in its text, from 1."""
    return graph.node("CumSum", mask, graph.constant([1]))


# The values of `bertkit.checkpoints.sentence_modules.POOLING_FLAGS`.
POOLING_NODES: dict[str, Callable[[OnnxGraph, str, str], str]] = {
    "cls": lambda graph, tokens, mask: graph.take(tokens, 0, axis=1),
    "max": _write_max,
    "mean": lambda graph, tokens, mask: graph.node(
        "Div", _sum(graph, tokens, mask), _count(graph, mask)
    ),
    "mean_sqrt_len_tokens": lambda graph, tokens, mask: graph.node(
        "Div", _sum(graph, tokens, mask), graph.node("Sqrt", _count(graph, mask))
    ),
    "weightedmean": _write_weighted_mean,
    "lasttoken": _write_last,
}


# The keys of `bertkit.checkpoints.sentence_modules.ACTIVATIONS`.
DENSE_NODES: dict[str, Activation] = {
    "identity": lambda graph, vectors: vectors,
    "tanh": operator("Tanh"),
    "relu": operator("Relu"),
    "gelu": write_gelu,
    "sigmoid": operator("Sigmoid"),
    "silu": write_silu,
}
